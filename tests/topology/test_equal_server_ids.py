"""C2: a replica with the server_id of its source, which may run with replicate-same-server-id."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.catalogue.findings import Grade, Severity
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.rules.settings import duplicate_server_id


@pytest.mark.parametrize(
    ("logs_received", "received", "executed", "may_accept"),
    [
        (False, "1-3", "1-3", True),
        (None, "1-3", "1-3", True),  # its settings were not read
        (False, "1-3", "3", True),
        (True, "1-3", "1-3", False),  # such a server does not start with the option
        (False, "", "1-3", False),  # a copy of the source has them without a channel
        (False, "1-3", "", False),  # received, and perhaps dropped by the applier
    ],
)
def test_a_replica_that_has_what_it_received_may_accept_its_own_server_id(
    received: str, executed: str, *, logs_received: bool | None, may_accept: bool
) -> None:
    def own(numbers: str) -> GtidSet:
        return GtidSet.parse(numbers and f"{A}:{numbers}")

    settings = (("gtid_mode", "ON"), ("log_replica_updates", "ON" if logs_received else "OFF"))
    channel = a_channel("a", A, gtid_retrieved=own(received))
    a = a_server("a", A, f"{A}:1-3", server_id=5)
    b = a_server("b", B, own(executed), server_id=5, settings=settings, channels=(channel,))
    if logs_received is None:
        b = replace(b, settings=None, notable_settings=None)
    [found] = duplicate_server_id(gather_facts(a_cluster("pair", a, b), Policy()))
    dropped = own("1-3") - own(executed)
    assert (found.source, found.replica, found.gtid_set) == ("a", "b", dropped)
    assert found.grade is (Grade.LIKELY if may_accept else Grade.PROVED)
    is_warning = may_accept and not dropped
    assert found.severity is (Severity.WARNING if is_warning else Severity.CRITICAL)
    assert ("runs with replicate-same-server-id" in found.explanation) is may_accept
