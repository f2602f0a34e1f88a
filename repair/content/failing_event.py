"""The event that stops an applier: what it is, and how it is recognized.

1. Pure: the input is transactions and the applier's error text; an adapter reads both.
2. An event is returned only if everything in the error text matches it. A wrong position would skip
   a client's data.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from binlog.transactions import Transaction
from gtid import Gtid, GtidSet
from topology.readings.hidden_passwords import without_secrets
from topology.readings.snapshot import LogPosition

# sql/log_event.cc, Query_log_event::do_apply_event: "Error on …: message (format)='…' error
# code=1050 ; Error on …: actual message='no error', error code=0". The first code is the source's.
_SOURCE_ERROR = re.compile(r"error code=(?P<code>[0-9]+)")
# sql/rpl_rli_pdb.cc, do_report of a worker: "Worker 1 failed executing transaction '…' at source
# log binlog.000001, end_log_pos 1358".
_WORKER_GTID = re.compile(r"failed executing transaction '(?P<gtid>[^']+)'")
_QUERY = re.compile(r"Query: ?'(?P<sql>.*)", re.DOTALL)
# The server truncates the text of an error; this much of the statement is compared.
_COMPARED_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class FailingEvent:
    """A transaction in the source's log that was logged with an error.

    `before` holds the GTIDs between the applier's reported position and this event. With a
    multithreaded applier that position is only a low-water mark.
    """

    source: str
    source_uuid: UUID
    gtid: Gtid
    start: LogPosition
    end: LogPosition  # of the next event: where to continue
    error_code: int
    schema: str
    statement: str
    before: GtidSet

    def __post_init__(self) -> None:
        if self.error_code == 0:
            raise ValueError(f"{self.gtid} was logged without an error: nothing to move past")
        if not self.start < self.end:
            raise ValueError(f"{self.gtid} ends at {self.end}, not after {self.start}")


@dataclass(frozen=True, slots=True)
class NoSuchEvent:
    """No event matches the error text, and why."""

    reason: str


def find_failing_event(
    transactions: Iterable[Transaction], *, error_text: str, source: str, source_uuid: UUID
) -> FailingEvent | NoSuchEvent:
    """Return the first of these transactions that was logged with the error in the text.

    `transactions` are the source's, in order, from the applier's position on.
    """
    expected = _SOURCE_ERROR.search(error_text)
    named = _WORKER_GTID.search(error_text)
    before = GtidSet()
    for transaction in transactions:
        if transaction.gtid is None:
            return NoSuchEvent("the source's log has a transaction without a GTID here")
        if named is not None and str(transaction.gtid) != named["gtid"].lower():
            before |= GtidSet.of(transaction.gtid)
            continue
        if transaction.error_code == 0:
            if named is not None:
                return NoSuchEvent(f"{transaction.gtid} was logged without an error")
            before |= GtidSet.of(transaction.gtid)
            continue
        if not transaction.is_complete:
            return NoSuchEvent(f"{transaction.gtid} has no end in the log")
        if expected is None or int(expected["code"]) != transaction.error_code:
            return NoSuchEvent(
                f"{transaction.gtid} was logged with error {transaction.error_code}, which the"
                " applier's error text does not have"
            )
        if not _mentions(error_text, transaction):
            return NoSuchEvent(
                f"the applier's error text quotes another statement: {transaction.gtid}"
            )
        return event_of(transaction, source=source, source_uuid=source_uuid, before=before)
    return NoSuchEvent("no transaction logged with an error follows the applier's position")


def event_of(
    transaction: Transaction, *, source: str, source_uuid: UUID, before: GtidSet
) -> FailingEvent:
    """Convert a transaction that was logged with an error to the event that a plan refers to."""
    assert transaction.gtid is not None, "only transactions with a GTID are planned for"
    start = LogPosition.of(file=transaction.file, position=transaction.start)
    end = LogPosition.of(file=transaction.file, position=transaction.end)
    assert start is not None, "a log file has a name with a number"
    assert end is not None, "a log file has a name with a number"
    failed = next((each for each in transaction.statements if each.error_code), None)
    return FailingEvent(
        source=source,
        source_uuid=source_uuid,
        gtid=transaction.gtid,
        start=start,
        end=end,
        error_code=transaction.error_code,
        schema=failed.schema if failed else "",
        statement=without_secrets(failed.sql) if failed else "",
        before=before,
    )


def _mentions(error_text: str, transaction: Transaction) -> bool:
    """Return whether the statement in the error text is one of the transaction's."""
    quoted = _QUERY.search(error_text)
    if quoted is None:  # truncated by the server: error code and position must suffice
        return True
    shown = quoted["sql"]  # authentication data is hidden in it
    statements = (without_secrets(each.sql) for each in transaction.statements)
    return any(
        shown.startswith(statement[:_COMPARED_CHARACTERS])
        or statement.startswith(shown.rstrip("'")[:_COMPARED_CHARACTERS])
        for statement in statements
    )
