"""Lets a source send again what a replica is missing: strategies `refetch`, `auto_position_on`.

1. Both switch the channel to auto-position. With it, the source sends all that is missing. Some
   channels are not switched for any content (switch_doubts.py).
2. Rows that do not match, or were not read, refuse the default (fetched_conflicts.py). Some starts
   are never planned: rows that are already there would be written a second time.
"""

from dataclasses import replace

from gtid import GtidSet
from repair.content.failing_event import FailingEvent
from repair.doubts.compared_rows import compared_waiting, rows_of
from repair.doubts.doubtful_sources import may_ask_a_copy
from repair.doubts.rows_there import gaps_may_come_back
from repair.doubts.start_doubts import as_counted, came_beside
from repair.doubts.switch_doubts import not_to_be_switched, warnings_of_switch
from repair.model.actions import AutoPositionOn, InjectEmpty
from repair.model.offered_strategies import offered
from repair.model.replication_model import ModelChannel, ModelServer
from repair.model.semi_sync import until_committed
from repair.model.settled_model import delivery
from repair.model.strategy_case import MAY_DIFFER, Case, Outcome, Proposal, Refusal
from repair.strategies.fetched_conflicts import (
    Fetch,
    compared_fetched,
    conflict_of,
    never_fetched,
    older_version,
)
from repair.strategies.starting import misfit_of_waiting


def refetch(case: Case) -> Outcome:
    """Plan to let the source send again what is missing, if its rows do not conflict."""
    receiving, source = case.receiving, case.source
    if receiving is None:
        return Refusal("the replica, or its channel, could not be read")
    if source is None:
        return Refusal("the source is not a server of this snapshot: what it purged is not known")
    replica, channel = receiving
    if (why := not_to_be_switched(case, replica, channel, source)) is not None:
        return Refusal(why)
    gone = case.finding.gtid_set - replica.executed - source.available
    if committing := gone & source.committing:
        return Refusal(
            f"{source.name} is still committing {committing.shortened()} (gtid_owned)."
            f" {until_committed(source)}"
        )
    if gone:
        return Refusal(f"{source.name} can no longer send {gone.shortened()}")
    # What another channel delivers in the model is fetched here as well, if it arrives first.
    arriving = (
        case.finding.gtid_set - case.was_there(replica.name)
        if case.is_hole
        else _coming(case, replica, channel, source)
    )
    fetch = Fetch(case, replica, channel, source, arriving)
    outcome = _if_rows_fit(fetch) if arriving else _if_waiting_fits(fetch)
    if isinstance(outcome, Refusal):
        return outcome
    warnings = (*warnings_of_switch(case, replica, channel, source), *outcome.warnings)
    outcome = replace(outcome, warnings=warnings)
    if case.event is None:
        return outcome
    return _past_the_event(fetch, case.event, outcome.warnings)


def _if_rows_fit(fetch: Fetch) -> Outcome:
    """Plan the switch unless the rows of what is fetched do not match."""
    case = fetch.case
    if (certain := never_fetched(fetch) or older_version(fetch)) is not None:
        return Refusal(certain)
    conflict = conflict_of(fetch)
    if conflict is not None and not case.is_chosen:
        return _refusal_until_compared(case, conflict)
    may_be_a_copy = tuple(may_ask_a_copy(case))
    if conflict is not None:
        why = (
            f"{MAY_DIFFER}{conflict}: fetched again, they may stop the applier or overwrite rows"
            " with an older version. In a table without a key they may add rows a second time."
            " Compare the rows afterwards (gtid-audit repair check-data)"
        )
        return Proposal((fetch.switch,), (why, *may_be_a_copy))
    compared = (*compared_fetched(fetch), *compared_waiting(case, fetch.replica, fetch.channel))
    switch = replace(
        fetch.switch,
        rows=rows_of(compared),
        compared_at=case.was_there(fetch.replica.name) if compared else None,
    )
    come_back = gaps_may_come_back(case, fetch.replica, fetch.channel, fetch.arriving)
    beside = came_beside(case, fetch.switch, case.content) if case.content is not None else ()
    return Proposal((switch,), (*come_back, *beside, *may_be_a_copy))


def _if_waiting_fits(fetch: Fetch) -> Outcome:
    """Plan the switch if nothing of the finding is fetched; it may start a stopped channel.

    A receiver that runs and is not connected may have nothing to return to: then the switch starts
    it as well.
    """
    case, channel = fetch.case, fetch.channel
    why = _may_be_skipped(fetch)
    if why is None and not (channel.running and channel.is_connected):
        why = misfit_of_waiting(case, fetch.switch)
    if why is None:
        return Proposal((fetch.switch,))
    if not case.is_chosen:
        return _refusal_until_compared(case, why)
    return Proposal((fetch.switch,), (as_counted(why),))


def _may_be_skipped(fetch: Fetch) -> str | None:
    """Return that an applier may skip what waits, so that the switch fetches it again; or None.

    A counter that was set and used up between the readings shows in neither.
    """
    replica = fetch.replica
    waits = fetch.channel.retrieved - fetch.case.snapshot_executed[replica.name]
    if replica.sends_by_sets or not waits:
        return None
    return (
        f"gtid_mode is not ON on {replica.name}, which permits sql_replica_skip_counter: its"
        f" applier may skip {waits.shortened()}, and auto-position would fetch that after later"
        " transactions. Set gtid_mode to ON and plan again"
    )


def _refusal_until_compared(case: Case, why: str) -> Refusal:
    return Refusal(f"{why}. Compare the rows, then choose with {offered(case)}")


def _past_the_event(fetch: Fetch, event: FailingEvent, warnings: tuple[str, ...]) -> Proposal:
    """Plan the switch with the failing event as an empty transaction: it is executed first.

    If it were fetched again, it would stop the applier; the others of the gap are wanted.
    """
    replica, doomed = fetch.replica.name, GtidSet.of(event.gtid)
    return Proposal(
        (
            InjectEmpty(replica, doomed),
            AutoPositionOn(replica, fetch.channel.name, filled=doomed),
        ),
        (
            *warnings,
            (
                f"{fetch.source.name} logged {event.gtid} with error {event.error_code}, and it"
                " would stop the applier again. The plan commits it as an empty transaction on"
                f" {replica}: compare what it did"
            ),
        ),
    )


def _coming(
    case: Case, replica: ModelServer, channel: ModelChannel, source: ModelServer
) -> GtidSet:
    """Return what a channel with a file position has not delivered (C3): it may have passed it.

    What its source itself had not received when it was read comes later, in the order of its log.
    What was passed is sent again, even if the source did not list it yet when it was read.
    """
    by_sets = replace(channel, auto_position=True, passed=GtidSet(), retrieved=GtidSet())
    coming = delivery(case.model, replica, by_sets)
    # All that was missing when it was read. A step that starts the channel delivers it in the
    # model, but the file position may be after it.
    missing = case.content.wanted if case.content is not None else GtidSet()
    passed = (channel.passed | channel.bypassed) - replica.executed
    return (coming & case.snapshot_executed[source.name]) | missing | passed
