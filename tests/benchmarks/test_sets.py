"""The generated sets are what the benchmarks say they are."""

import numpy as np
import pyarrow as pa

from benchmarks.generate.draws import Draws
from benchmarks.generate.numbers import GeneratedFleet
from benchmarks.generate.sets import even_set, pairs_of_sets, uneven_set
from benchmarks.generate.texts import Family, Gaps, set_texts, uuid_characters
from gtid import GtidSet


def test_fragmented_sets_have_as_many_intervals_and_are_canonical() -> None:
    uneven = [uneven_set(5_000, seed=seed) for seed in (1, 2)]
    even = [even_set(5_000, start=start) for start in (1, 3)]
    for text in (*uneven, *even):
        parsed = GtidSet.parse(text)
        assert (parsed.tsid_count, parsed.interval_count, str(parsed)) == (1, 5_000, text)
    assert not GtidSet.parse(uneven[0]).is_disjoint(GtidSet.parse(uneven[1]))
    assert GtidSet.parse(uneven[0]) - GtidSet.parse(uneven[1])
    assert GtidSet.parse(even[0]).is_disjoint(GtidSet.parse(even[1]))
    assert uneven_set(5_000, seed=1) == uneven[0]


def test_pairs_have_something_that_the_other_has_not() -> None:
    sources, replicas = pairs_of_sets(300, seed=7)
    there = back = 0
    for source, replica in zip(sources.to_pylist(), replicas.to_pylist(), strict=True):
        left, right = GtidSet.parse(source), GtidSet.parse(replica)
        assert (str(left), str(right)) == (source, replica)
        assert left & right
        there += bool(left - right)
        back += bool(right - left)
    assert there > 200
    assert back > 50


def test_cutting_at_and_in_holes() -> None:
    """Every cut of two UUIDs with holes and a gap, against the algebra."""
    high = np.array([[2, 1]], dtype=np.uint64)
    uuids = uuid_characters(high, high)
    names = ["".join(map(chr, uuids[0, slot])) for slot in (0, 1)]
    family = Family(
        uuids=uuids,
        order=np.array([[1, 0]]),
        uuid_counts=np.array([2]),
        hole_slots=np.array([[0, 0, 1, -1]]),
        hole_lows=np.array([[3, 6, 1, 2]]),
        hole_highs=np.array([[5, 7, 3, 9]]),
    )
    cuts = [(low, high) for low in range(1, 12) for high in range(1, 13)]
    lows = np.array([(low, 1) for low, _ in cuts])
    highs = np.array([(high, 5) for _, high in cuts])
    count = len(cuts)
    gaps = Gaps(np.full(count, 0), np.full(count, 9), np.full(count, 11))
    texts = set_texts(family, np.zeros(count, dtype=np.int64), lows=lows, highs=highs, gaps=gaps)
    holes = GtidSet.parse(f"{names[0]}:3-4:6:9-10")
    for (low, high_), text in zip(cuts, texts.to_pylist(), strict=True):
        whole = GtidSet.parse(f"{names[0]}:{low}-{high_ - 1}" if high_ > low else "")
        expected = (whole - holes) | GtidSet.parse(f"{names[1]}:3-4")
        assert text == str(expected), (low, high_)


def test_large_numbers_and_no_sets_at_all() -> None:
    top = 2**63 - 1
    family = Family(
        uuids=uuid_characters(
            np.full((1, 1), 2**64 - 1, dtype=np.uint64), np.zeros((1, 1), dtype=np.uint64)
        ),
        order=np.array([[0]]),
        uuid_counts=np.array([1]),
        hole_slots=np.zeros((1, 0), dtype=np.int64),
        hole_lows=np.zeros((1, 0), dtype=np.int64),
        hole_highs=np.zeros((1, 0), dtype=np.int64),
    )
    one = set_texts(
        family,
        np.zeros(2, dtype=np.int64),
        lows=np.array([[1], [top - 1]]),
        highs=np.array([[top], [top]]),
        gaps=Gaps.none(2),
    )
    uuid = "ffffffff-ffff-ffff-0000-000000000000"
    assert one.to_pylist() == [f"{uuid}:1-{top - 1}", f"{uuid}:{top - 1}"]
    nothing = np.zeros((0, 1), dtype=np.int64)
    none = set_texts(family, nothing[:, 0], lows=nothing, highs=nothing, gaps=Gaps.none(0))
    assert none.equals(pa.array([], pa.string()))


def test_draws_are_spread_and_their_own() -> None:
    draws = Draws(seed=7, first=1_000, count=20_000)
    values = draws.between("a", 3, 6)
    assert set(values.tolist()) == {3, 4, 5, 6}
    assert all(4_500 < (values == value).sum() < 5_500 for value in (3, 4, 5, 6))
    assert not np.array_equal(draws.bits("a"), draws.bits("a", 1))
    assert not np.array_equal(draws.bits("a"), Draws(8, 1_000, 20_000).bits("a"))
    later = Draws(seed=7, first=1_500, count=10)
    assert np.array_equal(draws.bits("a")[500:510], later.bits("a"))
    assert GeneratedFleet(pairs=1).seed == 7
