"""What findings about servers and channels state, compared with the true world.

A1, A3, A4, A7, C2, C6, C15, H3, H4 and J4, proved or not; and the codes about states that no
simulated server has: each of those would be a false alarm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.simulation.cause_oracles import equal_ids
from tests.simulation.content_causes import CHECKS as OF_TRANSACTIONS
from tests.simulation.oracles import Truth, Violation
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import DIFFERENT_ERRORS, Channel, World
from topology.catalogue.findings import ClusterAudit, Finding, Grade

Check = Callable[[Truth, Finding], str]

# No simulated server has these states: what a finding of them says is not so.
_STATELESS = {
    "A6": "an applier with gaps that cannot start",
    "A9": "a binary log that was closed after an error",
    "C5": "sync_binlog other than 1",
    "C8": "a retention",
    "C9": "read_only",
    "C12": "auto_increment",
    "C13": "clocks that differ",
    "F1": "sets of many intervals",
    "F2": "many dead UUIDs",
    "F3": "numbers that are nearly used up",
    "P3": "a retention",
    "T6": "allowed UUIDs",
    "U3": "texts that are no sets",
}


def stated(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """6. What a finding states of servers, channels and single transactions is so."""
    if truth.reading.between:
        return
    for one in audit.findings:
        if one.code in _STATELESS:
            text = f"{one.code} {one.source}->{one.replica}: no server has {_STATELESS[one.code]}"
            yield Violation("stated", one.code, text)
            continue
        check = CHECKS.get(one.code)
        wrong = check(truth, one) if check is not None else ""
        if wrong:
            text = f"{one.code} {one.grade.value} {one.source}->{one.replica}: {wrong}"
            yield Violation("stated", one.code, text)


def _path(truth: Truth, one: Finding) -> Channel | None:
    return truth.world[str(one.replica)].channel(one.channel or "")


def _is_of_group(one: Finding) -> bool:
    return (one.channel or "").startswith("group_replication")


def _different_errors(truth: Truth, one: Finding) -> str:
    """A1: the applier stands at an event that failed on its source."""
    path = _path(truth, one)
    if path is None or path.applier != "No":
        return "its applier runs"
    failed = path.failed
    is_so = path.applier_error[1] == DIFFERENT_ERRORS and failed is not None
    return "" if is_so and failed is not None and failed.failed_on_source else "no such event"


def _other_error(truth: Truth, one: Finding) -> str:
    """A3: the applier stopped at another error than that of a row."""
    if _is_of_group(one):
        return ""
    path = _path(truth, one)
    if path is None or path.applier != "No" or not path.applier_error[1]:
        return "its applier has no error"
    is_row = path.applier_error[0] in (1032, 1062)
    return "it stopped at a row" if is_row and one.grade is Grade.PROVED else ""


def _silent_receiver(truth: Truth, one: Finding) -> str:
    """A4, likely: the receiver has an error, or runs and its source's log began again."""
    path = _path(truth, one)
    if one.grade is Grade.PROVED or path is None or truth.reading.moving:
        return "" if path is not None else "it has no such channel"
    # A reading that stands still may find a receiver that has only just connected.
    rested = truth.rested[str(one.replica)]
    later = rested.channel(path.name)
    received = path.retrieved | (later.retrieved if later is not None else set())
    came = one.gtid_set <= gtids(rested.executed | received)
    if path.receiver_error[0] or (came and one.gtid_set):
        return ""
    if "may be there" in one.explanation and path.source != one.source:
        return ""  # a copy with its server_uuid and server_id is at that address
    source = truth.world[path.source]
    if "has no binary log" in one.explanation:
        return "" if not source.log_bin else "it has a binary log"
    if path.receiver == "No":
        return "its receiver is stopped"
    named = {
        "reset-binary-logs-and-gtids": "RESET BINARY LOGS AND GTIDS on",
        "reset-with-old-purged": "RESET BINARY LOGS AND GTIDS on",
        "change-by-position": "file position",
        "same-server-uuid": "same server_uuid",
    }
    done = {*truth.world.steps_done}
    if any(step in done and word in one.explanation for step, word in named.items()):
        return ""
    return "nothing keeps its receiver from reading on"


def _not_replicating(truth: Truth, one: Finding) -> str:
    """A7, likely: a server that is configured for a group is outside of it, or has no channel."""
    group = truth.world.group
    if one.grade is Grade.PROVED or group is None or one.channel is not None:
        return ""
    name = str(one.replica)
    if "configured for Group Replication" in one.explanation and name not in group.names:
        return "it is configured for no group"
    is_outside = "is not a member" in one.explanation or "left its group" in one.explanation
    if is_outside and name in group.online and not truth.reading.moving:
        return "it is a member"
    if "It is missing" in one.explanation and not truth.reading.moving:
        having = set[tuple[str, str, int]]().union(
            *(truth.world[each].executed for each in truth.world.servers if each != name)
        )
        if not gtids(having - truth.world[name].executed):
            return "it misses nothing"
    return ""


def _dropped(truth: Truth, one: Finding) -> str:
    """C2, likely: what is dropped has the server_id of the replica, or was dropped for it before."""
    if one.grade is Grade.PROVED:
        return ""  # cause_oracles.py
    name = str(one.replica)
    members = members_of(one.gtid_set, truth.world)
    dropped = {
        each for each in members if truth.world.absence.get((name, each)) == "same_server_id"
    }
    if members and members == dropped:
        return ""
    if "unless its applier has passed them" in one.explanation:  # then no log has them
        done = (each.transaction for each in truth.world.acknowledged)
        ids = {made.server_id for made in done if made.gtid in members}
        if ids:  # else they are in relay logs only
            return "" if ids == {truth.world[name].server_id} else f"server_ids are {sorted(ids)}"
    return equal_ids(truth, one)


def _passes_nothing_on(truth: Truth, one: Finding) -> str:
    """C6: the source does not log what it receives, and that comes no other way."""
    source, replica = truth.world[str(one.source)], str(one.replica)
    if source.log_bin and source.log_replica_updates:
        return "it logs what it receives"
    cut = [
        name
        for fact in one.evidence
        if fact.fact == "receives from"
        for name in fact.value.replace(":3306", "").split(", ")
    ]
    above = {source.name, *truth.world.upstream(source.name)}
    if truth.world.group is not None and above & {*truth.world.group.names}:
        above |= {*truth.world.group.names}  # it receives from these once they have joined again
    for name in cut:
        if name not in above:
            return f"it does not receive from {name}"
    if {*truth.reading.visible} != truth.world.servers.keys() or truth.reading.unread:
        return ""
    arriving = _passed_on(truth.world, replica)
    return next((f"what {name} commits comes another way" for name in cut if name in arriving), "")


def _passed_on(world: World, name: str) -> set[str]:
    """Return the servers whose own commits reach a server by logs that have them."""
    found: set[str] = set()
    frontier = [name]
    while frontier:
        for source in world[frontier.pop()].sources:
            if source in found:
                continue
            found.add(source)
            if world[source].log_bin and world[source].log_replica_updates:
                frontier.append(source)
    return found - {name}


def _skips(truth: Truth, one: Finding) -> str:
    """C15: the server skips errors, or a transaction."""
    server = truth.world[str(one.replica)]
    if not server.channels:
        return "it has no channel"
    counts = any(path.skip_counter for path in server.channels)
    is_so = server.idempotent or server.skips_errors or counts or truth.reading.moving
    return "" if is_so else "it skips nothing"


def _by_position(truth: Truth, one: Finding) -> str:
    """H3 and H4, likely: the source has purged them, the replica misses them, by file position."""
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    path = _path(truth, one)
    if path is None or path.auto_position:
        return "its channel does not run by file position"
    left = one.gtid_set - (gtids(source.purged) - gtids(replica.executed))
    return f"{left} is not purged there, or is here" if left else ""


def _outside(truth: Truth, one: Finding) -> str:
    """J4: the source of the channel was not read, or is another server than it was."""
    if "has members that are not servers" in one.explanation:
        names = {*truth.world.group.names} if truth.world.group is not None else set[str]()
        is_so = bool(names - {*truth.reading.visible}) or bool(truth.reading.unread)
        return "" if is_so else "each member of the group was read"
    path = _path(truth, one)
    if path is None:
        return "it has no such channel"
    if "was replaced" in one.explanation:
        is_so = path.source_uuid != truth.world[path.source].uuid or path.receiver == "Connecting"
        return "" if is_so or truth.reading.moving else "its source is the same server"
    return "its source was read" if path.source in truth.reading.visible else ""


def _filtered(truth: Truth, one: Finding) -> str:
    """C11: its channel leaves changes out, and other servers receive from the replica.

    No simulated server has binlog_do_db, or IGNORE_SERVER_IDS.
    """
    path = _path(truth, one)
    if path is None or not path.ignored_keys:
        return "its channel has no filter"
    below = [
        name
        for name, server in truth.world.servers.items()
        if one.replica in server.sources and name != one.source
    ]
    return "" if below else "nothing receives from it"


CHECKS: dict[str, Check] = {
    **OF_TRANSACTIONS,
    "A1": _different_errors,
    "A3": _other_error,
    "A4": _silent_receiver,
    "A7": _not_replicating,
    "C2": _dropped,
    "C6": _passes_nothing_on,
    "C11": _filtered,
    "C15": _skips,
    "H3": _by_position,
    "H4": _by_position,
    "J4": _outside,
}
