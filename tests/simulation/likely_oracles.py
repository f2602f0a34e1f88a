"""What a finding leaves open: the true cause must be one of those that its text names.

A `likely` finding is a promise as well: one of these causes, and no other. Which step made a server
miss a GTID is recorded in `World.absence`; each step is known by words that the explanation of the
finding must contain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from gtid import GtidSet
from tests.simulation.cause_oracles import blocked, joins
from tests.simulation.oracles import ABSENT, Truth, Violation
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import NO_LOG, PERMISSIVE, PURGED, SAME_ID, Gtid, Server, gtid_text
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity

Check = Callable[[Truth, Finding], str]

# One of these words names the step.
WORDS: dict[str, tuple[str, ...]] = {
    "reset": ("RESET BINARY LOGS AND GTIDS", "was reset"),
    "source reset": ("RESET BINARY LOGS AND GTIDS on {source}", "former log"),
    "crash": ("crash",),
    "restore": ("older copy", "restored", "backup"),
    "skip_counter": ("sql_replica_skip_counter",),
    "skip_errors": ("replica_skip_errors", "sql_replica_skip_counter"),
    "relay-log-position": ("RELAY_LOG_POS", "log position", "file position"),
    "change-by-position": ("file position", "log position"),
    "same_server_id": ("server_id",),
    "not logged": ("no event for them",),
    "by hand": ("gtid_next by hand", "set gtid_next"),
    "copied": ("same server_uuid",),
}

LOSES = frozenset({"reset", "crash", "restore"})  # what the server had itself


def named_causes(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """6. The true cause is one of those that a finding leaves."""
    if truth.reading.between:
        return
    stopped = {one.replica for one in audit.findings if one.code in ("A1", "A2", "A3", "A4", "C2")}
    halted = {(one.replica, one.channel) for one in audit.findings if one.code == "A7"}
    for one in audit.findings:
        if one.code in ("T1", "T2", "T3") and one.replica in stopped:
            continue  # nothing is promised beside what stopped the channel, or is dropped by it
        if (one.replica, one.channel) in halted and _has_received(truth, one):
            continue
        if one.grade is not Grade.LIKELY or one.replica is None:
            continue
        check = CHECKS.get(one.code)
        wrong = check(truth, _without_passed(audit, one)) if check is not None else ""
        if wrong:
            text = f"{one.code} likely {one.source}->{one.replica}: {wrong}"
            yield Violation("named cause", one.code, text)


def _without_passed(audit: ClusterAudit, one: Finding) -> Finding:
    """Return a T2 of a stopped channel without what H1 or H8 says of another channel.

    That channel has received it and passed it, and H8 names why. This one waits to be started, and
    brings it then.
    """
    if one.code != "T2" or "is stopped" not in one.explanation:
        return one
    passed = GtidSet.union_of(
        each.gtid_set
        for each in audit.findings
        if each.code in ("H1", "H8") and each.replica == one.replica and each.channel != one.channel
    )
    return replace(one, gtid_set=one.gtid_set - passed)


def _has_received(truth: Truth, one: Finding) -> bool:
    """Return whether what a T3 expects has come, and waits for an applier that A7 reports.

    T3 is about the receiver alone. With auto-position a real source sends again what a crash of the
    replica lost, also while the applier is stopped: the relay log has it then, and A7 stands.
    """
    if one.code != "T3":
        return False
    name = str(one.replica)
    path = truth.rested[name].channel(one.channel or "")
    if path is None or path.applier != "No":
        return False
    waiting = {each.transaction.gtid for each in path.relay[path.relay_at :]}
    return one.gtid_set <= gtids(waiting | truth.rested[name].executed)


def _names(one: Finding, step: str) -> bool:
    words = (word.format(source=one.source) for word in WORDS.get(step, ()))
    return any(word in one.explanation for word in words)


def _absent_on_replica(truth: Truth, one: Finding) -> str:
    """H1, H8: each transaction was passed over in one of the ways that the text names."""
    replica, source = truth.world[str(one.replica)], truth.world[str(one.source)]
    logged = source.logged()
    for gtid in sorted(members_of(one.gtid_set, truth.world) - replica.executed):
        if gtid in truth.rested[replica.name].executed:
            if "will not get them:" in one.explanation:  # by whatever channel
                return f"{gtid_text(gtid)}: it arrives"
            continue
        step = truth.world.absence.get((replica.name, gtid))
        may_come = gtid in logged and _waits(replica, one, gtid)
        if step is None and may_come and "may be among it" in one.explanation:
            continue
        if step is None and gtid not in logged:
            step = "source reset" if _waits(replica, one, gtid) else "not logged"
        if step is None and one.code == "H1" and _lies_before(truth, one, gtid):
            step = "change-by-position"  # of a receiver that has not connected yet
        path = replica.channel(one.channel or "")
        if step is None and path is not None and path.source != source.name:
            step = "copied"  # the channel is that of another server with this server_uuid
        if step is None and _began_again(truth, source):
            step = "reset"  # of the source: a place is one of its former log
        # What was skipped first, a file position behind it keeps away as well.
        is_kept_away = one.code == "H1" and step in ABSENT["H1"]
        if not (is_kept_away or _names(one, step or "")):
            return f"{gtid_text(gtid)}: {step or 'nothing known'} is not named"
    return ""


def _began_again(truth: Truth, source: Server) -> bool:
    """Return whether a server's log numbers began again: it may have purged the first log since."""
    oldest = source.files[0]
    resets = {"reset-binary-logs-and-gtids", "reset-with-old-purged"} & {*truth.world.steps_done}
    is_first = oldest.number == 1 and oldest.created_at
    return bool(is_first or resets)


def _waits(replica: Server, one: Finding, gtid: Gtid) -> bool:
    """Return whether the relay log has it still: then the applier's place is one of a former log."""
    path = replica.channel(one.channel or "")
    relay = [] if path is None else path.relay[path.relay_at :]
    return any(each.transaction.gtid == gtid for each in relay)


def _lies_before(truth: Truth, one: Finding, gtid: Gtid) -> bool:
    """Return whether a transaction lies before the place that is configured."""
    path = truth.world[str(one.replica)].channel(one.channel or "")
    if path is None or path.read_to is None:
        return False
    for log in truth.world[str(one.source)].files:
        entries = log.entries if log.number < path.read_to.file else ()
        if log.number == path.read_to.file:
            entries = log.entries[: path.read_to.entries]
        if any(each.gtid == gtid for each in entries):
            return True
    return False


def _absent_on_origin(truth: Truth, one: Finding) -> str:
    """E3, E6, H7: the origin lost each transaction, or another server used its UUID."""
    origin = truth.world[str(one.source)]
    for gtid in sorted(members_of(one.gtid_set, truth.world)):
        step = truth.world.absence.get((origin.name, gtid), "")
        # What the origin lost may be another transaction, which no other server ever had.
        if step not in LOSES or _is_anothers(truth, str(one.replica), gtid, origin.name):
            step = _elsewhere(truth, gtid)
        if gtid in origin.executed or _names(one, step):
            continue
        return f"{gtid_text(gtid)}: {step or 'nothing known'} is not named"
    return ""


def _is_anothers(truth: Truth, holder: str, gtid: Gtid, origin: str) -> bool:
    """Return whether a session on another server than the origin committed what a holder has."""
    return gtid in truth.world.by_hand and all(
        made.origin != origin for made, _ in truth.world[holder].applied if made.gtid == gtid
    )


def _elsewhere(truth: Truth, gtid: Gtid) -> str:
    """Return how another server came to a GTID that the owner of its UUID never had."""
    if gtid in truth.world.by_hand:
        return "by hand"
    done = any(each.transaction.gtid == gtid for each in truth.world.acknowledged)
    # No client has its answer yet, but the other server has sent it; it may be another one by now.
    # Or no client ever gets one: a clone replaced the server while it was committing.
    servers = truth.world.servers.values()
    pending = (each for server in servers for each in server.pending)
    sent = (
        each.transaction for server in servers for path in server.channels for each in path.relay
    )
    applied = (made for server in servers for made, _ in server.applied)
    is_sent = any(each.gtid == gtid for each in (*pending, *sent, *applied))
    return "copied" if done or is_sent else ""


def _joining(truth: Truth, one: Finding) -> str:
    """J1: what keeps the server from joining is named."""
    wrong = joins(truth, one)
    if not wrong:
        return ""
    if wrong.startswith("works"):
        return "" if "has the rows already" in one.explanation else wrong
    reasons = {
        SAME_ID: "same server_id",
        PERMISSIVE: "gtid_mode",
        NO_LOG: "no binary log",
        PURGED: "log_replica_updates",
    }
    for text, word in reasons.items():
        if text in wrong and word in one.explanation:
            return ""
    return wrong


def _clears(truth: Truth, one: Finding) -> str:
    """T1, T2, T3 as information: what does not arrive is named, or another finding stands."""
    if one.severity is not Severity.INFO:
        return ""
    name = str(one.replica)
    if "when it has connected" in one.explanation:
        return ""
    left = one.gtid_set - gtids(truth.rested[name].executed)
    if not left or truth.fails_later(name) or truth.waits_within_limits(name):
        return ""
    paths = [path for path in truth.rested[name].channels if path.applier == "No"]
    waiting = (
        {each.transaction.gtid for path in paths for each in path.relay[path.relay_at :]}
        if "is stopped" in one.explanation
        else set()
    )
    for gtid in sorted(members_of(left, truth.world) - waiting):
        step = truth.rested.absence.get((name, gtid))
        if step is not None and not _names(one, step):
            is_named = _names(one, "same_server_id") or truth.world.by_hand.get(gtid) == name
            # Made by hand on a server with its server_id, which was not read: so it is with that.
            is_by_hand = step == "same_server_id" and gtid in truth.world.by_hand
            if is_by_hand and gtids([gtid]) <= truth.reported_next(name):
                continue
            if is_named and _is_dropped(truth, name, gtid):
                # A crash lost it, and its server_id is why it does not come again. Under the UUID of
                # another server no set shows that: the next audit does, behind its receiver (H8).
                continue
            return f"{gtid_text(gtid)}: {step} is not named"
    return ""


def _is_dropped(truth: Truth, name: str, gtid: Gtid) -> bool:
    """Return whether a server drops a transaction as its own."""
    own_id = truth.world[name].server_id
    return any(
        made.gtid == gtid and made.server_id == own_id
        for server in truth.world.servers.values()
        for made, _ in server.applied
    )


CHECKS: dict[str, Check] = {
    "A5": blocked,
    "C14": lambda _truth, _one: "",  # the text says that replication may work
    "E3": _absent_on_origin,
    "E6": _absent_on_origin,
    "H1": _absent_on_replica,
    "H2": lambda _truth, _one: "",  # the text has both causes
    "H7": _absent_on_origin,
    "H8": _absent_on_replica,
    "J1": _joining,
    "T1": _clears,
    "T2": _clears,
    "T3": _clears,
}
