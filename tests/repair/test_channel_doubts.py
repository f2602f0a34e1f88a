"""What a channel may bring besides what the sets say: a former primary's tail (J3)."""

from uuid import UUID

import pytest

from gtid import GtidSet
from repair.model.channel_doubts import doubt_of
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.facts.graph import build_graph
from topology.readings.snapshot import ClusterSnapshot, ThreadState

E, F = (UUID(f"{each * 8}-0000-0000-0000-000000000000") for each in "ef")


def returned(*, executed: str = f"{A}:1-6", above: str = "old") -> ClusterSnapshot:
    """Return a former primary with a tail (A:7), and a replica whose stopped channel leads to it.

    The other two servers are in use: b was promoted.
    """
    stopped = {"receiver": ThreadState.STOPPED, "applier": ThreadState.STOPPED}
    others = (
        a_server("b", B, f"{A}:1-6,{B}:1-2"),
        a_server("c", C, f"{A}:1-6,{B}:1-2", channels=(a_channel("b", B),)),
        a_server(
            "e",
            E,
            f"{A}:1-6,{B}:1-2",
            channels=(a_channel("b", B),),
        ),
    )
    old = a_server("old", A, f"{A}:1-7")
    source = {"old": A, "b": B}[above]
    stale = a_server(
        "stale",
        F,
        executed,
        channels=(a_channel(above, source, **stopped),),
    )
    return a_cluster("pair", *others, old, stale)


@pytest.mark.parametrize(
    ("snapshot", "is_doubted"),
    [
        (returned(), True),
        (returned(executed=f"{A}:1-7"), False),  # it has the tail already
        (returned(above="b"), False),  # it follows the server in use
    ],
)
def test_a_start_does_not_spread_the_tail_of_a_former_primary(
    snapshot: ClusterSnapshot, *, is_doubted: bool
) -> None:
    audit, graph = audit_cluster(snapshot), build_graph(snapshot)
    assert "J3" in {each.code for each in audit.findings}
    [edge] = graph.into("stale")
    stale = snapshot.last_read["stale"]
    found = doubt_of(edge, stale, graph, snapshot.last_read, audit)
    assert bool(found) is is_doubted
    if is_doubted:
        [tail] = {each.gtid_set for each in audit.findings if each.code == "J3"}
        assert tail == GtidSet.parse(f"{A}:7")
        assert "stale would fetch them, and could not join b afterwards" in found


@pytest.mark.parametrize(
    ("ours", "others", "is_doubted"),
    [
        # The former primary a, and the promoted b: alone with b, nothing shows which is in use.
        ("", "", True),
        ("", "c", True),
        ("c", "", False),
        ("c", "e", True),
    ],
)
def test_the_part_in_use_is_the_larger_one_without_the_replica(
    ours: str, others: str, *, is_doubted: bool
) -> None:
    """Whichever of the two J3 reports. `ours` and `others` are further replicas of a and of b."""
    uuids = {"a": A, "b": B, "c": C, "e": E}
    below = [(name, "a", f"{A}:1-7") for name in ours]
    below += [(name, "b", f"{A}:1-6,{B}:1-2") for name in others]
    stopped = {"receiver": ThreadState.STOPPED, "applier": ThreadState.STOPPED}
    servers = (
        a_server("a", A, f"{A}:1-7"),
        a_server("b", B, f"{A}:1-6,{B}:1-2"),
        *(
            a_server(name, uuids[name], sets, channels=(a_channel(source, uuids[source]),))
            for name, source, sets in below
        ),
        a_server("stale", F, f"{A}:1-6", channels=(a_channel("a", A, **stopped),)),
    )
    snapshot = a_cluster("pair", *servers)
    audit, graph = audit_cluster(snapshot), build_graph(snapshot)
    assert "J3" in {each.code for each in audit.findings}
    [edge] = graph.into("stale")
    found = doubt_of(edge, snapshot.last_read["stale"], graph, snapshot.last_read, audit)
    assert found.startswith(f"a has {A}:7, which b does not have (J3)") is is_doubted
