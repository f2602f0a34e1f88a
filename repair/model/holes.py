"""Other gaps of a server, on which rows and later transactions may depend.

How it works
------------
    source    INSERT row 2    UPDATE row 3    DELETE row 2
    replica   (missing)       UPDATE row 3    (missing)

Alone, the DELETE seems to be executed on the replica: there is no row 2. If it is declared executed
and the INSERT is fetched later, row 2 stays permanently. The reverse also occurs: what follows a
transaction that the applier passed may not find its rows, and stops the applier.
"""

from gtid import GtidSet
from repair.content.transaction_content import RowState, TransactionContent
from repair.model.actions import AutoPositionOn, StartChannel
from repair.model.own_work import met
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.model.strategy_case import Case


def depends_on_a_hole(case: Case, content: TransactionContent) -> bool:
    """Return whether rows on the finding's replica may have their state because of another gap.

    They do not if the other transactions change other rows, or if their rows are present as well.
    """
    replica = case.replica
    assert replica is not None, "the caller has checked"
    for hole in case.holes:
        left = hole.gtids - replica.executed - case.wanted
        if not left:
            continue
        if hole.content is None or not left <= hole.content.wanted:
            return True
        if hole.content.state_on(replica.name).state is RowState.AS_AFTER:
            continue
        is_read = content.rows is not None or content.rows_beside_created is not None
        if not is_read or met(content, left, hole.content):
            return True
    return False


def fetched_again(
    case: Case, after: Model, action: StartChannel | AutoPositionOn
) -> tuple[str, GtidSet] | None:
    """Return a server to which an action delivers what another channel has passed, or None.

    That channel's applier has passed them, so their rows may be present. The action's source may
    not have had them when the servers were read. Then its channel is not the one whose rows were
    compared.
    """
    question = case.waiting.get((action.server, action.channel))
    compared = question.wanted if question is not None else GtidSet()
    for name in after.changed_since(case.model):
        server = case.model[name]
        passed = GtidSet.union_of(
            each.bypassed | each.passed
            for each in server.channels
            if (name, each.name) != (action.server, action.channel)
        )
        again = (passed & (after[name].executed - server.executed)) - compared
        if again:
            return name, again
    return None


def emptied_above(case: Case, server: ModelServer, channel: ModelChannel) -> str | None:
    """Return why a stopped channel is not started after earlier steps on its source, or None.

    The source lost GTIDs that its replica has from it, as after RESET BINARY LOGS AND GTIDS. What
    waits on the channel was received from its former log, whose positions cannot be compared.
    """
    declared = case.declared_on(channel.source or "") & case.snapshot_executed[server.name]
    again = declared.without_uuid(server.server_uuid)
    if not again:
        return None
    return (
        f"earlier steps of this plan leave {again.shortened()} empty on {channel.source}, and"
        f" {server.name} received them from it: {channel.source} may have been reset. Run these"
        " steps alone, then audit and plan again"
    )


def passed_by(after: Model, server: ModelServer) -> GtidSet:
    """Return what the channels of a server have passed and no channel has delivered since.

    What they deliver now follows it in the source's log. A channel also passes what no binary log
    of its source has.
    """
    gone = GtidSet.union_of(
        each.bypassed | each.passed | _not_sent_by(after, each.source)
        for each in after[server.name].channels
    )
    return gone - after[server.name].executed


def _not_sent_by(after: Model, source: str | None) -> GtidSet:
    sending = after.servers.get(source or "")
    return GtidSet() if sending is None else sending.without_event
