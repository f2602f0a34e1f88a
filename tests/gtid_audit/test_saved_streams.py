"""Files of what a plan leaves out: written once, or the reason, or an end if the disk is full."""

from __future__ import annotations

import errno
from typing import IO

import pytest

from binlog.errors import LimitExceeded
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.saved_streams import SavedStreams
from repair.model.strategy_case import SavedContent, StreamedContent
from tests.repair.build import gtids

LONG = StreamedContent("content-of-E1-1.sql", "1", "b", gtids("b:1-3000"))


def streams(monkeypatch: pytest.MonkeyPatch, *outcomes: bytes | Exception) -> SavedStreams:
    """Streams whose files have these contents, or whose writing fails, one after the other."""
    left = list(outcomes)

    def write(_self: SavedStreams, _saved: StreamedContent, file: IO[bytes]) -> None:
        outcome = left.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        file.write(outcome)

    monkeypatch.setattr(SavedStreams, "_write", write)
    return SavedStreams({}, seconds_max=1.0, say=print)


def test_a_file_is_written_once_and_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"x" * (1024**2 + 1)
    found = streams(monkeypatch, content)
    for _ in range(2):
        assert found.check([SavedContent("content-of-E1-2.sql", "short"), LONG]) == {}
        assert [len(each) for each in found.parts(LONG)] == [1024**2, 1]


def test_what_cannot_be_written_has_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = LimitExceeded(name="bytes_max", limit=1, what="what is kept")
    found = streams(monkeypatch, refused, ConnectionResetError("reset"))
    assert found.check([LONG])["1"].startswith("b: ")
    assert found.check([LONG]) == {"1": "b: reset"}


def test_a_full_disk_ends_the_plan_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan would otherwise say that the content cannot be saved, which is not so."""
    found = streams(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(UsageProblem, match=r"content-of-E1-1.sql: .* set TMPDIR to a directory"):
        found.check([LONG])
