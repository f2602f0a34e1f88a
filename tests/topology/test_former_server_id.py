"""T2 of transactions that an applier may drop: the replica's server_id was another one before."""

from __future__ import annotations

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster

WORDS = "its applier drops"


@pytest.mark.parametrize(
    ("value", "origin_is_read", "words"),
    [
        ("EXPLICIT", False, ""),
        ("DYNAMIC", False, "was changed while it ran"),
        (None, False, "may have been changed while it ran"),  # no version before 8.0 shows it
        ("DYNAMIC", True, ""),  # its server_id is another one: C2 compares them
    ],
)
def test_a_server_id_that_was_set_since_is_named(
    value: str | None, words: str, *, origin_is_read: bool
) -> None:
    waits = f"{C}:1-2"
    settings: tuple[tuple[str, str], ...] = (("gtid_mode", "ON"),)
    if value is not None:
        settings += (("server_id_source", value),)
    channel = a_channel("a", A, gtid_retrieved=GtidSet.parse(waits))
    servers = [
        a_server("a", A, f"{A}:1-9,{waits}"),
        a_server("b", B, f"{A}:1-9", channels=(channel,), settings=settings),
    ]
    if origin_is_read:
        servers.append(a_server("c", C, waits))
    audit = audit_cluster(a_cluster("pair", *servers))
    [found] = [each for each in audit.findings if each.code == "T2"]
    assert found.gtid_set == GtidSet.parse(waits)
    assert (WORDS in found.explanation) is bool(words)
    assert words in found.explanation
