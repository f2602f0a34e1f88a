"""What each code states with certainty, compared with the true world: one check for each code.

1. A check gets one `proved` finding and returns what contradicts it, or "".
2. The world is looked at when the reading ended. What may have cleared since (a refused connection,
   a stall) is checked only where nothing moved during the reading.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gtid import GtidSet
from tests.simulation import replication as act
from tests.simulation.oracles import Truth, Violation
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import PURGED, Channel, Gtid, Server, Transaction, gtid_text, uuid_of
from tests.simulation.steps import start_threads
from topology.catalogue.findings import ClusterAudit, Finding, Grade

Check = Callable[[Truth, Finding], str]


def causes(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """6. What is stated with certainty is so."""
    if truth.reading.between:
        return
    for one in audit.findings:
        check = CHECKS.get(one.code)
        if check is None or one.grade is not Grade.PROVED or one.replica is None:
            continue
        wrong = check(truth, one)
        if wrong:
            text = f"{one.code} proved {one.source}->{one.replica}: {wrong}"
            yield Violation("cause", one.code, text)


def _channel(truth: Truth, one: Finding) -> Channel | None:
    return truth.world[str(one.replica)].channel(one.channel or "")


def _row_conflict(truth: Truth, one: Finding) -> str:
    path = _channel(truth, one)
    is_so = path is not None and path.applier == "No" and path.applier_error[0] in (1032, 1062)
    return "" if is_so else "its applier did not stop at a row"


def _receiver_failed(truth: Truth, one: Finding) -> str:
    path = _channel(truth, one)
    if truth.reading.moving:
        return ""
    # A source without a binary log refuses every receiver: this one has not connected yet.
    will_fail = path is not None and not truth.world[path.source].log_bin
    is_so = path is not None and (path.receiver_error[0] or will_fail)
    return "" if is_so else "its receiver has no error"


def blocked(truth: Truth, one: Finding) -> str:
    server = truth.world[str(one.replica)]
    return "" if server.lock or server.session_owns is not None else "no session blocks it"


def _stalled(truth: Truth, one: Finding) -> str:
    server = truth.world[str(one.replica)]
    return "a session blocks it" if server.lock or server.session_owns is not None else ""


def _stopped(truth: Truth, one: Finding) -> str:
    path = _channel(truth, one)
    if one.channel is None:
        return ""  # servers that no channel links: oracle 2b
    is_so = path is not None and "No" in (path.receiver, path.applier)
    return "" if is_so else "both of its threads run"


def equal_ids(truth: Truth, one: Finding) -> str:
    replica = truth.world[str(one.replica)]
    if one.source is not None and truth.world[one.source].server_id == replica.server_id:
        return ""
    # What a source has logged is what it sends, and what waits there comes next; another server may
    # have another transaction.
    source, members = str(one.source), members_of(one.gtid_set, truth.world)
    upstream = truth.world.upstream(source) - {source}
    group = truth.world.group
    if group is not None and source in group.names:  # they deliver to it once it has joined again
        upstream |= {*group.names} - {source}
    sent: dict[Gtid, Transaction] = {}
    for name in (source, *sorted(upstream)):
        server = truth.world[name]
        logged = [made for log in server.files for made in log.entries]
        paths = server.channels
        waiting = [each.transaction for path in paths for each in path.relay[path.relay_at :]]
        waiting += [each.transaction for path in paths for each in path.working]
        for made in (*logged, *waiting):
            if made.gtid in members:
                sent.setdefault(made.gtid, made)
    ids = {made.server_id for made in sent.values()}
    return "" if ids == {replica.server_id} else f"server_ids are {sorted(ids)}"


def _by_position(truth: Truth, one: Finding) -> str:
    path = _channel(truth, one)
    return "" if path is not None and not path.auto_position else "auto-position is on"


def _refuses_sets(truth: Truth, one: Finding) -> str:
    """C4: a receiver that connects anew is refused, whatever it does now."""
    world = truth.world.copy()
    replica, path = world[str(one.replica)], world[str(one.replica)].channel(one.channel or "")
    if path is None:
        return "it has no such channel"
    path.receiver = "No"
    start_threads(world, replica, path)
    act.rest(world)
    return "" if path.receiver_error[0] else "its next connection is accepted"


def joins(truth: Truth, one: Finding) -> str:
    """J1: pointed at the candidate, the server receives what it misses, and does nothing twice."""
    world = truth.rested.copy()
    server = world[str(one.replica)]
    before = {work for work, count in server.works.items() if count > 1}
    channel = Channel("joining", str(one.source))
    server.channels.append(channel)
    start_threads(world, server, channel)
    act.rest(world)
    twice = {work for work, count in server.works.items() if count > 1} - before
    if twice:
        return f"works {sorted(twice)} are done twice"
    return f"refused: {channel.receiver_error[1]}" if channel.receiver_error[0] else ""


def _cannot_join(truth: Truth, one: Finding) -> str:
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    text = act.refusal(source, replica, Channel("joining", source.name))
    return "" if text else "it would be accepted"


def _diverged(truth: Truth, one: Finding) -> str:
    replica, source = truth.world[str(one.replica)], truth.world[str(one.source)]
    there = one.gtid_set & gtids(source.executed)
    group = truth.world.group
    if group is not None and truth.reading.moving:
        # A group whose name is the server_uuid of another server commits under it while it is read.
        there = there.without_uuid(uuid_of(group.uuid))
    if there:
        return f"{there} is on {source.name}"
    has = gtids(replica.executed | replica.owned)  # the last ones are being committed
    return "" if one.gtid_set <= has else "it does not have them"


def _refused(truth: Truth, one: Finding) -> str:
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    path = _channel(truth, one)
    if path is None:
        return "it has no such channel"
    return "" if _refusal(source, replica, path) == PURGED else "it would not be refused"


def _not_sent(truth: Truth, one: Finding) -> str:
    """H3, H4: the channel runs by file position, and its source has purged what is missing."""
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    path = _channel(truth, one)
    if path is None or path.auto_position:
        return "its channel does not run by file position"
    if not one.gtid_set <= gtids(source.purged) - gtids(replica.executed):
        return "the source has it, or it is on the replica"
    if path.read_to is not None and path.read_to.file < source.files[0].number:
        return "the file of its position is purged"
    return ""


def _held_elsewhere(truth: Truth, one: Finding) -> str:
    """H3: the logs of the other servers have all of it."""
    held = GtidSet.union_of(
        gtids(server.executed - server.purged)
        for name, server in truth.world.servers.items()
        if name not in (one.source, one.replica)
    )
    left = one.gtid_set - held
    return _not_sent(truth, one) or (f"no log has {left}" if left else "")


def _refusal(source: Server, replica: Server, path: Channel) -> str:
    """Return why a connection by sets would be refused."""
    sent = replica.executed | path.retrieved
    return PURGED if not source.purged <= sent else act.refusal(source, replica, path)


def _made_by_hand(truth: Truth, one: Finding) -> str:
    for each in sorted(members_of(one.gtid_set, truth.world)):
        if each not in truth.world.by_hand:
            return f"{gtid_text(each)} was not made by hand"
    return ""


def _is_of_a_group(truth: Truth, one: Finding) -> str:
    group = truth.world.group
    return "" if group is not None and one.replica in group.names else "it is in no group"


def _out_of_order(truth: Truth, one: Finding) -> str:
    first = truth.world[str(one.replica)].channels[0]
    return "" if first.workers > 1 and not first.commit_order else "its workers commit in order"


def _not_recovered(truth: Truth, one: Finding) -> str:
    server = truth.world[str(one.replica)]
    by_position = any(not each.auto_position for each in server.channels)
    is_so = by_position and server.channels[0].workers > 1 and not server.relay_log_recovery
    return "" if is_so else "it recovers its relay log, or needs none"


def _is_filled(truth: Truth, one: Finding) -> str:
    """H2: the applier executes what is missing when it is started, or fails at it."""
    world = truth.world.copy()
    replica, path = world[str(one.replica)], world[str(one.replica)].channel(one.channel or "")
    if path is None:
        return "it has no such channel"
    start_threads(world, replica, path)
    act.rest(world)
    left = one.gtid_set - gtids(replica.executed)
    return f"{left} stays" if left and path.applier == "Yes" and not replica.lock else ""


def _only_received(truth: Truth, one: Finding) -> str:
    """P2: the source cannot send it any more, and the replica has it in one of its two places."""
    replica, path = truth.world[str(one.replica)], _channel(truth, one)
    has = replica.executed | (path.retrieved if path is not None else set())
    gone = gtids(truth.world[str(one.source)].purged)
    return "" if one.gtid_set <= gone & gtids(has) else "the source has it, or it was not received"


def _breaks(truth: Truth, one: Finding) -> str:
    """P5: pointed at the candidate, the replica is refused for purged logs."""
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    refused = _refusal(source, replica, Channel("joining", source.name)) == PURGED
    return "" if refused else "the candidate would accept it"


def _of_two_series(truth: Truth, one: Finding) -> str:
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    return "" if source.version != replica.version else "they have one version"


CHECKS: dict[str, Check] = {
    "A2": _row_conflict,
    "A4": _receiver_failed,
    "A5": blocked,
    "A7": _stopped,
    "A8": _stalled,
    "C2": equal_ids,
    "C3": _by_position,
    "C4": _refuses_sets,
    "C7": _out_of_order,
    "C10": _not_recovered,
    "C14": _of_two_series,
    "H2": _is_filled,
    "H3": _held_elsewhere,
    "H4": _not_sent,
    "H7": _made_by_hand,
    "J1": joins,
    "J2": _cannot_join,
    "J3": _diverged,
    "P1": _refused,
    "P2": _only_received,
    "P5": _breaks,
    "U4": _is_of_a_group,
}
