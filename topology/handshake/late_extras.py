"""What a server would get out of order from a source with extra transactions: E1, E2, H7, J3.

How it works
------------
Only one server has these, or it and those that received from it. A server that is pointed to one of
them fetches them, and executes them after all that it has executed since:

    r1 (errant)  UPDATE t SET v = 7      then, from its source, UPDATE t SET v = 9
    r2           UPDATE t SET v = 9      promoted, r1 sends the first one: v = 7

An applier finds a row by its key, and does not compare the other columns. So the older row replaces
the newer one, and all sets are equal afterwards (seen on 9.7.4, with full and with minimal row
images). If a key is there already, or is not, the applier stops (1062, 1032).

The order of two origins is not known from the sets (late_transactions.py), and a source answers
"yes". So these come first: `repair plan` compares the rows. H7 has a GTID of another server, which
never committed it, so its number shows no order either. E3 and E6 are in the order of their origin.

Benign causes that look the same: the extra ones are the newest on their server (clients write to
it already), so no server executed a later one; or they change other rows. They need the repair too,
and a plan that read the rows shows that it does no harm.

Not extra in this sense: what has no content, or upkeep alone; what the policy allows (T6); what a
server without any transactions fetches, which executes all in the order of the log. An accepted E1
counts: that others execute it late was not accepted.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Severity
from topology.facts.accepted_findings import severity_before
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ServerSnapshot

_EXTRA: Final = frozenset({"E1", "E2", "H7", "J3"})
_WITHOUT_ROWS: Final = frozenset({ContentClass.EMPTY, ContentClass.HARMLESS})


def extras_of(findings: Iterable[Finding], servers: Iterable[ServerSnapshot]) -> GtidSet:
    """Return what an audit reports as extra on any server, and what changes something."""
    extra = GtidSet.union_of(
        each.gtid_set
        for each in findings
        if each.code in _EXTRA and severity_before(each) is not Severity.INFO
    )
    return extra - _without_rows(servers)


def extra_text(name: str, extra: GtidSet) -> Iterator[str]:
    """Yield what it may do to fetch these; nothing if there are none."""
    if extra:
        yield (
            f"{name} may execute {extra.shortened()}, which only some servers should have (E1, E2,"
            " H7, J3), after later transactions that it has: older rows may replace newer ones, or"
            " its applier stops, and no set shows it afterwards. Repair these first (repair plan)"
        )


def _without_rows(servers: Iterable[ServerSnapshot]) -> GtidSet:
    return GtidSet.union_of(
        each.gtid
        for server in servers
        if server.history_evidence is not None
        for each in server.history_evidence.extras
        if each.content in _WITHOUT_ROWS
    )
