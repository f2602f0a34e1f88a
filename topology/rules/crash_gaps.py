"""H2: a gap that parallel workers left when the applier stopped.

Benign and malign causes look the same in the sets: an older transaction is received and missing,
later ones are applied, and the applier is stopped.

* Workers were at different positions when it stopped (a crash, a kill, an error). The applier has
  not passed the gap: it fills it when it starts.
* The applier has skipped the transaction, or forgot it in a RESET. Then it has passed it, and the
  gap stays: H8. The source's log separates the two: what is before the applier's position there is
  passed, what is after it is not (log_searches.py). Without that answer H2 is `likely`.
* Another channel applied the later ones. A replica with several channels is not reported here.
"""

from collections.abc import Iterator
from typing import Final

from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.readings.snapshot import ThreadState
from topology.rules.build import Rules, evidence, many, on_edge

_SEVERAL: Final = 2


def crash_gap(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H2: a gap below applied transactions, of an applier that is stopped."""
    for edge in facts.edges:
        gap, channel = edge.queued_below, edge.channel
        replica = facts.last[edge.replica]
        workers = replica.setting("replica_parallel_workers")
        if not gap or channel.applier is not ThreadState.STOPPED:
            continue
        if len(replica.channels or ()) >= _SEVERAL or workers in ("0", "1"):
            continue
        is_ahead = gap <= edge.ahead
        yield on_edge(
            facts,
            edge,
            "H2",
            gap,
            grade=Grade.PROVED if is_ahead and workers is not None else Grade.LIKELY,
            proof=(
                evidence("received, missing below the highest applied", gap, replica),
                evidence("of these, after the applier's position", gap & edge.ahead, replica),
                evidence("applier", channel.applier.value, replica),
                evidence("replica_parallel_workers", workers or "unknown", replica),
            ),
            explanation=f"The applier of {edge.replica} stopped within a gap: its workers had"
            f" applied later transactions before {many(gap)} that it has received. It fills the gap"
            " when it starts. Until then CHANGE REPLICATION SOURCE is refused with error 1802, and"
            " RESET REPLICA loses the list of what is missing."
            + ("" if is_ahead else _OR_PASSED.format(source=edge.source)),
        )


_OR_PASSED: Final = (
    " The log of {source} does not show whether the applier has passed them. If they were skipped,"
    " or forgotten in a RESET, the gap stays: audit again after the start (H8)."
)

RULES: Rules = (
    crash_gap,  # H2
)
