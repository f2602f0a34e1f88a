"""What an audit says of definitions (S1, S2), compared with those that servers have at rest.

The truth is what SHOW CREATE prints on each server once everything has happened that happens by
itself. DDL that is on its way has arrived then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from tests.simulation.definitions import OBJECTS, definition_of, definitions_of, statement_of
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import Truth, Violation
from tests.simulation.reading import gtids, read
from tests.simulation.state import Key, Server, World, gtid_text
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Severity, Verdict

ORACLE = "definitions"
_NOT_SEARCHED = re.compile(r"on their way from (?!relay logs)\S+ were not all searched")
_ON_ITS_WAY = "It is on its way ("


def definition_conclusions(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """12. S2 is of objects that differ at rest, S1 of DDL that is missing, and OK of neither."""
    if not truth.reading.definitions:
        return
    for one in audit.findings:
        if one.code == "S2" and one.severity is not Severity.INFO:
            yield from _differs(truth, one)
        elif one.code == "S1":
            yield from _is_missing(truth, one)
    yield from _ok(truth, audit)


def differing(world: World, source: str, replica: str) -> list[str]:
    """Return the objects whose definitions differ on two servers, as findings label them."""
    return [
        key.label
        for row, key in OBJECTS.items()
        if definition_of(world[source], row) != definition_of(world[replica], row)
    ]


def _has_it_as_another(truth: Truth, row: Key, one: Finding) -> bool:
    """Return whether DDL of an object is to come under a GTID of which the source has other content."""
    assert one.source is not None, "S2 is about two servers"
    assert one.replica is not None, "S2 is about two servers"
    came = truth.rested[one.replica].executed - truth.world[one.replica].executed
    of_source = {made.gtid: made for made, _ in truth.world[one.source].applied}
    return any(
        made.gtid in came and row in made.keys and of_source.get(made.gtid, made).work != made.work
        for made, _ in truth.rested[one.replica].applied
    )


def _differs(truth: Truth, one: Finding) -> Iterator[Violation]:
    """Yield the objects of S2 that are alike at rest.

    Exempt is one that was changed without the binary log, where DDL of a third server makes it
    alike, and one whose DDL stops the applier: the difference is the sign of what was done by hand.
    Exempt as well is one for which both have executed the same GTIDs of DDL: they differ now, and
    DDL that neither of them has executed makes them alike. And one that DDL makes alike under a GTID
    that the source has executed with other content: a group was bootstrapped without it (E4). And
    one that DDL of a third server makes alike whose logs could not be searched, as the text says. And
    one that a busy applier of 5.6 makes alike by what no set lists, as the text says.
    """
    assert one.source is not None, "S2 is about two servers"
    assert one.replica is not None, "S2 is about two servers"
    found = differing(truth.rested, one.source, one.replica)
    labels = {key.label: row for row, key in OBJECTS.items() if key.label not in found}
    for fact in one.evidence:
        if fact.fact in labels and "info," not in fact.value:
            row = labels[fact.fact]
            is_likely = " likely" in fact.value and _names_what_is_to_come(one)
            if truth.fails_later(one.replica) or _has_it_as_another(truth, row, one):
                continue
            if " likely" in fact.value and "does not list the last transaction" in one.explanation:
                continue
            if is_likely and (
                _NOT_SEARCHED.search(one.explanation)
                or _comes_from_elsewhere(truth, row, one)
                or _have_the_same_ddl(truth, row, one.source, one.replica)
            ):
                continue
            text = f"S2 {one.source}->{one.replica}: {fact.fact} is alike at rest ({fact.value})"
            yield Violation(ORACLE, "S2", text)


def _names_what_is_to_come(one: Finding) -> bool:
    words = ("is on its way from", "on their way from", "transactions can reach")
    return any(each in one.explanation for each in words)


def _comes_from_elsewhere(truth: Truth, row: Key, one: Finding) -> bool:
    """Return whether DDL changes an object that this server, or the other one, had not received.

    And the object was changed without the binary log somewhere, or by DDL that stays on one of the
    two. Without that, all DDL that makes two servers alike is known to be on its way to one of
    them.
    """
    names = (one.source or "", one.replica or "")
    if row not in truth.world.drifted and not any(
        _stays(truth, row, *pair) for pair in (names, names[::-1])
    ):
        return False
    for name in names:
        server = truth.world[name]
        had = {made.work for made, _ in server.applied}
        paths = (path for path in server.channels if path.source in (one.source, one.replica))
        had |= {entry.transaction.work for path in paths for entry in path.relay}
        if any(
            made.work not in had and row in dict(undo) for made, undo in truth.rested[name].applied
        ):
            return True
    return False


def _stays(truth: Truth, row: Key, name: str, other: str) -> bool:
    """Return whether a server committed DDL of an object that the other one never gets."""
    server = truth.world[name]
    ddl = {made.gtid for made, undo in server.applied if row in dict(undo)}
    own = {gtid for gtid in ddl if gtid[0] == server.uuid}
    return not own <= truth.rested[other].executed


def _have_the_same_ddl(truth: Truth, row: Key, source: str, replica: str) -> bool:
    """Return whether two servers have executed the same GTIDs of DDL of an object.

    And none waits in a relay log: the other server may have executed it before a RESET.
    """
    logged = (
        made
        for server in truth.world.servers.values()
        for log in server.files
        for made in log.entries
    )
    received = (entry.transaction for _, path in truth.world.paths() for entry in path.relay)
    ddl = {
        made.gtid
        for made in (*logged, *received)
        if statement_of(made) and any(change.key == row for change in made.changes)
    }
    one, other = truth.world[source], truth.world[replica]
    waits = {
        gtid
        for server in (one, other)
        for path in server.channels
        for gtid in path.retrieved - server.executed
    }
    return not ddl & waits and ddl & one.executed == ddl & other.executed


def _is_missing(truth: Truth, one: Finding) -> Iterator[Violation]:
    """Yield what S1 says of DDL that is none, that is there, or that does not come."""
    assert one.source is not None, "S1 is about two servers"
    assert one.replica is not None, "S1 is about two servers"
    ddl = {
        made.gtid
        for server in truth.world.servers.values()
        for log in server.files
        for made in log.entries
        if statement_of(made)
    }
    if not one.gtid_set <= gtids(ddl):
        yield Violation(ORACLE, "S1", f"{one.gtid_set - gtids(ddl)} is no DDL")
    for gtid in sorted(ddl & truth.world[one.replica].executed):
        if gtids([gtid]) <= one.gtid_set:
            yield Violation(ORACLE, "S1", f"{one.replica} has {gtid_text(gtid)}")
    is_certain = _ON_ITS_WAY in one.explanation and ", likely)" not in one.explanation
    left = one.gtid_set - gtids(truth.rested[one.replica].executed)
    if not is_certain or not left or one.severity is not Severity.INFO:
        return
    if not truth.fails_later(one.replica) and not truth.waits_within_limits(one.replica):
        yield Violation(ORACLE, "S1", f"{left} is said to be on its way, and stays")


def _ok(truth: Truth, audit: ClusterAudit) -> Iterator[Violation]:
    """Yield definitions of linked servers that differ at rest, after OK.

    Of an object that DDL on its way changes the next audit decides.
    """
    if audit.verdict is not Verdict.OK:
        return
    for server, channel in truth.world.paths():
        names = (channel.source, server.name)
        if not {*names} <= {*truth.reading.visible}:
            continue
        if truth.fails_later(server.name) or truth.waits_within_limits(server.name):
            continue
        for label in differing(truth.rested, *names):
            row = next(row for row, key in OBJECTS.items() if key.label == label)
            if _is_of_another_source(truth, row, channel.source, server):
                continue
            is_to_change = _is_changed_since(truth, row, names) or _comes_as_other(
                truth, row, names
            )
            if is_to_change and _is_reported_next(truth, label):
                continue
            is_new = _was_changed_between(truth, row, names)
            if is_new and _audit_at_rest(truth).verdict is not Verdict.OK:
                continue
            text = f"OK, but {label} differs on {channel.source} and {server.name}"
            yield Violation(ORACLE, "OK", text)


def _is_changed_since(truth: Truth, row: Key, names: tuple[str, str]) -> bool:
    """Return whether DDL that a server had not executed has changed an object there."""
    return any(
        made.gtid not in truth.world[name].executed and row in dict(undo)
        for name in names
        for made, undo in truth.rested[name].applied
    )


def _comes_as_other(truth: Truth, row: Key, names: tuple[str, str]) -> bool:
    """Return whether one server is to get the GTID of DDL that the other one has executed.

    It looks as if the DDL were on its way. The other content of that GTID shows when it is applied.
    """
    for name, other in (names, names[::-1]):
        ddl = {made.gtid for made, undo in truth.world[name].applied if row in dict(undo)}
        if ddl & (truth.rested[other].executed - truth.world[other].executed):
            return True
    return False


def _was_changed_between(truth: Truth, row: Key, names: tuple[str, str]) -> bool:
    """Return whether DDL of an object was committed between the readings, on one of two servers."""
    before = {each.name: each.gtid_executed or GtidSet() for each in truth.snapshot.first}
    return any(
        row in dict(undo) and not gtids([made.gtid]) <= before.get(name, GtidSet())
        for name in names
        for made, undo in truth.world[name].applied
    )


def _is_reported_next(truth: Truth, label: str) -> bool:
    """Return whether the audit at rest reports an object, or is not OK about it."""
    audit = _audit_at_rest(truth)
    facts = {fact.fact for one in audit.findings if one.code == "S2" for fact in one.evidence}
    return label in facts or audit.verdict is Verdict.UNKNOWN


def _audit_at_rest(truth: Truth) -> ClusterAudit:
    world, reading = truth.rested.copy(), replace(truth.reading, moving=False, between=())
    snapshot = with_answers(world, reading, read(world, reading), truth.policy)
    found = definitions_of(world, reading, snapshot)
    return audit_cluster(snapshot.with_definitions(found), truth.policy)


def _is_of_another_source(truth: Truth, row: Key, source: str, replica: Server) -> bool:
    """Return whether only the replica has an object, and another source of it has it as well."""
    others = {*replica.sources} - {source}
    return row not in truth.rested[source].rows and any(
        row in truth.rested[name].rows for name in others
    )
