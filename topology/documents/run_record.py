"""The record that a stored run has of itself, and the reasons to refuse an audit of it.

    {"schema_version": 1, "partial": null, "cluster_count": 2,
     "files": {"part-00000.parquet": 8}, "beside": ["_contents.json"]}

1. The writer records how many rows each file has, which other files belong to the run, and whether
   the run covers the whole fleet. A run with a missing part does not match its record. Without the
   compared contents, for example, two servers with different rows would be OK.
2. A run describes one time span. `refusal` compares that span with a clock that the caller reads.
   An audit of an old run would report last week's state as the current one.
3. This module reads no files and no clock.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from gtid.counted_nouns import counted

SCHEMA_VERSION: Final = 1
MAX_AGE_DEFAULT: Final = "24h"  # a run every night, and none missed
# The clocks of two synchronized machines differ by less. A later time is an error.
CLOCK_DIFFERENCE_MAX: Final = timedelta(minutes=1)


class MalformedRunRecord(ValueError):
    """A text that is not the record of a run."""


class NewerRunRecord(MalformedRunRecord):
    """A record of a later version of gtid-audit."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What the run was to contain, and what it contains."""

    cluster_count: int
    files: Mapping[str, int] = field(default_factory=dict)  # rows by file name
    # The clusters that were selected; None: the whole fleet file.
    partial: tuple[str, ...] | None = None
    beside: tuple[str, ...] = ()  # names of the other files of the run

    def to_text(self) -> str:
        """Write the record as one JSON document: the same record gives the same bytes."""
        document = {
            "schema_version": SCHEMA_VERSION,
            "partial": None if self.partial is None else sorted(self.partial),
            "cluster_count": self.cluster_count,
            "files": {name: self.files[name] for name in sorted(self.files)},
            "beside": sorted(self.beside),
        }
        return json.dumps(document, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_text(cls, text: str) -> "RunRecord":
        """Read what `to_text` writes. Raises MalformedRunRecord, NewerRunRecord."""
        try:
            found: Any = json.loads(text)
        except (json.JSONDecodeError, RecursionError) as error:
            raise MalformedRunRecord(f"not JSON: {error}") from error
        if not isinstance(found, dict) or not _is_count(found.get("schema_version")):
            raise MalformedRunRecord("expected a record with a schema_version")
        version = found.pop("schema_version")
        if version > SCHEMA_VERSION:
            raise NewerRunRecord(
                f"this run has schema version {version}, and this gtid-audit reads versions up to"
                f" {SCHEMA_VERSION}. Audit it with the newer gtid-audit that wrote it"
            )
        if found.keys() != {"partial", "cluster_count", "files", "beside"}:
            raise MalformedRunRecord("expected the fields partial, cluster_count, files and beside")
        partial, files = found["partial"], found["files"]
        if partial is not None and not _are_texts(partial):
            raise MalformedRunRecord("partial: expected null or a list of names")
        if not isinstance(files, dict) or not all(map(_is_count, files.values())):
            raise MalformedRunRecord("files: expected row counts by file name")
        if not _is_count(found["cluster_count"]):
            raise MalformedRunRecord("cluster_count: expected a number")
        if not _are_texts(found["beside"]):
            raise MalformedRunRecord("beside: expected a list of names")
        selected = None if partial is None else tuple(partial)
        return cls(found["cluster_count"], files, selected, tuple(found["beside"]))

    def missing_beside(self, there: Callable[[str], bool]) -> str | None:
        """Return which file beside the rows is missing; None if all exist."""
        missing = [name for name in sorted(self.beside) if not there(name)]
        return f"the file {missing[0]} is missing" if missing else None

    def mismatch(self, rows: Mapping[str, int]) -> str | None:
        """Return how the files of a run differ from this record; None if they do not."""
        for name in sorted({*self.files, *rows}):
            if name not in rows:
                return f"the file {name} is missing"
            if name not in self.files:
                return f"the file {name} was added after the run was written"
            if rows[name] != self.files[name]:
                return f"{name} has {rows[name]:,} rows, and was written with {self.files[name]:,}"
        return None


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


@dataclass(frozen=True, slots=True)
class ReadSpan:
    """The end times of a run's readings: the first and the last over all rows."""

    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class AgeLimit:
    """The maximum age of a run's readings, and the time against which it is measured."""

    now: datetime
    max_age: timedelta | None  # None: no limit


def refusal(
    run: str, *, moment: datetime, record: RunRecord | None, span: ReadSpan | None, limit: AgeLimit
) -> str | None:
    """Return why an audit of this run would not report the current state; None if it would.

    `moment` is the time in the name of the run, `span` comes from its rows.
    """
    if record is None:
        return (
            f"{run} has no record of the clusters that it should contain: an earlier version of"
            " gtid-audit wrote it. Take a new snapshot"
        )
    if span is None:
        return f"{run} does not contain the time of any reading. Take a new snapshot"
    latest = max(moment, span.last)
    if latest > limit.now + CLOCK_DIFFERENCE_MAX:
        return (
            f"{run} is from the future: its latest time is {_time(latest)} and now it is"
            f" {_time(limit.now)}. Check the clocks of this machine and of the machine that wrote"
            " the run. If the time of the run is wrong, move its directory to another place"
        )
    if abs(moment - span.last) > CLOCK_DIFFERENCE_MAX:
        return (
            f"{run} has a name that does not match its content: its last reading ended at"
            f" {_time(span.last)}. Restore its name, or move its directory to another place"
        )
    if limit.max_age is not None and limit.now - span.first > limit.max_age:
        age = limit.now - span.first
        return (
            f"{run} is too old: its oldest reading is {in_words(age)} old, and the limit is"
            f" {in_words(limit.max_age)}. Take a new snapshot, or set a higher limit with"
            " `--max-age`"
        )
    return None


def _time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))


def in_words(span: timedelta) -> str:
    """Return a time span as text in its two largest units: `7 days 3 hours`."""
    rest = int(span.total_seconds())
    said: list[str] = []
    for unit, seconds in _UNITS:
        count, rest = divmod(rest, seconds)
        if count:
            said.append(counted(count, unit))
    return " ".join(said[:2]) or "0 seconds"


_SECONDS_OF: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_AGE_DAYS_MAX: Final = 36_500


def age_from_text(text: str) -> timedelta | None:
    """Read `24h`, `90m`, `7d`, `3600s`, or `none` for no limit. Raises ValueError."""
    if text == "none":
        return None
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdigit()) or unit not in _SECONDS_OF:
        raise ValueError("expected a time span like 24h, 90m or 7d, or none")
    seconds = int(number) * _SECONDS_OF[unit] if len(number) < 12 else 0  # noqa: PLR2004 - digits
    if not 0 < seconds <= _AGE_DAYS_MAX * 86_400:
        raise ValueError(f"expected more than 0 seconds and at most {_AGE_DAYS_MAX:,} days")
    return timedelta(seconds=seconds)
