"""Compares the contents of servers that a command names, with what their last audit remembered.

A command without a history (`pair`, `repair plan`) does what cluster_contents.py says. With one,
the servers are a fleet of one cluster, whose audits remember (fleet_contents.py).
"""

from collections.abc import Callable

from gtid_audit.operands.cluster_to_read import ClusterToRead
from gtid_audit.tasks.cluster_contents import look_at_contents
from gtid_audit.tasks.compared_restarts import Memory
from gtid_audit.tasks.fleet_contents import compare_contents
from topology.questions.contents_to_compare import Remembered
from topology.readings.contents import ContentReading
from topology.readings.snapshot import ClusterSnapshot


def contents_of(
    cluster: ClusterToRead,
    snapshot: ClusterSnapshot,
    content: bool | None,
    *,
    say: Callable[[str], None],
    memory: Memory | None,
) -> ContentReading | None:
    """Compare contents where that is due; None if nothing was.

    Raises UsageProblem if the memory is unusable.
    """
    if memory is None:
        return look_at_contents(
            snapshot,
            cluster.targets,
            content,
            say=say,
            accepted=cluster.policy.accepted,
            remembered=Remembered(suspects={cluster.name: cluster.suspects}),
            seconds_max=cluster.query_seconds_max,
        ).reading
    assert not cluster.suspects, "a plan has suspects, and no memory"
    compared = compare_contents(
        {cluster.name: cluster.targets},
        [snapshot],
        content,
        policy=cluster.policy,
        remembered=memory.read(),
        say=say,
        seconds_max=cluster.query_seconds_max,
    )
    memory.write(compared.remembered)
    return (compared.readings or {}).get(cluster.name)
