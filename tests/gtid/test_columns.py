"""Columns mean what GtidSet means, row by row: sets, errors, places, counts."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GNO_MAX, GtidError, GtidSet, GtidSetTooLarge, MalformedGtidSet
from gtid.arrow_text import uuid_words
from gtid.columns import GtidSetColumn
from tests.gtid.texts import mutated, valid_text
from tests.hypothesis_profiles import laws

UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "ffffffff-ffff-ffff-ffff-fffffffffff0"
LAWS = laws(80)


def column(*texts: str | None) -> GtidSetColumn:
    return GtidSetColumn.parse(pa.array(texts, pa.string()))


def written(made: GtidSetColumn) -> list[str | None]:
    texts: list[str | None] = made.to_arrow().to_pylist()
    return texts


def parsed(text: str | None) -> GtidSet | None:
    return None if text is None else GtidSet.parse(text)


def refusal(text: str) -> GtidError | None:
    try:
        GtidSet.parse(text)
    except GtidError as error:
        return error
    return None


@pytest.fixture(scope="module")
def texts() -> list[str]:
    rng = random.Random(11)
    valid = [valid_text(rng, tagged=True) for _ in range(4_000)]
    return valid + [mutated(rng, rng.choice(valid)) for _ in range(6_000)]


@pytest.fixture(scope="module")
def sets(texts: list[str]) -> list[GtidSet | None]:
    found: list[GtidSet | None] = []
    for text in texts:
        try:
            found.append(GtidSet.parse(text))
        except GtidError:
            found.append(None)
    return found


# -- reading and writing --------------------------------------------------------------------------


def test_a_column_reads_what_a_set_reads(texts: list[str], sets: list[GtidSet | None]) -> None:
    made = GtidSetColumn.parse(pa.array(texts))
    assert written(made) == [None if each is None else str(each) for each in sets]
    assert made.is_null().to_pylist() == [each is None for each in sets]
    exact = [each is not None and str(each) == text for each, text in zip(sets, texts, strict=True)]
    assert made.is_exact().tolist() == exact
    assert 0.2 < sum(each is None for each in sets) / len(sets) < 0.8


@pytest.mark.long
def test_a_column_says_of_a_mistake_what_a_set_says(texts: list[str]) -> None:
    made = GtidSetColumn.parse(pa.array(texts))
    messages = made.errors().to_pylist()
    for row, text in enumerate(texts):
        found, expected = made.error(row), refusal(text)
        assert type(found) is type(expected)
        assert str(found) == str(expected)
        assert messages[row] == (None if expected is None else str(expected))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_the_kind_of_text_makes_no_difference(kind: pa.DataType) -> None:
    made = GtidSetColumn.parse(pa.array([f"{UUID}:1-2", None, ""], kind))
    assert written(made) == [f"{UUID}:1-2", None, ""]


def test_slices_chunks_and_dictionaries_make_no_difference() -> None:
    whole = pa.array(["x", f"{UUID}:1", None, f"{UUID}:2", ""])
    expected = [f"{UUID}:1", None, f"{UUID}:2"]
    assert written(GtidSetColumn.parse(whole.slice(1, 3))) == expected
    chunks = pa.chunked_array([whole.slice(1, 1), whole.slice(4, 0), whole.slice(2, 2)])
    assert written(GtidSetColumn.parse(chunks)) == expected
    assert written(GtidSetColumn.parse(pa.chunked_array([], pa.string()))) == []
    assert written(GtidSetColumn.parse(whole.slice(1, 3).dictionary_encode())) == expected
    assert GtidSetColumn.parse(whole.slice(0, 1)).error(0) is not None


def test_numbers_are_no_text() -> None:
    with pytest.raises(pa.ArrowException):
        GtidSetColumn.parse(pa.array([[1]]))


def test_a_place_is_counted_in_characters() -> None:
    text = f"{UUID}:1,é{UUID}"
    with pytest.raises(MalformedGtidSet) as of_set:
        GtidSet.parse(text)
    error = column(text).error(0)
    assert isinstance(error, MalformedGtidSet)
    assert error.text_position == of_set.value.text_position


@pytest.mark.long
@LAWS
@given(st.lists(st.one_of(st.none(), st.text(max_size=60)), max_size=6))
def test_no_text_at_all_stops_a_batch(texts: list[str | None]) -> None:
    good = f"{UUID}:5-7:tag:1"
    try:
        rows = pa.array([*texts, good], pa.string())
    except UnicodeEncodeError:  # half a surrogate pair is no text to Arrow
        return
    made = GtidSetColumn.parse(rows)
    assert written(made)[-1] == good
    for text, found in zip(texts, made.errors().to_pylist(), strict=False):
        expected = None if text is None else refusal(text)
        assert found == (None if expected is None else str(expected))


def test_limits_are_per_row() -> None:
    rows = [
        f"{UUID}:1:3:5",
        f"{UUID}:1",
        f"{UUID}:1" + " " * 60,
        f"{UUID}:1,{OTHER}:1",
        f"{UUID}:2",
    ]
    made = GtidSetColumn.parse(pa.array(rows[:3]), text_bytes_max=60, intervals_max=2)
    assert written(made) == [None, f"{UUID}:1", None]
    many = GtidSetColumn.parse(pa.array(rows[2:]), tsids_max=1)
    assert written(many) == [f"{UUID}:1", None, f"{UUID}:2"]
    assert many.union_all() == GtidSet.parse(f"{UUID}:1-2")
    assert str(many.error(1)) == str(GtidSetTooLarge("TSIDs", 2, 1))
    for row, what in ((0, "intervals and tags"), (2, "bytes of text")):
        error = made.error(row)
        assert isinstance(error, GtidSetTooLarge)
        assert error.what == what


def test_sets_come_back_as_they_went(sets: list[GtidSet | None]) -> None:
    some = sets[::97]
    made = GtidSetColumn.from_sets(some)
    assert len(made) == len(some)
    assert [made.row(row) for row in range(len(made))] == some


def test_rows_whose_text_is_exact_come_as_sets(
    texts: list[str], sets: list[GtidSet | None]
) -> None:
    long = GtidSet.parse(f"{UUID}:" + ":".join(str(number) for number in range(1, 2_000, 2)))
    rows = [*texts[::7], str(long), None]
    made = GtidSetColumn.parse(pa.array(rows))
    expected = [
        each if each is not None and str(each) == text else None
        for each, text in zip(sets[::7], texts[::7], strict=True)
    ]
    chosen = np.arange(len(rows))[::-1]
    found = made.exact_sets(chosen)
    assert found == [*expected, long, None][::-1]
    assert [hash(one) for one in found] == [hash(one) for one in [*expected, long, None][::-1]]
    assert found[1] is not None
    assert str(found[1]) == str(long)


# -- algebra --------------------------------------------------------------------------------------

OPERATIONS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a | b,
    lambda a, b: a & b,
    lambda a, b: a - b,
    lambda a, b: a ^ b,
]
QUESTIONS: list[tuple[Callable[[Any, Any], Any], Callable[[GtidSet, GtidSet], bool]]] = [
    (lambda a, b: a.is_subset(b), lambda a, b: a <= b),
    (lambda a, b: a.equals(b), lambda a, b: a == b),
    (lambda a, b: a.is_disjoint(b), lambda a, b: a.is_disjoint(b)),
]


@pytest.fixture(scope="module")
def pairs(sets: list[GtidSet | None]) -> list[tuple[GtidSet | None, GtidSet | None]]:
    others = list(sets)
    random.Random(3).shuffle(others)
    # Neighbours of themselves, too: most sets of a fleet differ in one place.
    kin = [each | GtidSet.parse(f"{UUID}:30-33") for each in sets if each is not None]
    same = [each for each in sets if each is not None]
    return [*zip(sets, others, strict=True), *zip(same, kin, strict=True)]


@pytest.mark.parametrize("operate", OPERATIONS)
def test_operations(
    operate: Callable[[Any, Any], Any], pairs: list[tuple[GtidSet | None, GtidSet | None]]
) -> None:
    left, right = (GtidSetColumn.from_sets(side) for side in zip(*pairs, strict=True))
    expected = [None if a is None or b is None else str(operate(a, b)) for a, b in pairs]
    assert written(operate(left, right)) == expected


@pytest.mark.parametrize(("ask", "of_sets"), QUESTIONS)
def test_questions(
    ask: Callable[[Any, Any], Any],
    of_sets: Callable[[GtidSet, GtidSet], bool],
    pairs: list[tuple[GtidSet | None, GtidSet | None]],
) -> None:
    left, right = (GtidSetColumn.from_sets(side) for side in zip(*pairs, strict=True))
    expected = [None if a is None or b is None else of_sets(a, b) for a, b in pairs]
    assert ask(left, right).to_pylist() == expected
    assert True in expected
    assert False in expected


def test_columns_of_two_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 and 1 rows"):
        column("", "") | column("")


def test_any_row_against_any_other() -> None:
    left, right = column(f"{UUID}:1-5", ""), column(f"{UUID}:1-4", f"{UUID}:1-9")
    rows, others = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert left.is_subset_at(rows, right, others).tolist() == [False, True, True, True]


def test_measures(sets: list[GtidSet | None]) -> None:
    made = GtidSetColumn.from_sets(sets)
    known = [(row, each) for row, each in enumerate(sets) if each is not None]
    counts, intervals, tsids = (
        each.to_pylist() for each in (made.gtid_count(), made.interval_count(), made.tsid_count())
    )
    holes, filled = written(made.holes()), written(made.filled())
    for row, each in known:
        assert counts[row] == each.gtid_count
        assert intervals[row] == each.interval_count
        assert tsids[row] == each.tsid_count
        assert holes[row] == str(each.holes())
        assert filled[row] == str(each.filled())
    nulls = [row for row, each in enumerate(sets) if each is None]
    assert {counts[row] for row in nulls} == {intervals[row] for row in nulls} == {None}
    assert made.union_all() == GtidSet.union_of(each for _, each in known)


def test_counts_do_not_wrap() -> None:
    tags = ":".join(f"t{number}:1-{GNO_MAX}" for number in range(5))
    (count,) = column(f"{UUID}:1-{GNO_MAX}:{tags}").gtid_count().to_pylist()
    assert count == 6 * GNO_MAX > 2**64


def test_what_one_server_committed() -> None:
    made = column(f"{UUID}:1-3:tag:7,{OTHER}:5", f"{OTHER}:1", None)
    words = uuid_words(pa.array([UUID, OTHER, UUID]))
    assert words.exact.all()
    assert written(made.from_uuid(words.high, words.low)) == [
        f"{UUID}:1-3:tag:7",
        f"{OTHER}:1",
        None,
    ]
    assert written(made.without_uuid(words.high, words.low)) == [f"{OTHER}:5", "", None]


def test_only_a_uuid_as_servers_write_it_is_exact() -> None:
    odd = [UUID.upper(), UUID.replace("-", ""), "{" + UUID + "}", UUID[:-1], UUID + "0", "", None]
    assert uuid_words(pa.array([UUID, *odd])).exact.tolist() == [True] + [False] * len(odd)


def test_rows_can_be_taken_in_any_order() -> None:
    made = column(f"{UUID}:1", None, f"{UUID}:3:5")
    taken = made.take(np.array([2, 0, 2, 1, -1]))
    assert written(taken) == [f"{UUID}:3:5", f"{UUID}:1", f"{UUID}:3:5", None, None]
    with pytest.raises(IndexError):
        made.take(np.array([3]))
    with pytest.raises(IndexError):
        made.row(3)


def test_a_column_cannot_be_changed() -> None:
    made = column(f"{UUID}:1")
    with pytest.raises(ValueError, match="read-only"):
        made.is_exact()[0] = False
    assert repr(made) == "<GtidSetColumn of 1 rows, 0 null>"


def test_disorder_of_any_size_is_put_in_order() -> None:
    rng = random.Random(5)
    uuids = [f"{number:08x}-0000-0000-0000-000000000000" for number in range(300)]
    entries = [
        f"{rng.choice(uuids)}:{start}-{start + rng.randrange(9)}"
        for start in rng.choices(range(1, 5_000), k=20_000)
    ]
    text = ",".join(entries)
    assert written(column(text)) == [str(GtidSet.parse(text))]
