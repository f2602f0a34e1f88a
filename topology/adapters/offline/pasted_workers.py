"""The applier's workers, from the pasted output of one server. Pure.

5.6 shows only error 1756 for any error of a worker. The error log has the worker's own error, so a
line of it in the file takes the place of the table that 5.7 and later have.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from topology.adapters.hidden_workers import NEEDS_PROCESS, hides_threads
from topology.adapters.offline.facts_of_file import FactsOfFile
from topology.adapters.offline.pasted_tables import PastedRow
from topology.adapters.offline.recognised import PastedKind
from topology.adapters.status import (
    hides_workers,
    may_wait_for_row,
    waiting_for_rows,
    workers_by_channel,
    workers_of_processlist,
)
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import UnreadReason
from topology.readings.version import ServerVersion

_STATEMENT: Final = "the statement `{kind}` of --questions"
_TEXTS: Final = frozenset(
    ("channel", "error", "state", "applying", "applied", "queued", "host", "recovery_error")
)
_WORKER: Final = re.compile(r"Worker (?P<id>\d{1,9}) failed")
_ONLY_REPORTS: Final = 1756  # ER_MTS_INCONSISTENT_DATA: the coordinator's error for any worker's
_HIDDEN: Final = "5.6 shows the workers of its applier only with the privilege PROCESS"


def workers_in(
    facts: FactsOfFile, statuses: Sequence[PastedRow], version: ServerVersion | None
) -> dict[str, list[Any]]:
    """Return the rows of the workers by channel, as adapters/mysql.py does; note what is unread."""
    if version is not None and not dialect_of(version).has_worker_status:
        found = _of_5_6(facts, statuses)
        for row in _logged(facts, statuses):
            found.setdefault("", []).append(row)
        return found
    pasted = facts.last(PastedKind.WORKERS)
    if pasted is None:
        facts.missing(PastedKind.WORKERS, _STATEMENT.format(kind=PastedKind.WORKERS.value))
        return {}
    rows = [typed_row(row) for row in pasted[1].table.rows]
    if hides_threads(rows):
        facts.note("workers", UnreadReason.PRIVILEGE, NEEDS_PROCESS)
    return workers_by_channel(rows)


def _of_5_6(facts: FactsOfFile, statuses: Sequence[PastedRow]) -> dict[str, list[Any]]:
    pasted = facts.last(PastedKind.PROCESSES)
    if pasted is None:
        facts.missing(PastedKind.PROCESSES, _STATEMENT.format(kind=PastedKind.PROCESSES.value))
        return {}
    rows: list[Mapping[str, Any]] = [typed_row(row) for row in pasted[1].table.rows]
    if hides_workers(rows, statuses):
        facts.note("workers", UnreadReason.PRIVILEGE, _HIDDEN)
    if any(map(may_wait_for_row, rows)):
        waits = facts.last(PastedKind.ROW_LOCKS)
        if waits is None:
            facts.missing(PastedKind.ROW_LOCKS, _STATEMENT.format(kind=PastedKind.ROW_LOCKS.value))
        else:
            rows = waiting_for_rows(rows, [typed_row(row) for row in waits[1].table.rows])
    return workers_of_processlist(rows, statuses)


def _logged(facts: FactsOfFile, statuses: Sequence[PastedRow]) -> list[Any]:
    """Return the worker that failed, from the error log, if the status does not show its error."""
    if not any(row.get("Last_SQL_Errno") == str(_ONLY_REPORTS) for row in statuses):
        return []
    errors = [
        each for each in facts.output.logged if each.is_applier and each.errno != _ONLY_REPORTS
    ]
    if not errors:
        return []
    found = _WORKER.search(errors[-1].text)
    return [
        {
            "channel": "",
            "worker_id": int(found["id"]) if found else 0,
            "errno": errors[-1].errno,
            "error": errors[-1].text,
            "state": "",
        }
    ]


def typed_row(row: PastedRow) -> dict[str, Any]:
    """Return a row with numbers as numbers: "0" is not false."""
    return {
        name: int(text)
        if text is not None and name not in _TEXTS and text.isascii() and text.isdigit()
        else text
        for name, text in row.items()
    }
