"""Locating by heads: held to a search that looks into every file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlog.locating.index import HeaderSearch, Span, search_heads
from gtid import GtidSet

U = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"
V = "bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb"
NOTHING = GtidSet()


def _set(text: str) -> GtidSet:
    return GtidSet.parse(text)


class Logs:
    """Files by what each holds; `purged` was logged before the first."""

    def __init__(
        self,
        contents: Sequence[GtidSet],
        *,
        purged: GtidSet = NOTHING,
        unknown: Sequence[int] = (),
    ) -> None:
        self.contents = contents
        self.purged = purged
        self.asked: list[int] = []
        self._unknown = frozenset(unknown)

    def previous_gtids(self, number: int) -> GtidSet | None:
        self.asked.append(number)
        if number in self._unknown:
            return None
        return GtidSet.union_of([self.purged, *self.contents[:number]])

    def search(self, wanted: GtidSet) -> HeaderSearch:
        return search_heads(
            wanted, file_count=len(self.contents), previous_gtids_of=self.previous_gtids
        )


def _one_file_each(count: int) -> list[GtidSet]:
    return [_set(f"{U}:{number + 1}") for number in range(count)]


def test_each_gtid_among_a_thousand_files_takes_at_most_twelve_heads() -> None:
    contents = _one_file_each(1_000)
    growing = [_set(f"{U}:1-{number}") for number in range(1, 1_001)]
    for number in range(1_000):
        asked: list[int] = []

        def previous(file: int, asked: list[int] = asked) -> GtidSet:
            asked.append(file)
            return growing[file - 1] if file else GtidSet()

        found = search_heads(contents[number], file_count=1_000, previous_gtids_of=previous)
        assert found.spans == (Span(number, number + 1, contents[number]),)
        assert found.heads_read == len(asked) == len(set(asked)) <= 11


def test_what_was_before_the_first_file_is_said() -> None:
    logs = Logs([_set(f"{U}:4-5"), _set(f"{U}:6")], purged=_set(f"{U}:1-3"))
    found = logs.search(_set(f"{U}:2-4"))
    assert found.before_first == _set(f"{U}:2-3")
    assert found.spans == (Span(0, 1, _set(f"{U}:4")),)
    assert logs.search(_set(f"{U}:2")).spans == ()


def test_what_no_head_has_is_in_the_last_file_or_nowhere() -> None:
    logs = Logs([_set(f"{U}:1"), _set(f"{U}:2")])
    assert logs.search(_set(f"{U}:9,{V}:1")).spans == (Span(1, 2, _set(f"{U}:9,{V}:1")),)


def test_the_first_head_is_not_read_if_nothing_lies_there() -> None:
    logs = Logs(_one_file_each(8))
    logs.search(_set(f"{U}:8"))
    assert 0 not in logs.asked


def test_nothing_wanted_or_no_file_reads_nothing() -> None:
    assert Logs([]).search(_set(f"{U}:1")) == HeaderSearch(GtidSet(), (), 0)
    assert Logs(_one_file_each(3)).search(GtidSet()) == HeaderSearch(GtidSet(), (), 0)


def test_one_file_needs_one_head() -> None:
    logs = Logs([_set(f"{U}:1")])
    assert logs.search(_set(f"{U}:1")) == HeaderSearch(GtidSet(), (Span(0, 1, _set(f"{U}:1")),), 1)


def test_a_set_over_many_files_reads_no_head_twice() -> None:
    logs = Logs(_one_file_each(64))
    wanted = _set(f"{U}:3:17-19:64")
    found = logs.search(wanted)
    assert [span.first for span in found.spans] == [2, 16, 17, 18, 63]
    assert len(logs.asked) == len(set(logs.asked)) == found.heads_read < 64


@pytest.mark.parametrize(
    "unknown", [(4,), (3, 4, 5), (1, 2, 3, 4, 5, 6, 7), (0, 4), tuple(range(8))]
)
def test_unknown_heads_widen_the_answer_and_never_make_it_wrong(unknown: tuple[int, ...]) -> None:
    contents = _one_file_each(8)
    for number, wanted in enumerate(contents):
        logs = Logs(contents, unknown=unknown)
        [span] = logs.search(wanted).spans
        assert span.gtids == wanted
        assert span.first <= number < span.end
        # No wider than the unknown heads force it to be.
        assert all(within in unknown for within in range(span.first + 1, span.end))
        assert logs.asked.count(4) == 1


_SETS = st.lists(st.integers(1, 12), max_size=3).map(
    lambda numbers: _set(",".join(f"{U if n % 2 else V}:{n}" for n in numbers))
)


@settings(deadline=None)
@given(
    contents=st.lists(_SETS, max_size=9),
    purged=_SETS,
    wanted=_SETS,
    unknown=st.sets(st.integers(0, 8)),
)
def test_every_wanted_gtid_is_where_looking_into_every_file_finds_it(
    contents: list[GtidSet], purged: GtidSet, wanted: GtidSet, unknown: set[int]
) -> None:
    seen = purged
    disjoint = []
    for content in contents:  # a GTID is logged once
        disjoint.append(content - seen)
        seen |= content
    found = Logs(disjoint, purged=purged, unknown=tuple(unknown)).search(wanted)
    parts = [found.before_first, *(span.gtids for span in found.spans)]
    if contents:
        assert GtidSet.union_of(parts) == wanted
    assert sum(part.gtid_count for part in parts) == (wanted.gtid_count if contents else 0)
    ends = [0, *(edge for span in found.spans for edge in (span.first, span.end))]
    assert ends == sorted(ends)
    assert found.before_first <= purged
    if contents and 0 not in unknown:
        assert found.before_first == wanted & purged
    for span in found.spans:
        elsewhere = disjoint[: span.first] + disjoint[span.end :]
        assert not span.gtids & GtidSet.union_of(elsewhere)
    for number, content in enumerate(disjoint):
        spans = [span for span in found.spans if span.first <= number < span.end]
        held = GtidSet.union_of(span.gtids for span in spans)
        assert wanted & content <= held


def test_a_reader_that_fails_is_not_silenced() -> None:
    def previous(_: int) -> GtidSet:
        raise ConnectionError("gone")

    reader: Callable[[int], GtidSet] = previous
    with pytest.raises(ConnectionError, match="gone"):
        search_heads(_set(f"{U}:1"), file_count=5, previous_gtids_of=reader)
