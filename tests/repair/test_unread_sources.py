"""What a plan says of sources that were not read, before a script stops and starts a receiver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from repair.model.actions import AutoPositionOn, simulate
from repair.model.replication_model import Model, ModelServer
from repair.scripts.channel_procedures import auto_position_on
from repair.scripts.procedure import Setting
from tests.repair.build import channel, model, server, snapshot_of

OUTSIDE = replace(channel("x", name="x"), source=None)
BY_FILE = channel("a", auto=False)


def warnings_of(servers: Model) -> tuple[str, ...]:
    action = AutoPositionOn("b", "", filled=GtidSet())
    seen = snapshot_of(servers).last_read
    after = simulate(servers, action)
    setting = Setting(servers["b"], before=servers, after=after, seen=seen)
    return auto_position_on(action, setting).warnings


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ((server("b", "a:1", BY_FILE, OUTSIDE),), "b"),
        ((server("b", "a:1", BY_FILE, channel("c", name="c")), server("c", "a:1", OUTSIDE)), "c"),
        ((server("b", "a:1", BY_FILE, channel("c", name="c")), server("c", "a:1")), None),
        ((server("b", "a:1", channel("a"), OUTSIDE),), None),  # on auto-position already
        ((server("b", "a:1", BY_FILE),), None),
    ],
)
def test_a_source_that_was_not_read_may_send_what_another_one_refuses(
    others: tuple[ModelServer, ...], name: str | None
) -> None:
    texts = warnings_of(model(server("a", "a:1"), *others))
    found = [each for each in texts if "then refuses the receiver of b (error 1236)" in each]
    assert len(found) == (name is not None)
    assert all(f"from which {name} replicates, was not read" in each for each in found)


@pytest.mark.parametrize("is_known", [True, False])
def test_a_source_whose_mode_was_not_read_may_refuse_auto_position(*, is_known: bool) -> None:
    source = replace(server("a", "a:1"), are_settings_known=is_known)
    texts = warnings_of(model(source, server("b", "a:1", BY_FILE)))
    assert any("unless gtid_mode is ON there" in each for each in texts) is not is_known
