"""What a relay log of MySQL before 5.7 may hold that no set shows: texts of E1, H5 and P1.

5.6 forgets the last GTID that it has received when its receiver connects (seen on 5.6.24). So GTIDs
that seem extra may be on their way to the source, in the relay log of the source or of a server
upstream of it: at most the last transaction of each. And one that a replica seems to be missing for
good may be in its own relay log, and is applied.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.applier_facts import may_end_uncounted, may_hide_received
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts

_TEXT: Final = (
    " MySQL before 5.7 does not count the last transaction that was in a relay log when its"
    " receiver connected: {what} may be on its way in the relay log of {servers}. Audit again when"
    " these relay logs are applied."
)
_IN_OWN_LOG: Final = (
    " Before 5.7 the set of received transactions may not count the last one of the relay log: if"
    " it is {which}, {name} applies it{and_then}. Audit again when its applier has nothing left to"
    " do."
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


def may_be_received(facts: ClusterFacts, edge: EdgeFacts) -> bool:
    """Return whether the relay log of a channel may have one of what no set of its replica shows.

    Sets are read before positions: the last transaction may be applied between the two.
    """
    return any(
        may_end_uncounted(server, channel)
        for server in (facts.first[edge.replica], facts.last[edge.replica])
        for channel in server.channels or ()
        if channel.name == edge.channel.name
    )


def received_text(replica: str, gtids: GtidSet, and_then: str = "") -> str:
    """Explain that one of what is missing may be in the relay log, and what follows if it is."""
    which = "this one" if gtids.gtid_count == 1 else "one of these"
    return _IN_OWN_LOG.format(which=which, name=replica, and_then=and_then)
