"""A row conflict (A2) under a GTID that the replica has executed since: a start is the repair.

How it works
------------
Two channels deliver one transaction, and both appliers stop at the same row. Once the conflict is
repaired on one channel, that channel executes the transaction. The other one keeps its error until
it is started. Then it skips the GTID, and continues after it:

    from_b    A:5 stopped -> the row is set, A:5 is executed -> A:6, A:7
    from_c    A:5 stopped .................................... -> a start skips A:5

A GTID that failed and counts as executed may also be there in part: tables without transactions
(MyISAM) keep the rows before the one that failed. Sets do not separate the two. So the start is a
default only if all rows of the transaction are on the replica: as it left them, or as they are on
the source now, changed by later transactions.
"""

from dataclasses import replace

from repair.content.transaction_content import RowState
from repair.model.strategy_case import MAY_DIFFER, Case, Outcome, Refusal
from repair.strategies.conflicts import not_to_go_on, resolve_conflict
from repair.strategies.starting import start_channel
from topology.readings.content_class import ContentClass


def resolve_or_start(case: Case) -> Outcome:
    """Plan to set the rows as the transaction expects them; if it is executed, only a start."""
    if not case.is_executed_since or case.receiving is None or case.source is None:
        return resolve_conflict(case)
    replica, channel = case.receiving
    what, code = case.wanted.shortened(), case.finding.code
    if (why := not_to_go_on(case)) is not None:
        return Refusal(why)
    missing = _may_be_missing(case)
    if missing and not case.is_chosen:
        return Refusal(
            f"{what} counts as executed on {replica.name}, and a start continues after it:"
            f" {missing}. Compare the rows of both servers, write by hand what is missing on"
            f" {replica.name} after `SET SESSION sql_log_bin = 0`, then select --strategy"
            f" {code}=resolve_conflict, which starts the channel"
        )
    if (channel.until or channel.held_back_seconds) and not case.is_chosen:
        return Refusal(
            "an operator may have wanted the applier to stop (UNTIL, or SOURCE_DELAY): find out"
            f" why, then select --strategy {code}=resolve_conflict, which starts the channel"
        )
    outcome = start_channel(case)
    if isinstance(outcome, Refusal) or not missing:
        return outcome
    warning = (
        f"{MAY_DIFFER}{what} counts as executed on {replica.name}, and the start continues after"
        f" it: {missing}. What is missing stays missing"
    )
    return replace(outcome, warnings=(warning, *outcome.warnings))


def _may_be_missing(case: Case) -> str:
    """Return why rows of the executed transactions may be missing; "" if all are there."""
    content, replica = case.content, case.replica
    assert content is not None, "the transactions were identified"
    assert replica is not None, "the transactions are executed there"
    if case.wanted <= content.of_class(ContentClass.EMPTY, ContentClass.HARMLESS):
        return ""
    if content.read_from is None:
        return f"its rows were not compared ({content.unread})"
    on = content.state_on(replica.name)
    if on.state is RowState.AS_AFTER or on.is_like_source:
        return ""
    if on.state is RowState.UNREAD:
        return f"its rows were not compared ({on.why})"
    return f"its rows are not as it left them, and not as on {content.read_from} ({on.why})"
