"""MySQL's text: what is taken, what is refused and where, and the plain way against the careful one.

The tables are also put to a real 9.7 server, when there is one; test_oracle.py asks it much more.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

import pymysql
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gtid.gtid_text
from gtid import (
    GNO_END,
    GNO_MAX,
    INTERVALS_MAX,
    TEXT_BYTES_MAX,
    TSIDS_MAX,
    GtidSet,
    GtidSetTooLarge,
    MalformedGtidSet,
)
from gtid.boundary_sequence import Boundaries
from gtid.gtid_text import in_order, parse_carefully, parse_entries
from tests.hypothesis_profiles import laws

pytestmark = pytest.mark.usefixtures("representation")

LAWS = laws(80)

U = "00000000-0000-0000-0000-000000000000"
V = "00000000-0000-0000-0000-000000000001"
W = "abcdef00-0000-4000-8000-00000000abcd"
HEX = U.replace("-", "")
TAG32 = "a_3" + "z" * 29

ACCEPTED = {
    # nothing at all
    "": "",
    " ": "",
    "\r,, ,\t": "",
    ",\v,\f\n": "",
    U: "",
    f"{U} ": "",
    f" {U} , {V} ,,{U}": "",
    f" {U} : {TAG32}": "",
    f"{U}:a:b:{TAG32},{U}": "",
    f"{U}:2-1": "",
    f"{U}:1-0": "",
    f"{U}:3-000": "",
    f"{U}:2-1,{V}:a:99-7": "",
    # one GTID
    f"{U}:1": f"{U}:1",
    f"{U}:1-1:1": f"{U}:1",
    f"{U}:{GNO_MAX}": f"{U}:{GNO_MAX}",
    f"{U}:001": f"{U}:1",
    f"{U}:{'0' * 5000}7": f"{U}:7",
    f"{U}:1-{'0' * 30}2": f"{U}:1-2",
    W.upper() + ":1": f"{W}:1",
    f"\f\f\n{V}\t \t:\n1\r": f"{V}:1",
    f"{U}\v:\v1\v": f"{U}:1",
    # UUIDs without dashes, and in braces
    HEX: "",
    f"{HEX}:1": f"{U}:1",
    f"{HEX} :a:1": f"{U}:a:1",
    f"{{{U}}}:1": f"{U}:1",
    f"{{{U}}} : a:1": f"{U}:a:1",
    f"{U}:1,{{{V}}}:2": f"{U}:1,{V}:2",
    # intervals
    f"{U}:1-{GNO_MAX}": f"{U}:1-{GNO_MAX}",
    f"{U}:1 - 3 : 5": f"{U}:1-3:5",
    f"{U}:1\n-\n3\n:\n5": f"{U}:1-3:5",
    f"{U}:1-100:50-200:150-300": f"{U}:1-300",
    f"{U}:9:7:5:3:1": f"{U}:1:3:5:7:9",
    f"{U}:80-100:50-59:60-79": f"{U}:50-100",
    f"{U}:100-200:1-{GNO_MAX}": f"{U}:1-{GNO_MAX}",
    f"{U}:5-3:7-9:1-0": f"{U}:7-9",
    # tags
    f"{U}:foo:1": f"{U}:foo:1",
    f"{U}:{TAG32}:42-42:42": f"{U}:{TAG32}:42",
    f"{U}:_:1": f"{U}:_:1",
    f"{U}:A_b9:1": f"{U}:a_b9:1",
    f"{U}:a:b:1-2": f"{U}:b:1-2",
    f"{U}:1-2:foo:3:5": f"{U}:1-2:foo:3:5",
    f"{U}:foo:3,{U}:1": f"{U}:1:foo:3",
    f"{U}:1:a,{U}:A:3": f"{U}:1:a:3",
    f"{U}:1-2:foo:20-100:bar:1-9:foo:101-200:FOO:1-25": f"{U}:1-2:bar:1-9:foo:1-200",
    # several UUIDs
    f"{U}:1-2:9-100,\n{V}:1": f"{U}:1-2:9-100,{V}:1",
    f"{V}:80-100,\n{W}:20-70,\n{V}:50-59:60-79,": f"{V}:50-100,{W}:20-70",
    f",{U}:1,,,{V}:2,": f"{U}:1,{V}:2",
    f"{V}:1,{U}:b:1:a:1": f"{U}:a:1:b:1,{V}:1",
    f"{U}:1,{V}": f"{U}:1",
}

UUID_EXPECTED = "a UUID"
TOKEN_EXPECTED = "a tag or an interval"
REST_EXPECTED = "a colon, a comma or the end"
START_EXPECTED = f"a number from 1 to {GNO_MAX}"
END_EXPECTED = f"a number from 0 to {GNO_MAX}"

REFUSED = {
    # other characters
    ".": (0, UUID_EXPECTED),
    f"%{V}": (0, UUID_EXPECTED),
    f"{U}!": (36, REST_EXPECTED),
    f"{U}:1;{V}:2": (38, REST_EXPECTED),
    f"{U}:1\0": (38, REST_EXPECTED),
    f"{U}:1\xa0": (38, REST_EXPECTED),
    f"{U}:1\x1c": (38, REST_EXPECTED),
    f"{U}:1\x85": (38, REST_EXPECTED),
    f"{U}:é:1": (37, TOKEN_EXPECTED),
    f"{U}:\u0661": (37, TOKEN_EXPECTED),
    f"{U}:1\u0661": (38, REST_EXPECTED),
    f"{U}:1_000": (38, REST_EXPECTED),
    f"{U}:1e3": (38, REST_EXPECTED),
    f"{U}:0x10": (37, START_EXPECTED),
    f"{U}:+1": (37, TOKEN_EXPECTED),
    # no UUID, or none that is one
    "1-2": (0, UUID_EXPECTED),
    "tag:1": (0, UUID_EXPECTED),
    ":1": (0, UUID_EXPECTED),
    "-1": (0, UUID_EXPECTED),
    f"{U},:{V}": (37, UUID_EXPECTED),
    U[:-1]: (0, UUID_EXPECTED),
    U.replace("-", "", 1): (0, UUID_EXPECTED),
    f"urn:uuid:{U}:1": (0, UUID_EXPECTED),
    f"({U}):1": (0, UUID_EXPECTED),
    f"{{{U}:1": (0, UUID_EXPECTED),
    f"{{ {U} }}:1": (0, UUID_EXPECTED),
    f"{{{HEX}}}:1": (0, UUID_EXPECTED),
    f"{U}}}:1": (36, REST_EXPECTED),
    f"{U}-1": (36, REST_EXPECTED),
    f"{U}1": (36, REST_EXPECTED),
    f"{HEX}1:1": (32, REST_EXPECTED),
    f"{HEX[:-1]}:1": (0, UUID_EXPECTED),
    f"{U[:8]} {U[8:]}:1": (0, UUID_EXPECTED),
    f"{U}:1 {V}:2": (39, REST_EXPECTED),
    f"{U}:1{V}:2": (51, REST_EXPECTED),
    # out of range
    f"{U}:0": (37, START_EXPECTED),
    f"{U}:0-0": (37, START_EXPECTED),
    f"{U}:0000-1": (37, START_EXPECTED),
    f"{U}:tag:0": (41, START_EXPECTED),
    f"{U}:{GNO_END}": (37, START_EXPECTED),
    f"{U}:{GNO_END}-1": (37, START_EXPECTED),
    f"{U}:1-{GNO_END}": (39, END_EXPECTED),
    f"{U}:1-{2**64 + 5}": (39, END_EXPECTED),
    f"{U}:{2**64 + 5}": (37, START_EXPECTED),
    f"{U}:1-2:{'9' * 5000}": (41, START_EXPECTED),
    # colons and dashes
    f"{U}:": (37, TOKEN_EXPECTED),
    f"{U}::": (37, TOKEN_EXPECTED),
    f"{U}::1-2": (37, TOKEN_EXPECTED),
    f"{U}:,{V}:1": (37, TOKEN_EXPECTED),
    f"{U}: ,{V}:1": (38, TOKEN_EXPECTED),
    f"{U}:1-2:": (41, TOKEN_EXPECTED),
    f"{U}:1-2::3-4": (41, TOKEN_EXPECTED),
    f"{U}:1:,": (39, TOKEN_EXPECTED),
    f"{U}:a:": (39, TOKEN_EXPECTED),
    f"{U}:a::1": (39, TOKEN_EXPECTED),
    f"{U}:-1": (37, TOKEN_EXPECTED),
    f"{U}:tag:-1": (41, TOKEN_EXPECTED),
    f"{U}:1-": (39, "a number"),
    f"{U}:1--2": (39, "a number"),
    f"{U}:1 - a": (41, "a number"),
    f"{U}:1-2-3": (40, REST_EXPECTED),
    f"{U}:1-2-3:4": (40, REST_EXPECTED),
    f"{U}:1 2": (39, REST_EXPECTED),
    f"{U}:1a": (38, REST_EXPECTED),
    f"{U}:9a:1": (38, REST_EXPECTED),
    # tags
    f"{U}:a b:1": (39, REST_EXPECTED),
    f"{U}:a-b:1": (38, REST_EXPECTED),
    f"{U}:a-1": (38, REST_EXPECTED),
    f"{U}:{TAG32}x:1": (37, "a tag of 1 to 32 characters"),
    f"{U}:1:{TAG32}x": (39, "a tag of 1 to 32 characters"),
}


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    assert str(GtidSet.parse(text)) == ACCEPTED[text]


@pytest.mark.parametrize("text", REFUSED)
def test_refused_at_its_place(text: str) -> None:
    with pytest.raises(MalformedGtidSet) as caught:
        GtidSet.parse(text)
    assert (caught.value.text_position, caught.value.expected) == REFUSED[text]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{U}:1-2::3",
            "expected a tag or an interval at character 41: ...0000000:1-2:[HERE]:3",
        ),
        ("?", "expected a UUID at character 0: [HERE]?"),
        (
            f"{U}:1\n-x{V[1:]}",
            r"expected a number at character 40: ...00000000:1\n-[HERE]x0000000-0000-0000-0...",
        ),
        (f"{U}:", "expected a tag or an interval at character 37: ...00000000000:[HERE]"),
        (f"{U}:é", r"expected a tag or an interval at character 37: ...00000000000:[HERE]\xe9"),
    ],
)
def test_the_message_shows_the_place(text: str, message: str) -> None:
    with pytest.raises(MalformedGtidSet) as caught:
        GtidSet.parse(text)
    assert str(caught.value) == message


def literal(text: str) -> str:
    return f"_utf8mb4 X'{text.encode().hex()}'" if text else "''"


@pytest.mark.mysql
def test_a_server_accepts_what_the_table_says(mysql97: Any) -> None:
    subtracted = [f"GTID_SUBTRACT({literal(text)}, '')" for text in ACCEPTED]
    [answers] = mysql97.query("SELECT " + ", ".join(subtracted))
    assert [answer.replace("\n", "") for answer in answers] == list(ACCEPTED.values())


@pytest.mark.mysql
def test_a_server_refuses_what_the_table_says(mysql97: Any) -> None:
    with mysql97.connect() as connection, connection.cursor() as cursor:
        for text, (position, expected) in REFUSED.items():
            with pytest.raises(pymysql.err.MySQLError, match="Malformed GTID set") as caught:
                cursor.execute(f"SELECT GTID_SUBTRACT({literal(text)}, '')")
            # The server looks into a UUID, and behind an end that is out of range.
            if expected not in (UUID_EXPECTED, END_EXPECTED):
                assert f" after {position} characters" in caught.value.args[1], text


def test_limits_are_kept_before_anything_is_read() -> None:
    text = f"{U}:1:3:5:dba:7"
    assert GtidSet.parse(text, text_bytes_max=len(text), intervals_max=5).gtid_count == 4
    with pytest.raises(GtidSetTooLarge, match=r"^5 intervals and tags, more than the limit of 4$"):
        GtidSet.parse(text, intervals_max=4)
    with pytest.raises(GtidSetTooLarge, match="bytes of text") as caught:
        GtidSet.parse(text, text_bytes_max=len(text) - 1)
    assert (caught.value.actual, caught.value.limit) == (len(text), len(text) - 1)
    assert GtidSet.parse(text, tsids_max=2).tsid_count == 2
    with pytest.raises(GtidSetTooLarge, match=r"^2 TSIDs, more than the limit of 1$"):
        GtidSet.parse(text, tsids_max=1)
    assert GtidSet.parse(f"{U}:1,{U}:3,{V}", tsids_max=1).interval_count == 2


def test_the_limits_of_one_call_are_generous() -> None:
    assert TEXT_BYTES_MAX >= 64 * 1024 * 1024
    assert INTERVALS_MAX >= 1_000_000
    assert TSIDS_MAX >= 100_000


# -- the two ways ---------------------------------------------------------------------------------

LIKELY = [U, V, W.upper(), HEX, f"{{{U}}}", *":::,,--", " ", "\n", "\v", "1", "2", "7", "10", "003"]
LIKELY += [
    "0",
    "a",
    "_b1",
    "DBA",
    TAG32,
    TAG32 + "x",
    str(GNO_MAX),
    str(GNO_END),
    "{",
    "}",
    "é",
    "+",
]

texts = st.lists(st.sampled_from(LIKELY), max_size=14).map("".join)
numbers = st.integers(1, 40) | st.integers(GNO_MAX - 3, GNO_MAX)
written_intervals = st.one_of(
    numbers.map(str), st.tuples(numbers, numbers).map("{0[0]}-{0[1]}".format)
)
tags = st.sampled_from(["a", "_b1", "DBA", TAG32])
entries = st.tuples(
    st.sampled_from([U, V, W, W.upper()]), st.lists(written_intervals | tags, max_size=6)
).map(lambda drawn: ":".join([drawn[0], *drawn[1]]))
valid_texts = st.lists(entries, max_size=6).map(",\n".join)


Read = Mapping[str, Boundaries] | tuple[int, str]


def outcome(read: Callable[[str], Mapping[str, Sequence[int]]], text: str) -> Read:
    """What was read, or the place of the mistake and what was expected there."""
    try:
        return in_order(read(text))
    except MalformedGtidSet as error:
        return error.text_position, error.expected


def check_agreement(text: str) -> Read:
    found = outcome(parse_entries, text)
    assert found == outcome(parse_carefully, text)
    return found


@pytest.mark.parametrize("text", [*ACCEPTED, *REFUSED])
def test_both_ways_agree_on_the_tables(text: str) -> None:
    check_agreement(text)


@LAWS
@given(texts)
def test_both_ways_agree_on_anything(text: str) -> None:
    check_agreement(text)


@LAWS
@given(valid_texts)
def test_plain_text_is_read_the_plain_way(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gtid.gtid_text, "_take_entry", None)
        plain = outcome(parse_entries, text)
    assert plain == outcome(parse_carefully, text)


@LAWS
@given(text=valid_texts, piece_chars=st.integers(1, 12))
def test_pieces_do_not_show(text: str, piece_chars: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gtid.gtid_text, "_PIECE_CHARS", piece_chars)
        patch.setattr(gtid.gtid_text, "_PIECE_BOUNDARIES", 2 * piece_chars)
        in_pieces = GtidSet.parse(text)
        written = str(in_pieces)
    assert in_pieces == GtidSet.parse(text)
    assert written == str(in_pieces)


@LAWS
@given(text=valid_texts, seed=st.integers(0, 2**32))
def test_white_space_and_spelling_do_not_matter(text: str, seed: int) -> None:
    rng = random.Random(seed)
    spaced = text.replace(U, rng.choice([U, HEX, f"{{{U}}}"]))
    for token in (":", ","):
        spaced = spaced.replace(token, rng.choice(" \t\n\v\f\r") + token + rng.choice("\n  "))
    assert GtidSet.parse(spaced) == GtidSet.parse(text)


@LAWS
@given(valid_texts)
def test_text_round_trip(text: str) -> None:
    held = GtidSet.parse(text)
    for separator in (",", ",\n", " , "):
        assert GtidSet.parse(held.to_text(separator=separator)) == held
    assert str(GtidSet.parse(str(held))) == str(held)
    assert " " not in str(held)
    assert "\n" not in str(held)


@LAWS
@given(
    text=valid_texts,
    place=st.integers(0, 10**6),
    drawn=st.sampled_from(LIKELY),
    cut=st.integers(0, 3),
)
def test_a_mutation_is_read_or_refused_at_a_place_within(
    text: str, place: int, drawn: str, cut: int
) -> None:
    at = place % (len(text) + 1)
    mutated = text[:at] + drawn + text[at + cut :]
    read = check_agreement(mutated)
    refused: MalformedGtidSet | None = None
    try:
        held = GtidSet.parse(mutated)
    except MalformedGtidSet as error:
        refused = error
    if refused is None:
        assert GtidSet.parse(str(held)) == held
    else:
        assert 0 <= refused.text_position <= len(mutated)
        assert "[HERE]" in str(refused)
        assert read == (refused.text_position, refused.expected)


@pytest.mark.long
def test_many_intervals_in_any_order() -> None:
    rng = random.Random(20)
    starts = range(1, 60_001, 3)
    written = [f"{start}-{start + 1}" if start % 2 else f"{start}" for start in starts]
    ordered = GtidSet.parse(f"{U}:" + ":".join(written))
    assert ordered.interval_count == len(starts)
    rng.shuffle(written)
    assert GtidSet.parse(f"{U}:" + ":".join(written)) == ordered
    assert GtidSet.parse(f"{U}: " + " : ".join(written)) == ordered
    assert GtidSet.parse(",".join(f"{U}:{interval}" for interval in written)) == ordered


def test_uuids_sort_as_their_bytes() -> None:
    rng = random.Random(7)
    uuids = [UUID(int=rng.getrandbits(128)) for _ in range(200)]
    held = GtidSet.parse(",".join(f"{str(uuid).upper()}:1" for uuid in uuids))
    assert [uuid.bytes for uuid in held.uuids] == sorted(uuid.bytes for uuid in uuids)
