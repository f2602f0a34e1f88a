"""A channel that its source refused with "more GTIDs": the source may have given them again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.case import LogEvidence
from repair.start import start_model
from tests.repair.build import channel, model, server, snapshot_of
from topology.audit import audit_cluster


@pytest.mark.parametrize(
    ("text", "is_former"),
    [
        ("", False),
        ("Replica has more GTIDs than the source has, using the source's SERVER_UUID.", True),
        ("Slave has more GTIDs than the master has, using the master's SERVER_UUID.", True),
        ("Binary log is not open", False),
    ],
)
def test_the_refusal_of_a_source_makes_what_was_received_doubtful(
    text: str, is_former: bool
) -> None:
    snapshot = snapshot_of(model(server("a", "a:1-9"), server("b", "a:1-3", channel("a"))))
    last = tuple(
        replace(
            each,
            channels=tuple(
                replace(one, receiver_errno=13114 if text else 0, receiver_error=text)
                for one in each.channels or ()
            ),
        )
        for each in snapshot.last
    )
    snapshot = replace(snapshot, last=last)
    started = start_model(snapshot, audit_cluster(snapshot), LogEvidence())
    assert [each.may_be_former for each in started["b"].channels] == [is_former]
