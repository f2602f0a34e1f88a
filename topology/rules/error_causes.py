"""What the error of a stopped thread is (A1 to A4), in the words of an audit.

The server's own text is evidence, and no sentence repeats it: it can have 90 words, and most of
them are the same for every error. The sentence has the cause and the first next step, as `explain`
has them; of a row conflict it has the table and the key.
"""

import re
from typing import Final

from topology.catalogue.explanations import explain_error
from topology.facts.failed_transactions import applier_errno_of, failed_workers
from topology.readings.snapshot import ChannelSnapshot, ThreadState

# sql/log_event.cc, Query_log_event::do_apply_event: the two texts for an error that is not the
# expected one. With this text Last_SQL_Errno is 0 (seen on 5.6.24), so the text is the only sign.
_DIFFERENT_ERRORS: Final = re.compile(
    r"caused different errors on (?:master|source) and (?:slave|replica)", re.IGNORECASE
)
_ROW_CONFLICTS: Final = {1032: "the row does not exist", 1062: "the key already exists"}
_WORKERS_STOPPED: Final = 1756  # ER_MTS_INCONSISTENT_DATA: the coordinator's error for any worker's
_TABLE: Final = re.compile(r"event on table ([^\s;]+\.[^\s;]+);")
_KEY: Final = re.compile(r"Duplicate entry '(.*?)' for key '([^']+)'")
_UNKNOWN: Final = "`gtid-audit explain` does not know it, and the server's text is in the proof."


def cause_of_applier(channel: ChannelSnapshot, text: str) -> tuple[str, str]:
    """Return the code of the finding of a stopped applier, and the cause."""
    if _DIFFERENT_ERRORS.search(text):
        return "A1", (
            "the source logged the statement with an error, and the statement does not fail the"
            " same way on the replica. An empty transaction under its GTID does not help; an"
            " operator must move the applier past it."
        )
    if hides_its_error(channel):
        return "A3", (
            "a worker failed, and the coordinator reports only that (error 1756). The worker's own"
            " error is in the server's error log. It may be a statement that also failed on the"
            " source (A1), a row conflict (A2) or another error. To see it in an audit: STOP SLAVE;"
            " SET GLOBAL slave_parallel_workers = 0; START SLAVE; then audit again."
        )
    errno = applier_errno_of(channel)
    conflict = _ROW_CONFLICTS.get(errno)
    if conflict is not None:
        return "A2", f"{conflict} (error {errno}{_place(text)})."
    own = [each.error for each in failed_workers(channel) if each.errno == errno and each.error]
    return "A3", _cause(errno, own[0] if own else text)


def cause_of_receiver(channel: ChannelSnapshot) -> str:
    """Return how a receiver failed, and the cause."""
    how = "stopped" if channel.receiver is ThreadState.STOPPED else "cannot connect"
    cause = _cause(channel.receiver_errno, channel.receiver_error)
    known = cause.removeprefix(f"the replica {how} ")  # the title of an error that says only this
    return f"{how}: {cause}" if known == cause else f"{how} {known}"


def hides_its_error(channel: ChannelSnapshot) -> bool:
    """Return whether only the coordinator's error is known: before 5.7 no table has a worker's."""
    return channel.applier_errno == _WORKERS_STOPPED and not any(
        worker.error for worker in channel.workers
    )


def _cause(errno: int, text: str) -> str:
    """Return what an error is, what it means, and the first next step."""
    number = f"error {errno}" if errno else "an error without a number"
    found = explain_error(errno, text)
    if found is None:
        return f"{number}. {_UNKNOWN}"
    return f"{found.title} ({number}). {found.meaning} {found.advice[0]}"


def _place(text: str) -> str:
    """Return the table and the key that the text of a row conflict quotes, after a comma."""
    table, key = _TABLE.search(text), _KEY.search(text)
    return (f", table {table[1]}" if table is not None else "") + (
        f", value '{key[1]}' of key {key[2]}" if key is not None else ""
    )
