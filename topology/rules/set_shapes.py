"""H6, F1, F3: gaps in a server's own GTIDs, sets in many pieces, numbers nearly used up.

A server assigns the lowest free number that it has not passed since its start. So it fills a gap
in its own GTIDs at once, or after its next restart (seen on 9.7.4 and 5.6.24). Benign and malign
gaps look the same on the server: a rolled back transaction, or a GTID that a session set by hand.
They differ only in whether another server has executed the numbers. Those that an audited server
has are E3, E6 or H7. H6 has the others, so it is info: only a server outside the audit can skip
them.
"""

from collections.abc import Iterator
from typing import Final

from gtid import GNO_END, GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.unseen import group_uuids
from topology.readings.snapshot import ReadServer
from topology.rules.build import Rules, evidence, finding, many

# mysqld warns from 99 % on (MY-013693); at the end it cannot write its binary log any more.
NUMBERS_USED_MAX: Final = GNO_END * 99 // 100


def own_gap(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H6: numbers below a server's own highest GTID that no audited server has."""
    for name, server in sorted(facts.fully_read.items()):
        if group_uuids([server.last]):
            continue  # members share the numbers of their group, in blocks
        gap = _own(server.first).holes() & _own(server.last).holes()
        gap -= server.first.gtid_owned | server.last.gtid_owned
        for other in facts.last.values():
            gap -= (other.gtid_executed or GtidSet()) | other.gtid_retrieved
        if gap:
            yield finding(
                facts,
                "H6",
                replica=name,
                gtid_set=gap,
                grade=Grade.PROVED,
                strategies=(),
                proof=(
                    evidence("gap in its own GTIDs, in both readings", gap, server.last),
                    evidence("gtid_owned", server.last.gtid_owned, server.last),
                ),
                explanation=f"{name} has not used {many(gap)} below its own highest GTID, and no"
                " audited server has them. It assigns them to new transactions, at once or after"
                " its next restart. A server outside this audit that has one of them would skip"
                " that transaction without an error; nothing else depends on the gap.",
            )


def fragmented_set(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield F1: a set with so many intervals that servers and tools become slow."""
    for name, server in sorted(facts.fully_read.items()):
        executed = server.last.gtid_executed
        if executed.interval_count <= facts.policy.intervals_max:
            continue
        holes = executed.holes()
        yield finding(
            facts,
            "F1",
            replica=name,
            gtid_set=holes,
            grade=Grade.PROVED,
            strategies=(),
            proof=(
                evidence("intervals", f"{executed.interval_count:,}", server.last),
                evidence("missing between them", holes, server.last),
            ),
            explanation=f"gtid_executed of {name} consists of {executed.interval_count:,}"
            " intervals. Every connection with auto-position sends and compares all of them. If no"
            " server will ever execute what is missing between them, empty transactions close"
            " the gaps on all servers: first find out what left them.",
        )


def numbers_nearly_used(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield F3: a server can assign only few more GTIDs under a UUID."""
    for name, server in sorted(facts.fully_read.items()):
        own = _own(server.last)
        used = GtidSet.union_of(
            each
            for each in (own.from_tsid(tsid) for tsid in own.tsids)
            if each.gtid_count > NUMBERS_USED_MAX
        )
        if used:
            left = min(GNO_END - 1 - used.from_tsid(each).gtid_count for each in used.tsids)
            yield finding(
                facts,
                "F3",
                replica=name,
                gtid_set=used,
                grade=Grade.PROVED,
                strategies=(),
                proof=(
                    evidence("used under its own UUID", used, server.last),
                    evidence("numbers left", f"{left:,}", server.last),
                ),
                explanation=f"{name} can commit {left:,} more transactions under its server_uuid."
                " Then it cannot write its binary log any more, and stops unless"
                " binlog_error_action is IGNORE_ERROR. Give it a new server_uuid: stop it, move"
                " auto.cnf away, and start it.",
            )


def _own(server: ReadServer) -> GtidSet:
    return server.gtid_executed.from_uuid(server.server_uuid)


RULES: Rules = (
    own_gap,  # H6
    fragmented_set,  # F1
    numbers_nearly_used,  # F3
)
