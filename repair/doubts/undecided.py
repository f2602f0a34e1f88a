"""Why no default declares transactions unneeded: the three conditions of declaring.py."""

from gtid import GtidSet
from repair.content.transaction_content import described
from repair.doubts.rows_there import (
    is_there_already,
    not_decided_by_rows,
    there_by_own_work,
)
from repair.model.hidden_evidence import no_longer_shown
from repair.model.missing_on import not_all_read, not_reached
from repair.model.offered_strategies import offered
from repair.model.replication_model import Model, ModelServer, upstream
from repair.model.settled_model import settle
from repair.model.strategy_case import Case, Refusal
from topology.catalogue.findings import Grade

ONLY_SELECTED = "it leaves the transactions out: only planned when selected"


def undecided_default(case: Case, targets: list[tuple[ModelServer, GtidSet]]) -> Refusal | None:
    """Refuse what needs a decision that the operator has not made."""
    if case.is_chosen:
        return None
    if case.finding.code[0] in "AP":
        return Refusal(ONLY_SELECTED)
    if case.meant_to_arrive:
        return Refusal(
            f"{case.finding.source} should have received them: repair"
            f" {', '.join(case.meant_to_arrive)} first, or compare the data and select a strategy"
        )
    if case.finding.grade is not Grade.PROVED and (why := not_decided_by_rows(case)) is not None:
        return Refusal(why)
    if case.is_hole and case.channel is not None and case.channel.may_be_former:
        return Refusal(
            f"{case.finding.source} may have reused the GTIDs after a reset or a crash: what"
            f" {case.finding.replica} received may be other transactions than those that were read"
        )
    if (why := not_all_read(case)) is not None:
        return Refusal(why)
    if is_there_already(case):
        return None
    if (own := there_by_own_work(case)) is not None:
        return Refusal(own)
    undecided = _needs_decision(case) or no_longer_shown(case)
    if undecided is not None:
        return undecided
    unreached = None if case.is_hole else _goes_on(case) or not_reached(case, targets)
    if unreached is not None:
        return unreached
    deliverable = deliverable_to(case, targets)
    if deliverable:
        return Refusal(
            f"a channel can still deliver {deliverable.shortened()}: repair and start"
            " replication first, then plan again"
        )
    return None


def _needs_decision(case: Case) -> Refusal | None:
    wanted, content = case.wanted, case.content
    if content is None:
        return Refusal(
            f"the content of {wanted.shortened()} has not been read, and unread content must not"
            " be declared unneeded"
        )
    if not content.needing_decision(wanted):
        return None
    return Refusal(
        f"its content needs a decision by the operator ({described(content, wanted)}). Nothing is"
        f" done by default: choose with {offered(case)}"
    )


def _goes_on(case: Case) -> Refusal | None:
    """Refuse while the holder of errant transactions commits more of them.

    What it committed between the readings is not confirmed yet. Once it is, one finding covers all
    of them, and their content may need a decision.
    """
    replica, source = case.replica, case.source
    if replica is None or source is None or replica.name in upstream(case.model, source.name):
        return None
    own = (replica.executed - source.executed - case.wanted).from_uuid(replica.server_uuid)
    if not own:
        return None
    return Refusal(
        f"{replica.name} still commits transactions that {source.name} does not have"
        f" ({own.shortened()}): stop all writes to {replica.name}, then audit and plan again"
    )


def deliverable_to(case: Case, targets: list[tuple[ModelServer, GtidSet]]) -> GtidSet:
    """Return what would arrive on a target if every channel were repaired and started."""
    repaired = with_all_channels_repaired(case.model)
    return GtidSet.union_of(gtids & repaired[server.name].executed for server, gtids in targets)


def with_all_channels_repaired(model: Model) -> Model:
    """Return the servers as they would be if every channel were repaired and started.

    This is everything that can be delivered: transactions that arrive here must not be declared
    unneeded. A channel that its source would refuse delivers nothing here either.
    """
    for server in model.servers.values():
        for channel in server.channels:
            model = model.replace(
                model[server.name].with_channel(
                    channel.name,
                    auto_position=True,
                    running=True,
                    is_stuck=False,
                    stuck_at=GtidSet(),
                    bypassed=GtidSet(),
                    passed=GtidSet(),
                    passed_beside=GtidSet(),
                    doomed=GtidSet(),
                )
            )
    return settle(model)
