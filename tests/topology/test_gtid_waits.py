"""A5 of an applier that waits for a GTID: who owns it decides what the operator has to end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Finding
from topology.facts.gtid_waits import OWNER, channel_that_owns, owning_channel
from topology.readings.worker import WorkerSnapshot

WAIT = "Waiting for GTID to be committed"
OLD_WAIT = "waiting for GTID to be written to binary log"
AT_WORK = "Applying batch of row changes"
SIXTH = GtidSet.parse(f"{A}:6")


def worker(applying: str, state: str) -> WorkerSnapshot:
    gtids = GtidSet.parse(applying and f"{A}:{applying}")
    return WorkerSnapshot(1, gtids, 0, "", state=state, applying_seconds=999)


def found(waits: WorkerSnapshot, *others: WorkerSnapshot) -> Finding:
    """Return the A5 of b: both of its channels have received A:1-9, and A:6 is owned."""
    received = {"gtid_retrieved": GtidSet.parse(f"{A}:1-9")}
    channels = (
        a_channel("a", A, workers=(waits,), **received),
        a_channel("a", A, name="second", workers=others, **received),
    )
    b = a_server("b", B, f"{A}:1-5", channels=channels, gtid_owned=SIXTH)
    audit = audit_cluster(a_cluster("pair", a_server("a", A, f"{A}:1-9"), b))
    [one] = [each for each in audit.findings if each.code == "A5" and each.channel == ""]
    return one


@pytest.mark.parametrize(
    ("other", "owner"),
    [
        (worker("6", AT_WORK), "second"),
        (worker("7", AT_WORK), None),  # another transaction
        (worker("", AT_WORK), None),
        (worker("6", WAIT), None),  # it waits for the same session
        (worker("6", OLD_WAIT), None),
    ],
)
def test_a_worker_of_another_channel_that_executes_the_transaction_owns_its_gtid(
    other: WorkerSnapshot, owner: str | None
) -> None:
    one = found(worker("6", WAIT), other)
    assert owning_channel(one) == owner
    if owner is None:
        assert "A session on b owns this GTID" in one.explanation
        assert "channel 'second'" not in one.explanation
    else:
        assert "The applier of channel 'second' is executing this" in one.explanation
        assert "A session on b owns this GTID" not in one.explanation


def test_who_waits_for_another_lock_waits_for_no_gtid() -> None:
    one = found(worker("6", "Waiting for table metadata lock"), worker("6", AT_WORK))
    assert owning_channel(one) is None
    assert "is executing this transaction" not in one.explanation
    assert OWNER not in {each.fact for each in one.evidence}


def test_a_channel_does_not_wait_for_its_own_workers() -> None:
    workers = (worker("6", WAIT), replace(worker("6", AT_WORK), worker_id=2))
    channels = (a_channel("a", A, name="first", workers=workers),)
    b = a_server("b", B, "", channels=channels)
    assert channel_that_owns(SIXTH, b, waiting="first") is None
    assert channel_that_owns(SIXTH, b, waiting="second") == "first"
    others = (replace(channels[0], name="empty", workers=()), *channels)
    assert channel_that_owns(SIXTH, replace(b, channels=others), waiting="second") == "first"
    assert channel_that_owns(GtidSet(), b, waiting="second") is None
