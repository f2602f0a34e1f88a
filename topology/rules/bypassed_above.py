"""What never arrives on a server although it is on its way to another one: it was bypassed.

    a ◀──▶ b      b has received A:2-3 and not applied them yet (T2)
    a ──▶ c       the position of c was set past A:2-5 (H1)

For a server, everything on its way to the servers above it arrives, too. A:2-3 are on their way to
b, which is above c by way of a. They do not come to c: a has them, and c has gone past them.
"""

from collections.abc import Collection
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts

# A channel by file position has gone past it, and its source may have purged it since.
_PASSED: Final = frozenset({"H1", "H3", "H4", "H5"})


def bypassed_on(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what channels or appliers have gone past, on the only way to a server.

    With a second source it may come from there.
    """
    found, has, seen = GtidSet(), GtidSet(), {name}
    while True:
        holes = (each.gtid_set for each in findings if each.replica == name and _is_passed(each))
        found |= GtidSet.union_of(holes) - has  # what a server below it has comes from there
        has |= facts.last[name].gtid_executed or GtidSet()
        sources = {edge.source for edge in facts.graph.into(name)}
        if len(sources) != 1 or sources & seen:
            return found
        [name] = sources
        seen.add(name)


def _is_passed(finding: Finding) -> bool:
    """Return whether no channel of the finding's replica delivers its set.

    An H8 that is likely may be a backlog, and after P1 a connected receiver may still fetch.
    """
    return finding.code in _PASSED or (finding.code, finding.grade) == ("H8", Grade.PROVED)
