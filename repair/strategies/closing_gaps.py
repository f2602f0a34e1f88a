"""The manual instruction for gaps that parallel workers left (H2, A6).

A start is the answer only if workers left the gap. If that is not proved, or if what waits may not
match the rows for another reason, A7 refuses the start until the rows are compared. H2 must not
recommend it then.
"""

from repair.strategies.instruction_context import Situation, in_order
from topology.catalogue.findings import Grade


def until_after_gaps(situation: Situation) -> str:
    """Return how to close the gaps that a crash of a parallel applier left."""
    words, where = situation.dialect, situation.channel
    stop, start = f"{words.stop_replica}{where}", f"{words.start_replica}{where}"
    until = f"{words.start_replica} UNTIL SQL_AFTER_MTS_GAPS{where}"
    before = ""
    if situation.finding.code == "A6":
        before = (
            "make sure that all files of its relay log are there (what only a missing one had would"
            f" be skipped); restart {situation.finding.replica} once with relay_log_recovery = 0"
            f" and {words.skip_replica_start} in its configuration file; then "
        )
    return (
        f"{before or _first_compare(situation)}on {situation.finding.replica} run"
        f" {in_order(stop, until)}; wait until the"
        f" applier has stopped by itself; then run {in_order(start)}"
    )


def _first_compare(situation: Situation) -> str:
    """Return what to decide before an applier starts, as A7 demands it; "" if nothing is open."""
    finding = situation.finding
    replica = situation.model.servers.get(finding.replica or "")
    channel = replica.channel(finding.channel or "") if replica is not None else None
    is_doubtful = channel is not None and (
        channel.may_be_former or channel.by_hand or channel.around_start
    )
    if finding.grade is Grade.PROVED and not is_doubtful:
        return ""
    reasons = ["what waits may not match its rows (see A7)" if is_doubtful else ""]
    if finding.grade is not Grade.PROVED:
        reasons.append("it is not proved that its workers left the gap")
    return (
        f"do NOT start {finding.replica} yet: {' and '.join(filter(None, reasons))}. Compare the"
        " rows of what waits first. Only if they match, "
    )
