"""Who is asked whether an empty transaction is empty there as well."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from repair.adapters import transactions_for_plan
from repair.adapters.servers_to_read import ServersToRead
from repair.adapters.transactions_for_plan import _elsewhere
from repair.content.content_questions import ContentQuestion
from repair.content.transaction_content import TransactionContent
from tests.repair.build import channel, gtids, model, server, snapshot_of
from topology.readings.content_class import ContentClass


@pytest.mark.parametrize(
    ("mode", "received", "asked"),
    [
        ("ON", "b:1", ["c"]),
        ("ON_PERMISSIVE", "", ["c"]),
        ("ON_PERMISSIVE", "b:1", []),
    ],
)
def test_a_server_that_sends_nothing_by_gtid_is_believed_about_what_it_received(
    monkeypatch: pytest.MonkeyPatch, mode: str, received: str, asked: list[str]
) -> None:
    def read(_name: str, wanted: GtidSet, _servers: ServersToRead) -> TransactionContent:
        return TransactionContent("b", {ContentClass.EMPTY: wanted})

    monkeypatch.setattr(transactions_for_plan, "read_content", read)
    from_b = replace(channel("b"), retrieved=gtids(received))
    servers = model(server("b", "b:1"), server("c", "b:1", from_b))
    seen = {
        each.name: replace(each, settings=(("gtid_mode", mode),)) if each.name == "c" else each
        for each in snapshot_of(servers).last
    }
    targets: dict[str, Any] = dict.fromkeys("bc")
    question = ContentQuestion(gtids("b:1"), ("b", "c"), ())
    content = TransactionContent("b", {ContentClass.EMPTY: gtids("b:1")})
    found = _elsewhere(content, question, ServersToRead(seen, targets, 1.0))
    assert [name for name, _, _ in found] == asked
