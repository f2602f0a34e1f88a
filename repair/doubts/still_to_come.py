"""What a channel's source has not received yet when the servers are read: it cannot be compared.

How it works
------------
    a ──► b ──► c (stopped)         b has not received a:5 yet; c committed c:1 itself

A start of c also delivers a:5 as soon as b has it. That includes the case that b has received it
while a is still committing it, so that no set shows it as executed. On a plain replica that is the
order of one log, and matches. If a server has committed what its sources do not get, its rows may
differ. So they may if another channel, below a file position, has passed what this one delivers.

If `a` was not read, it is unknown whether such an a:5 exists. The same applies if `b` is a member
of a group: every member gets what one member has, and no channel shows it. So no channel from such
a server is started on a server with its own commits.

The order of one log does not show either that rows match when the first transactions of an origin
arrive on a server. Its history may have been set, and the rows may exist. Then what waits must be
compared. An earlier step that delivers them to the source adds them to what waits. A plan made
after that step refuses the start if some of it cannot be compared. So the start is also refused
before that step.
"""

from gtid import GtidSet
from repair.content.transaction_content import RowState, nothing_read
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.hidden_evidence import hidden_by_steps
from repair.model.holes import passed_by
from repair.model.offered_strategies import offered
from repair.model.replication_model import Model, ModelServer, below, upstream
from repair.model.strategy_case import Case
from topology.readings.content_class import ContentClass


def unread_beside_own_work(case: Case, action: StartChannel | AutoPositionOn) -> str | None:
    """Return why what a channel will still deliver may not match a server's rows; or None."""
    place = (action.server, action.channel)
    question, content = case.waiting.get(place), case.arrivals.get(place)
    channel = case.model[action.server].channel(action.channel)
    source = (channel.source if channel else None) or ""
    there = case.snapshot_executed.get(source, GtidSet())
    if question is not None:
        there |= question.wanted
        empty = content.of_class(ContentClass.EMPTY) if content is not None else GtidSet()
        if (hidden := hidden_by_steps(case, empty & question.wanted)) is not None:
            return hidden
    after = simulate(case.model, action)
    if after.servers != case.model.servers and (unread := _work_of_unread(case)) is not None:
        return (
            f"{unread[0]} has {unread[1].shortened()}, which no other server has, and not all of"
            " its state could be read: it may receive what this start delivers, and its rows may"
            " differ. Audit again when it can be read"
        )
    receiving = {action.server, *below(after, action.server, running=True)}
    started = case.model[action.server]
    unseen = _unseen_above(case.model, source)
    for name in sorted({*receiving, *after.changed_since(case.model)}):
        server = case.model[name]
        coming = after[name].executed - server.executed - there
        own = _own_work(case, after, name)
        if own and unseen is not None and name in receiving:
            return (
                f"{name} has {own.shortened()}, which its sources do not have, and {unseen}"
                f"compare the rows and choose with {offered(case)}"
            )
        passing = _passing_unseen(after, action) if name == action.server else None
        if passing is not None and unseen is not None:
            return (
                f"{passing} replicates by file position from a server outside this snapshot, and"
                f" another channel of {name} delivers its work: what {passing} has passed would"
                f" arrive after later transactions. And {unseen}compare the rows and choose with"
                f" {offered(case)}"
            )
        behind = _passed_above(after, name) & coming
        if behind:
            return (
                f"{behind.shortened()} would be applied on {name} after later transactions:"
                f" another source of {name} has passed it, and its rows were not compared. Answer"
                " H1 and H8 first, then audit and plan again"
            )
        unapplied = _received_above(after, source) - server.executed - there
        beside = unapplied - _received(server) - server.committing - started.committing
        own |= _under_way(case, after, name) if coming or beside else GtidSet()
        coming |= unapplied if own and name in receiving else GtidSet()
        if coming and own:
            return (
                f"{coming.shortened()} was not yet on the source of {action.server} and could not"
                f" be compared, and {name} has {own.shortened()}, which its sources do not have:"
                " wait until it has arrived there, then audit and plan again"
            )
        if not coming or question is None or not server.executed:
            continue
        content = content or nothing_read(question.wanted, "no log was read")
        waits = content.needing_decision(question.wanted - server.executed)
        is_first = bool(set(coming.tsids) - set(server.available.tsids))
        if is_first and waits and content.state_on(name).state is RowState.UNREAD:
            return (
                f"{coming.shortened()} was not yet on the source of {action.server}, {name} has"
                f" logged nothing of its origin, and rows of {waits.shortened()} were not compared"
                f" on {name}: wait until it has arrived there, then audit and plan again"
            )
    return None


def _work_of_unread(case: Case) -> tuple[str, GtidSet] | None:
    """Return a server whose sets were read and channels were not, and what only it has."""
    if not case.unread:
        return None
    there = GtidSet.union_of(each.executed for each in case.model.servers.values())
    work = ((name, executed - there) for name, executed in sorted(case.unread.items()))
    return next((each for each in work if each[1]), None)


def _own_work(case: Case, after: Model, name: str) -> GtidSet:
    """Return what a server has and its sources do not get; a group is one source.

    If this plan leaves a transaction empty on a source, only the server has its content.
    """
    above = upstream(after, name)
    groups = {after[source].group_name for source in above} - {None}
    members = after.servers.values() if groups else ()
    peers = (each.name for each in members if each.group_name in groups)
    own = case.model[name].executed
    for source in {*above, *peers}:
        own -= after[source].executed - case.declared_on(source)
    return own


def _under_way(case: Case, after: Model, name: str) -> GtidSet:
    """Return what a server has and no source of it had executed when they were read.

    In a ring it arrives there, after what the sources committed meanwhile.
    """
    own = case.snapshot_executed[name]
    for source in upstream(after, name) - {name}:
        own -= case.snapshot_executed[source]
    return own


def _received_above(model: Model, source: str) -> GtidSet:
    """Return what a source and its upstream servers have received, or are committing."""
    if source not in model.servers:
        return GtidSet()
    above = [model[name] for name in sorted({source, *upstream(model, source)})]
    return GtidSet.union_of((*map(_received, above), *(server.committing for server in above)))


def _received(server: ModelServer) -> GtidSet:
    return GtidSet.union_of(channel.retrieved for channel in server.channels)


def _passed_above(after: Model, name: str) -> GtidSet:
    """Return what a source of a server has passed: what it sends continues after that."""
    sources = upstream(after, name) - {name}
    return GtidSet.union_of(passed_by(after, after[source]) for source in sources)


def _passing_unseen(after: Model, action: StartChannel | AutoPositionOn) -> str | None:
    """Return a server above another channel whose file position may be past unseen transactions."""
    for other in after[action.server].channels:
        source = other.source
        if other.name == action.channel or source is None or source not in after.servers:
            continue
        for name in sorted({source, *upstream(after, source)} - {action.server}):
            for channel in after[name].channels:
                if channel.source not in after.servers and not channel.auto_position:
                    return name
    return None


def _unseen_above(model: Model, source: str) -> str | None:
    """Return who may send a source what was not compared: a group, or a server not read.

    Members of a group deliver to each other without a channel, whether they were read or not.
    """
    if source not in model.servers:
        return None  # strategies refuse that themselves
    for name in sorted({source, *upstream(model, source)}):
        server = model[name]
        if server.group_name is not None:
            return (
                f"{name} is in the group {server.group_name}, whose members deliver to it without a"
                " channel. What they commit now, perhaps older changes of the same rows, was not"
                " compared: "
            )
        if any(channel.source not in model.servers for channel in server.channels):
            return (
                f"a source of {name} outside this snapshot may send older changes of the same rows,"
                " which were not read: audit that server as well, or "
            )
    return None
