"""F1, F3: sets in many pieces, and numbers that are nearly used up.

A gap in a server's own GTIDs that no other server has is no finding. The server assigns the lowest
free number that it has not passed since its start, so it fills such a gap at once or after its next
restart (seen on 9.7.4 and 5.6.24), and its replicas apply what it then commits. A gap that another
server has is E3, E6 or H7.
"""

from collections.abc import Iterator
from typing import Final

from gtid import GNO_END, GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.readings.snapshot import ReadServer
from topology.rules.build import Rules, evidence, finding

# mysqld warns from 99 % on (MY-013693); at the end it cannot write its binary log any more.
NUMBERS_USED_MAX: Final = GNO_END * 99 // 100


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
    fragmented_set,  # F1
    numbers_nearly_used,  # F3
)
