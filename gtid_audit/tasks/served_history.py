"""The history file of the service: findings of audits that end at any time, and its memory.

1. Many clusters may be audited per second, and a transaction waits for the disk. So audits that end
   while another one is being recorded wait, and are recorded together in the next transaction.
2. An audit is recorded before its result is shown: what was shown once is in the file.
"""

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeVar
from uuid import UUID

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.compared_restarts import (
    MALFORMED,
    difference_from_plain,
    difference_to_plain,
)
from gtid_audit.tasks.kept_history import KeptHistory
from gtid_audit.tasks.merged_memory import MemoryChanges
from topology.adapters.history_file import Episode, UnusableHistory
from topology.adapters.remembered_entries import RememberedEntry, read_entries, write_entries
from topology.catalogue.findings import ClusterAudit
from topology.documents.records import time_from_text, time_to_text
from topology.questions.contents_to_compare import Remembered

_LOOK: Final = "look"
_SUSPECTS: Final = "suspects"
_DIFFERENCES: Final = "differences"
_REPORTED: Final = "reported"

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True)
class _Waiting:
    """One audit that is to be recorded, and what came of it."""

    audit: ClusterAudit
    dated: ClusterAudit | None = None
    problem: Exception | None = None
    is_done: threading.Event = field(default_factory=threading.Event)


class ServedHistory:
    """A history file that many threads use."""

    def __init__(self, kept: KeptHistory) -> None:
        assert not kept.of_servers, "the service audits clusters of a fleet file"
        self._kept = kept
        self._recording = threading.Lock()
        self._queue_lock = threading.Lock()
        self._queue: list[_Waiting] = []

    def dated(self, audit: ClusterAudit) -> ClusterAudit:
        """Record an audit; return it with its history. Raises UsageProblem."""
        mine = _Waiting(audit)
        with self._queue_lock:
            self._queue.append(mine)
        with self._recording:
            if not mine.is_done.is_set():
                self._record_all()
        if mine.problem is not None:
            raise mine.problem
        assert mine.dated is not None, "recorded, or there is a problem"
        return mine.dated

    def _record_all(self) -> None:
        with self._queue_lock:
            waiting, self._queue = self._queue, []
        try:
            dated = self._kept.dated([each.audit for each in waiting])
        except Exception as problem:  # noqa: BLE001 - each audit of the transaction raises it
            for each in waiting:
                each.problem = problem
        else:
            for each, one in zip(waiting, dated, strict=True):
                each.dated = one
        for each in waiting:
            each.is_done.set()

    def open_findings(self, cluster: str) -> tuple[Episode, ...]:
        """Return the findings of a cluster that earlier audits left open. Raises UsageProblem."""
        try:
            return self._kept.file.open_episodes(f"cluster {cluster}")
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem

    # -- the memory (served_memory.MemoryStore) ----------------------------------------------------

    def load(self) -> Remembered:
        """Return what the file remembers. Raises UsageProblem."""
        try:
            entries = read_entries(self._kept.file)
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem
        try:
            return Remembered(
                {UUID(each.key): time_from_text(each.value) for each in _of(entries, _LOOK)},
                {each.key: GtidSet.parse(each.value) for each in _of(entries, _SUSPECTS)},
                {
                    each.key: tuple(map(difference_from_plain, json.loads(each.value)))
                    for each in _of(entries, _DIFFERENCES)
                },
                {UUID(each.key): GtidSet.parse(each.value) for each in _of(entries, _REPORTED)},
            )
        except MALFORMED as error:
            raise UsageProblem(
                f"{self._kept.file.path}: not a record of earlier audits: {error!r}"
            ) from error

    def store(self, changes: MemoryChanges) -> None:
        """Store entries beside the others, and remove those that are None. Raises UsageProblem."""
        texts: dict[str, Mapping[str, str | None]] = {
            _LOOK: _texts(changes.looks, time_to_text),
            _SUSPECTS: _texts(changes.suspects, str),
            _DIFFERENCES: _texts(
                changes.differences,
                lambda found: json.dumps([difference_to_plain(one) for one in found]),
            ),
            _REPORTED: _texts(changes.reported, str),
        }
        entries = [
            RememberedEntry(kind, key, value)
            for kind, values in texts.items()
            for key, value in values.items()
            if value is not None
        ]
        removed = [
            (kind, key)
            for kind, values in texts.items()
            for key, value in values.items()
            if value is None
        ]
        try:
            with self._recording:
                write_entries(self._kept.file, entries, gone=removed)
        except UnusableHistory as problem:
            raise UsageProblem(str(problem)) from problem


def _texts(
    values: Mapping[Key, Value | None], text_of: Callable[[Value], str]
) -> dict[str, str | None]:
    """Return values as text, by the text of their keys; None stays None."""
    return {str(key): None if each is None else text_of(each) for key, each in values.items()}


def _of(entries: Iterable[RememberedEntry], kind: str) -> list[RememberedEntry]:
    return [each for each in entries if each.kind == kind]
