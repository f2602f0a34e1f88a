"""What a relay log of MySQL before 5.7 may hold that no set shows: texts of an E1.

5.6 forgets the last GTID that it has received when its receiver connects (seen on 5.6.24). So GTIDs
that seem extra may be on their way to the source, in the relay log of the source or of a server
upstream of it: at most the last transaction of each.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.applier_facts import may_hide_received
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts

_TEXT: Final = (
    " MySQL before 5.7 does not count the last transaction that was in a relay log when its"
    " receiver connected: {what} may be on its way in the relay log of {servers}. Audit again when"
    " these relay logs are applied."
)


def that_may_hide(facts: ClusterFacts, edge: EdgeFacts) -> list[str]:
    """Return the servers upstream of a source that may have received what no set shows."""
    source = edge.source
    way = {source, *facts.graph.upstream_of(source, stopped_too=True)} - {edge.replica}
    return [name for name in sorted(way) if may_hide_received(facts.last[name])]


def hidden_text(gtids: GtidSet, hiding: list[str]) -> str:
    """Explain that some of an errant set may be on its way through these servers."""
    what = "it" if gtids.gtid_count == 1 else "one of these"
    return _TEXT.format(what=what, servers=", ".join(hiding))
