"""What findings about single transactions state, compared with the true world: E1, E2, E4, E5, H5, J3.

1. Each check gets one finding, proved or likely, and returns what contradicts it, or "". A likely one
   may leave several causes open: one of them must be the true one.
2. Which work a server did under a GTID is read from `Server.applied`, which no reader of the product
   sees, and not from the binary logs that contents.py compares.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation import replication as act
from tests.simulation.oracles import Truth
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import Gtid, Server, Transaction, World, gtid_text
from topology.catalogue.findings import Finding, Grade, Severity

Check = Callable[[Truth, Finding], str]

# Steps of a history that can leave a server without the content of what it has executed.
_UNLOGGED = {
    "log-replica-updates-off",
    "log-bin-off",
    "crash",
    "group-crash",
    "reset-with-old-purged",
}
_SKIPS = {
    "skip-errors": "replica_skip_errors",
    "idempotent": "IDEMPOTENT",
    "filter": "filter",
    "write-statement": "logged a statement",
}


def last_under(server: Server, gtid: Gtid) -> Transaction | None:
    """Return what a server is committing under a GTID, or committed last.

    None if it only declared it executed.
    """
    logged = None if gtid in server.executed else server.logged_version(gtid)
    done = (made for made, _ in reversed(server.applied) if made.gtid == gtid)
    return logged or next(done, None)


def two_contents(truth: Truth, one: Finding) -> str:
    """E4: proved are two works under each GTID; likely, that the two servers did not do the same."""
    if one.source is None:
        return _without_content(truth, one)
    source, replica = truth.world[one.source], truth.world[str(one.replica)]
    for gtid in sorted(members_of(one.gtid_set, truth.world)):
        ours, theirs = last_under(source, gtid), last_under(replica, gtid)
        if ours is None or theirs is None:
            wrong = _not_declared(truth, one, gtid)
        elif one.grade is Grade.PROVED:
            wrong = "" if ours.work != theirs.work else "one work"
            if one.severity is Severity.CRITICAL and ours.changes == theirs.changes:
                wrong = "the same rows"
        else:
            differs = ours.work != theirs.work or ours.changes != theirs.changes
            # An operator declared executed what the server had before it was reset.
            differs |= "unless they were there before" in one.explanation
            wrong = "" if differs else "nothing differs"
        if wrong:
            return f"{gtid_text(gtid)}: {wrong}"
    return _cause_of_less(truth, one)


def _not_declared(truth: Truth, one: Finding, gtid: Gtid) -> str:
    """A server that did not commit it has it in gtid_purged: no log of it shows a version."""
    names = [each for each in (one.source, one.replica) if each is not None]
    without = [name for name in names if last_under(truth.world[name], gtid) is None]
    undeclared = [name for name in without if gtid not in truth.world[name].purged]
    if one.grade is Grade.PROVED:
        return f"{', '.join(without)} never committed it"
    return f"{', '.join(undeclared)} has not declared it" if undeclared else ""


def _without_content(truth: Truth, one: Finding) -> str:
    """E4 of one server: it declared the transactions executed, or did not log them."""
    server, done = truth.world[str(one.replica)], {*truth.world.steps_done}
    for gtid in sorted(members_of(one.gtid_set, truth.world)):
        if last_under(server, gtid) is None:
            continue
        if gtid in server.logged() - server.purged:  # what counts as purged may be in an older log
            return f"{gtid_text(gtid)}: its log has it"
        # 5.6 takes gtid_purged from the first log that has a GTID.
        is_deleted = server.version < act.MODERN and "lose-log" in done
        if not (is_deleted or done & _UNLOGGED):
            return f"{gtid_text(gtid)}: it was logged, and its log was purged"
    return ""


def _cause_of_less(truth: Truth, one: Finding) -> str:
    """Where the text says that a server logged less, a step that does so was done, and is named."""
    if "logged less of" not in one.explanation:
        return ""
    steps = {*truth.world.steps_done} & _SKIPS.keys()
    if not steps:
        return "no server skips anything"
    return "" if any(_SKIPS[each] in one.explanation for each in steps) else f"{steps} not named"


def ghost(truth: Truth, one: Finding) -> str:
    """H5: the source executed them, purged none, and no log of it has one; the replica misses them."""
    source, replica = truth.world[str(one.source)], truth.world[str(one.replica)]
    members = members_of(one.gtid_set, truth.world)
    for text, wrong in (
        ("its logs have them", members & source.logged()),
        ("it does not have them", members - source.executed),
        ("it has purged them", members & source.purged),
        ("the replica has them", members & replica.executed),
    ):
        if wrong and (one.grade is Grade.PROVED or wrong == members):
            return f"{text}: {', '.join(map(gtid_text, sorted(wrong)))}"
    came = members & truth.rested[replica.name].executed
    if came and one.grade is Grade.PROVED:
        return f"it arrives: {', '.join(map(gtid_text, sorted(came)))}"
    return _source_lost_a_log(truth, source)


def _source_lost_a_log(truth: Truth, source: Server) -> str:
    lost = {"lose-log", "gtid-mode-on-permissive"} & {*truth.world.steps_done}
    return "" if lost else f"no log of {source.name} was lost"


def errant(truth: Truth, one: Finding) -> str:
    """E1, E2: the replica has them, and the source does not; what the text leaves open is so."""
    if one.source is None:
        return ""
    source, replica = truth.world[one.source], truth.world[str(one.replica)]
    members = members_of(one.gtid_set, truth.world)
    if left := one.gtid_set - gtids(members):
        return f"{left} is nowhere"
    missing = members - replica.executed
    if missing and not truth.reading.moving:
        return f"{gtid_text(min(missing))} is not on {replica.name}"
    # What it counts as purged, its sets say to be in no log (log_replica_updates was ON before).
    if one.code == "E2" and (logged := (members & replica.logged()) - replica.purged):
        return f"{gtid_text(min(logged))} is in a log of {replica.name}"
    if one.grade is Grade.PROVED:
        there = members & source.executed
        return f"{gtid_text(min(there))} is on {source.name}" if there else ""
    return _left_open(truth, one, members)


def _left_open(truth: Truth, one: Finding, members: set[Gtid]) -> str:
    """A likely E1 or E2 names a stopped channel, servers outside the audit, or an unknown origin."""
    world, text, source = truth.world, one.explanation, str(one.source)
    if "is stopped on the way to" in text and not _is_stopped_above(world, source):
        return f"no channel above {source} is stopped"
    if "on their way through servers" in text and not _unread_above(truth, source):
        return f"all servers above {source} were read"
    if "No server of this audit has the server_uuid" not in text:
        return ""
    uuids = _uuids_read(truth)
    foreign = {gtid for gtid in members if gtid[0] not in uuids}
    if world.group is not None:
        foreign = {gtid for gtid in foreign if gtid[0] != world.group.uuid}
    if not foreign:
        return "a server of the audit has each server_uuid"
    unread = {world[name].uuid for name in truth.reading.visible} - uuids
    if "could not read" in text:
        foreign = {gtid for gtid in foreign if gtid[0] not in unread}
    for gtid in sorted(foreign):
        if _how_it_came(truth, gtid, source) == "":
            return f"{gtid_text(gtid)}: no cause of the text is true"
    return ""


def _uuids_read(truth: Truth) -> set[str]:
    """Return the server_uuids of the audit that could be read."""
    return {truth.world[each.name].uuid for each in truth.snapshot.last if each.server_uuid}


def _how_it_came(truth: Truth, gtid: Gtid, source: str) -> str:
    """Return which of the causes of a GTID with an unknown server_uuid is true."""
    world = truth.world
    if gtid in world.by_hand:
        return "a session set gtid_next"
    unseen = world.servers.keys() - {*truth.reading.visible}
    if any(world[name].uuid == gtid[0] for name in unseen):
        return "a server outside this audit"
    done = {*world.steps_done}
    if "clone" in done or "same-server-uuid" in done:
        return f"{source} was replaced, or has a new server_uuid"
    return ""


def _is_stopped_above(world: World, name: str) -> bool:
    if _is_outside_its_group(world, {name, *world.upstream(name)}):
        return True
    return any(
        "No" in (channel.receiver, channel.applier)
        for each in {name, *world.upstream(name)}
        for channel in world[each].channels
    )


def _is_outside_its_group(world: World, names: set[str]) -> bool:
    group = world.group
    return group is not None and bool(names & {*group.names} - group.online)


def _unread_above(truth: Truth, name: str) -> bool:
    above = {name, *truth.world.upstream(name)}
    if truth.world.group is not None and above & {*truth.world.group.names}:
        above |= {*truth.world.group.names}
        if truth.reading.moving or not truth.world.group.online & {*truth.reading.visible}:
            return True  # members changed meanwhile, or none that was read lists the others
        uuids = [truth.world[each].uuid for each in truth.world.group.names]
        if len({*uuids}) < len(uuids):
            return True  # C1: which of the two is the member is not known
    return bool(above - {*truth.reading.visible}) or bool(truth.reading.unread)


def unknown_origin(truth: Truth, one: Finding) -> str:
    """E5: servers differ in GTIDs of a server_uuid that none of them has, for a cause of the text."""
    seen = truth.reading.visible
    for gtid in sorted(members_of(one.gtid_set, truth.world)):
        if any(truth.world[name].uuid == gtid[0] for name in seen):
            return f"{gtid_text(gtid)}: its server was read"
        having = [name for name in seen if gtid in truth.world[name].executed]
        if not truth.reading.moving and len(having) in {0, len(seen)}:
            return f"{gtid_text(gtid)}: the servers agree"
        if _is_of_unread_group(truth, one, gtid):
            continue
        if _how_it_came(truth, gtid, "a server") == "":
            return f"{gtid_text(gtid)}: no cause of the text is true"
    return ""


def _is_of_unread_group(truth: Truth, one: Finding, gtid: Gtid) -> bool:
    """Return whether the text names a member of the group that commits under this UUID."""
    group = truth.world.group
    named = one.explanation.partition("; a replication group of ")[2].partition(", whose")[0]
    is_named = group is not None and bool({*named.split(", ")} & {*group.names})
    return is_named and group is not None and gtid[0] == group.uuid


def diverged(truth: Truth, one: Finding) -> str:
    """J3: of a likely one too, the server has the transactions, and what else the text says."""
    world, text = truth.world, one.explanation
    server, source = world[str(one.replica)], world[str(one.source)] if one.source else None
    members = members_of(one.gtid_set, world)
    if not truth.reading.moving and (missing := members - server.executed - server.owned):
        return f"{gtid_text(min(missing))} is not on {server.name}"
    if one.grade is Grade.LIKELY and source is not None:
        there = members & source.executed
        if there and not truth.reading.moving:
            return f"{gtid_text(min(there))} is on {source.name}"
    is_more = "also has everything that" in text and not truth.reading.moving
    if (
        is_more
        and source is not None
        and (left := source.executed - server.executed - server.owned)
    ):
        return f"it does not have {gtids(left)}"
    if "which gtid-audit did not read" in text and not (_any_unread(truth) or _are_twins(truth)):
        return "everything was read"
    return ""


def _are_twins(truth: Truth) -> bool:
    """Return whether two servers have one server_uuid: the sets of neither are evaluated (C1)."""
    uuids = [truth.world[name].uuid for name in truth.reading.visible]
    return len({*uuids}) < len(uuids)


def _any_unread(truth: Truth) -> bool:
    torn = any(
        each.gtid_purged is not None
        and each.gtid_executed is not None
        and not each.gtid_purged <= each.gtid_executed
        for each in truth.snapshot.last
    )  # U2: its sets are not evaluated
    is_seen_in_part = {*truth.reading.visible} != truth.world.servers.keys()
    return torn or bool(truth.reading.unread) or is_seen_in_part


CHECKS: dict[str, Check] = {
    "E1": errant,
    "E2": errant,
    "E4": two_contents,
    "E5": unknown_origin,
    "H5": ghost,
    "J3": diverged,
}
