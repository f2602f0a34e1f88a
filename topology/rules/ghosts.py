"""H5: a source has executed transactions that are in none of its binary logs, and not purged.

mysqld computes gtid_purged from its first log and gtid_executed from its last one. So if a log in
the middle is lost, both still show what it held: with auto-position no receiver is refused, and
each passes over the gap without an error (seen on 9.7.4 and 5.6.24). Bugs of mysqld that add a GTID
to gtid_executed without an event look the same, and there no rows are missing. The log of a server
that received the transactions shows which it was.

The search asks the source to send these GTIDs. It refuses that with error 1236 if they were purged
meanwhile, and then they were not searched for.
"""

from collections.abc import Iterator
from typing import Final

from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.donors import DOUBTFUL_DONORS, donors_of
from topology.facts.unlogged import without_event
from topology.rules.build import Rules, evidence, many, on_edge
from topology.rules.hidden_received import may_be_received, received_text
from topology.rules.purged import coming_elsewhere

_ENDS: Final = "both ends of these ranges"
_BETWEEN: Final = (
    " gtid-audit did not search for what is between the two ends: {source} may have it. Look with"
    " `gtid-audit binlog locate` before you choose a repair."
)
_LOST: Final = (
    " By their GTID sets, the binary logs of {donors} have them: unless they are empty there, a"
    " binary log of {source} was lost (deleted by hand, a damaged binlog.index, a disk), and the"
    " rows are missing on {replica}."
)
_OPEN: Final = (
    " Possible causes: a binary log was lost (deleted by hand, a damaged binlog.index, a disk; the"
    " rows are missing on {replica}); a bug of mysqld that uses up a GTID without a transaction"
    " (71575, 74687, 106096; nothing is missing). Compare the rows."
)
_NOT_CERTAIN: Final = " Whether {name} can send them is not certain: {why}."


def source_ghost(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H5: a gap that the source cannot fill, although it has purged nothing of it."""
    for edge in facts.edges:
        source, replica = facts.last[edge.source], facts.last[edge.replica]
        ghosts = without_event(edge.bypassed, source)
        if not ghosts:
            continue
        evidence_of = source.history_evidence
        is_searched = evidence_of is not None and ghosts <= evidence_of.absent
        ends = {edge.source, edge.replica}
        found = donors_of(facts, ghosts, replica=edge.replica, apart_from=ends)
        holders = [each for each in found if ghosts <= each.held]
        donors = [each.name for each in holders]
        doubts = {each.name: each.doubt for each in holders if each.doubt}
        names = {"source": edge.source, "replica": edge.replica, "donors": ", ".join(donors)}
        coming = coming_elsewhere(facts, edge, ghosts)
        if may_be_received(facts, edge):
            coming += received_text(edge.replica, ghosts)
        yield on_edge(
            facts,
            edge,
            "H5",
            ghosts,
            grade=Grade.PROVED if is_searched and not coming else Grade.LIKELY,
            strategies=("donor_refetch", "reclone") if donors else ("reclone",),
            proof=(
                evidence("executed and not purged, in no binary log", ghosts, source),
                evidence("missing on the replica", ghosts, replica),
                evidence("in the binary logs of", ", ".join(donors) or "no audited server", source),
                *([evidence(DOUBTFUL_DONORS, ", ".join(doubts), source)] if doubts else ()),
            ),
            explanation=f"{edge.replica} does not have {many(ghosts)} of {edge.source}, and no"
            f" binary log of {edge.source} has {'them' if is_searched else _ENDS}: it cannot send"
            " them, and refuses no receiver."
            + (_LOST if donors else _OPEN).format(**names)
            + "".join(_NOT_CERTAIN.format(name=name, why=why) for name, why in doubts.items())
            + ("" if is_searched else _BETWEEN.format(**names))
            + coming,
        )


RULES: Rules = (
    source_ghost,  # H5
)
