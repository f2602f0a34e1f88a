"""Real servers as the oracle of text and algebra.

Every text goes to GTID_SUBTRACT(text, ''): it must be taken or refused as we do, and mean the
same. The 9.7 server is the definition. A 5.6 server reads an older and looser grammar. Where either
differs from us, and why, is a row of DIFFERENCES, or there is none.
"""

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pymysql
import pytest

from gtid import GNO_MAX, Gtid, GtidSet, MalformedGtidSet
from gtid.columns import GtidSetColumn
from tests.gtid.texts import (
    PLAIN_PIECES,
    SEEN,
    UUIDS,
    Twin,
    mutated,
    valid_text,
    valid_text_and_twin,
)

pytestmark = pytest.mark.mysql

SEED = 9704
MALFORMED_SET = 1772
BATCH = 100


class Oracle:
    """One session with a server that is asked about many texts."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def row(self, expressions: Sequence[str]) -> list[Any]:
        self._cursor.execute("SELECT " + ", ".join(expressions))
        return list(self._cursor.fetchone())

    def read(self, texts: Sequence[str]) -> list[str | int]:
        """For each text its canonical form on one line, or the place at which it was refused."""
        refused: pymysql.err.MySQLError | None = None
        try:
            answers = self.row([f"HEX(GTID_SUBTRACT({literal(text)}, ''))" for text in texts])
        except pymysql.err.MySQLError as error:
            refused = error
        if refused is None:
            return [bytes.fromhex(each).decode("latin-1").replace("\n", "") for each in answers]
        if len(texts) > 1:
            half = len(texts) // 2
            return self.read(texts[:half]) + self.read(texts[half:])
        assert refused.args[0] == MALFORMED_SET, refused
        place = re.search(r" after ([0-9]+) characters", refused.args[1])
        return [int(place[1]) if place else 0]

    def read_all(self, texts: Sequence[str]) -> list[str | int]:
        batches = [texts[begin : begin + BATCH] for begin in range(0, len(texts), BATCH)]
        return [answer for batch in batches for answer in self.read(batch)]


def literal(text: str) -> str:
    """Quote any text at all."""
    return f"_latin1 X'{text.encode('latin-1').hex()}'" if text else "''"


def ours(text: str) -> str | int:
    try:
        return str(GtidSet.parse(text))
    except MalformedGtidSet as error:
        return error.text_position


@pytest.fixture(scope="module")
def oracle97(mysql97: Any) -> Iterator[Oracle]:
    with mysql97.connect() as connection, connection.cursor() as cursor:
        yield Oracle(cursor)


@pytest.fixture(scope="module")
def oracle56(mysql56: Any) -> Iterator[Oracle]:
    with mysql56.connect() as connection, connection.cursor() as cursor:
        yield Oracle(cursor)


def seen_in(gtid_set: GtidSet) -> Twin:
    """The numbers a twin looks at that a set holds."""
    return frozenset(
        (str(tsid), gno) for tsid in gtid_set.tsids for gno in SEEN if Gtid(tsid, gno) in gtid_set
    )


class Difference(NamedTuple):
    """Where a server and we do not agree: what it makes of a text, what we do, and why."""

    server: str
    text: str
    theirs: str | int  # the set in their words, or the place at which they refuse
    ours: str | int
    why: str


U = UUIDS[0]
DIFFERENCES = (
    Difference(
        "9.7", f"{U}:b\xe9:1", f"{U}:b\xff:1", 38,
        "a defect of 9.7.4: any byte above 7F but a first one enters a tag, and is kept as FF,"
        " which the server itself cannot print",
    ),
    Difference("5.6", f"{U}:010", f"{U}:8", f"{U}:10", "a first 0 means octal"),
    Difference("5.6", f"{U}:0x10", f"{U}:16", 37, "0x means hexadecimal"),
    Difference("5.6", f"{U}:+1", f"{U}:1", 37, "strtoll takes a sign"),
    Difference("5.6", f"{U}:1-:5", f"{U}:5", 39, "a dash without a number means nothing"),
    Difference("5.6", f"{U}:a:1", 0, f"{U}:a:1", "there are no tags yet"),
    Difference("5.6", U.replace("-", "") + ":1", 0, f"{U}:1", "a UUID needs its dashes"),
    Difference("5.6", f"{{{U}}}:1", 0, f"{U}:1", "a UUID has no braces"),
)  # fmt: skip


@pytest.mark.parametrize("row", DIFFERENCES, ids=lambda row: f"{row.server} {row.why[:40]}")
def test_the_known_differences(row: Difference, oracle97: Oracle, oracle56: Oracle) -> None:
    oracle = {"9.7": oracle97, "5.6": oracle56}[row.server]
    assert oracle.read([row.text]) == [row.theirs]
    assert ours(row.text) == row.ours != row.theirs
    assert columns_of([row.text]) == [row.ours]


# -- 9.7 ------------------------------------------------------------------------------------------


def columns_of(texts: Sequence[str]) -> list[str | int]:
    """What the columns make of texts; and what they say of an error is what a set says."""
    column = GtidSetColumn.parse(pa.array(texts))
    answers: list[str | int] = []
    written, errors = column.to_arrow().to_pylist(), column.errors().to_pylist()
    for row, (text, found, message) in enumerate(zip(texts, written, errors, strict=True)):
        assert column.row(row) == (None if message is not None else GtidSet.parse(text))
        if message is None:
            answers.append(found)
            continue
        with pytest.raises(MalformedGtidSet) as caught:
            GtidSet.parse(text)
        assert message == str(caught.value), (SEED, text)
        error = column.error(row)
        assert isinstance(error, MalformedGtidSet)
        assert error.args == caught.value.args
        answers.append(error.text_position)
    return answers


def test_valid_text_means_the_same_to_server_set_column_and_twin(oracle97: Oracle) -> None:
    rng = random.Random(SEED)
    drawn = [valid_text_and_twin(rng, tagged=True) for _ in range(3_000)]
    texts = [text for text, _ in drawn]
    everyone = (oracle97.read_all(texts), columns_of(texts), drawn)
    for answer, of_column, (text, twin) in zip(*everyone, strict=True):
        assert isinstance(answer, str), (SEED, text)
        assert ours(text) == of_column == answer, (SEED, text)
        assert seen_in(GtidSet.parse(text)) == twin, (SEED, text)


def test_mutated_text_is_taken_or_refused_alike_and_at_the_same_place(oracle97: Oracle) -> None:
    rng = random.Random(SEED)
    texts = [mutated(rng, valid_text(rng, tagged=True)) for _ in range(5_000)]
    answers = oracle97.read_all(texts)
    for text, answer, of_column in zip(texts, answers, columns_of(texts), strict=True):
        assert ours(text) == of_column, (SEED, text)
        if isinstance(answer, str):
            assert of_column == answer, (SEED, text)
            continue
        with pytest.raises(MalformedGtidSet) as caught:
            GtidSet.parse(text)
        # The server looks into a UUID, and behind an end that is out of range; we at its start.
        if caught.value.expected not in ("a UUID", f"a number from 0 to {GNO_MAX}"):
            assert caught.value.text_position == answer, (SEED, text)
    refused = sum(isinstance(answer, int) for answer in answers)
    assert 1_000 < refused < 4_800, "the mutations have become too mild or too wild"


def test_subtraction_and_containment_are_the_servers(oracle97: Oracle) -> None:
    rng = random.Random(SEED)
    pairs = [(valid_text(rng, tagged=True), valid_text(rng, tagged=True)) for _ in range(2_500)]
    pairs += [(left, left + "," + right) for left, right in pairs[:500]]
    lefts, rights = (GtidSetColumn.parse(pa.array(side)) for side in zip(*pairs, strict=True))
    of_columns = zip(
        (lefts - rights).to_arrow().to_pylist(), lefts.is_subset(rights).to_pylist(), strict=True
    )
    for begin in range(0, len(pairs), BATCH):
        batch = pairs[begin : begin + BATCH]
        quoted = [f"({literal(left)}, {literal(right)})" for left, right in batch]
        subtracted = oracle97.row([f"GTID_SUBTRACT{operands}" for operands in quoted])
        contained = oracle97.row([f"GTID_SUBSET{operands}" for operands in quoted])
        for (left, right), difference, subset in zip(batch, subtracted, contained, strict=True):
            ours_left, ours_right = GtidSet.parse(left), GtidSet.parse(right)
            found = ours_left - ours_right
            assert found.to_text(separator=",\n") == difference, (SEED, left, right)
            assert (ours_left <= ours_right) == bool(subset), (SEED, left, right)
            assert next(of_columns) == (str(found), bool(subset)), (SEED, left, right)
    assert next(of_columns, None) is None


# -- 5.6: an older grammar ------------------------------------------------------------------------

UUID_FORM = re.compile("[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")

# What a text looks like, UUIDs taken out, when 5.6 may read it in another way than 9.7 does.
DIFFERENCES_FROM_5_6 = {
    "there are no tags yet": re.compile(r":\s*[A-Za-z_]"),
    "a UUID needs its dashes": re.compile(r"[0-9A-Fa-f]{32}"),
    "a first 0 means octal": re.compile(r"[:-]\s*0[0-9]"),
    "a dash without a number means nothing": re.compile(r"-\s*([:,]|$)"),
}


def test_5_6_reads_what_it_can_print_as_we_do(oracle56: Oracle) -> None:
    rng = random.Random(SEED)
    texts = [valid_text(rng, tagged=False) for _ in range(1_000)]
    for text, answer in zip(texts, oracle56.read_all(texts), strict=True):
        assert isinstance(answer, str), (SEED, text)
        assert ours(text) == answer, (SEED, text)


def test_5_6_differs_only_where_it_is_known_to(oracle56: Oracle) -> None:
    rng = random.Random(SEED)
    texts = [mutated(rng, valid_text(rng, tagged=False), PLAIN_PIECES) for _ in range(1_500)]
    differing = 0
    for text, answer in zip(texts, oracle56.read_all(texts), strict=True):
        found = ours(text)
        if found == answer or (isinstance(found, int) and isinstance(answer, int)):
            continue
        differing += 1
        without_uuids = UUID_FORM.sub("U", text)
        reasons = [why for why, form in DIFFERENCES_FROM_5_6.items() if form.search(without_uuids)]
        assert reasons, (SEED, text, found, answer)
    assert differing < 50
