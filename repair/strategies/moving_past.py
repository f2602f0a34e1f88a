"""Moves a channel past an event that no server can apply: strategy `position_bypass` (A1)."""

from gtid import GtidSet
from repair.model.actions import AutoPositionOn, InjectEmpty, MovePast
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.strategies.resuming import fetched_as_well


def position_bypass(case: Case) -> Outcome:
    """Plan to move past the event, fill the gap, and switch to auto-position, in this order."""
    event, replica, channel = case.event, case.replica, case.channel
    if replica is None or channel is None:
        return Refusal("the replica, or its channel, could not be read")
    if event is None:
        return Refusal(
            "the failing event was not found in the source's log, or could not be read there: a"
            " position must not be guessed"
        )
    if case.finding.code == "A3" and not case.is_chosen:
        return Refusal(
            f"the applier stopped before {event.gtid}, which the source logged with error"
            f" {event.error_code}. The channel reports only error 1756, so read the worker's error"
            " in the error log first. If it reports different errors, select --strategy"
            " A3=position_bypass"
        )
    skipped = event.before - replica.executed
    if skipped:
        return Refusal(
            f"{skipped.shortened()} is before the failing event in the log and not executed: the"
            " parallel applier left gaps; close them first (START … UNTIL SQL_AFTER_MTS_GAPS)"
        )
    gtid = GtidSet.of(event.gtid)
    if again := fetched_as_well(replica, channel, gtid):
        return Refusal(
            f"the applier has passed {again.shortened()}, which {replica.name} does not have in"
            " gtid_executed: with auto-position it would fetch these again, and their rows may be"
            " there (RESET BINARY LOGS AND GTIDS). Compare them first (`gtid-audit repair"
            " check-data --as-they-are`). If they are there, select --strategy H8=inject_empty,"
            " and plan again after it. If they are missing, continue behind the event by hand:"
            f" with a file position ({event.end}), then audit and plan again"
        )
    return Proposal(
        (
            MovePast(replica.name, channel.name, event),
            InjectEmpty(replica.name, gtid, may_be_executed=True),
            AutoPositionOn(replica.name, channel.name, filled=gtid),
        )
    )
