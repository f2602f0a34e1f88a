"""What never arrives on a server although it is on its way to another one: it was bypassed.

    a ◀──▶ b      b has received A:2-3 and not applied them yet (T2)
    a ──▶ c       the position of c was set past A:2-5 (H1)

For a server, everything on its way to the servers above it arrives, too. A:2-3 are on their way to
b, which is above c by way of a. They do not come to c: a has them, and c has gone past them.
"""

from collections.abc import Collection

from gtid import GtidSet
from topology.catalogue.findings import Finding
from topology.facts.cluster_facts import ClusterFacts


def bypassed_on(facts: ClusterFacts, findings: Collection[Finding], name: str) -> GtidSet:
    """Return what channels by file position have gone past (H1), on the only way to a server.

    With a second source it may come from there.
    """
    found, has, seen = GtidSet(), GtidSet(), {name}
    while True:
        holes = (each.gtid_set for each in findings if (each.code, each.replica) == ("H1", name))
        found |= GtidSet.union_of(holes) - has  # what a server below it has comes from there
        has |= facts.last[name].gtid_executed or GtidSet()
        sources = {edge.source for edge in facts.graph.into(name)}
        if len(sources) != 1 or sources & seen:
            return found
        [name] = sources
        seen.add(name)
