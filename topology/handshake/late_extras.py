"""What a server would get out of order from a source with extra transactions: E1, E2, J3.

How it works
------------
Only one server has these, or it and those that received from it. A server that is pointed to one of
them fetches them, and executes them after all that it has executed since:

    r1 (errant)  UPDATE t SET v = 7      then, from its source, UPDATE t SET v = 9
    r2           UPDATE t SET v = 9      promoted, r1 sends the first one: v = 7

Where the row images are full, the applier of r2 stops (1032, 1062). Where they are not
(binlog_row_image = MINIMAL), or the keys are the same, the older row replaces the newer one and all
sets are equal afterwards. The order of two origins is not known from the sets
(late_transactions.py), and a source answers "yes". So these come first: `repair plan` compares the
rows.

Benign causes that look the same: the extra ones are the newest on their server (clients write to
it already), so no server executed a later one; or they change other rows. They need the repair too,
and a plan that read the rows shows that it does no harm.

Not extra in this sense: what has no content, or upkeep alone; what the policy allows (T6); what a
server without any transactions fetches, which executes all in the order of the log.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Severity
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ServerSnapshot

_EXTRA: Final = frozenset({"E1", "E2", "J3"})
_WITHOUT_ROWS: Final = frozenset({ContentClass.EMPTY, ContentClass.HARMLESS})


def extras_of(findings: Iterable[Finding], servers: Iterable[ServerSnapshot]) -> GtidSet:
    """Return what an audit reports as extra on any server, and what changes something."""
    extra = GtidSet.union_of(
        each.gtid_set
        for each in findings
        if each.code in _EXTRA and each.severity is not Severity.INFO
    )
    return extra - _without_rows(servers)


def extra_text(name: str, extra: GtidSet) -> Iterator[str]:
    """Yield what it may do to fetch these; nothing if there are none."""
    if extra:
        yield (
            f"{name} may execute {extra.shortened()}, which only some servers should have (E1, E2,"
            " J3), after later transactions that it has: older rows may replace newer ones, or its"
            " applier stops, and no set shows it afterwards. Repair these first (repair plan)"
        )


def _without_rows(servers: Iterable[ServerSnapshot]) -> GtidSet:
    return GtidSet.union_of(
        each.gtid
        for server in servers
        if server.history_evidence is not None
        for each in server.history_evidence.extras
        if each.content in _WITHOUT_ROWS
    )
