"""What a plan says of sources that were not read, before a script stops and starts a receiver."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid import GtidSet
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.replication_model import Model, ModelServer
from repair.scripts.channel_procedures import auto_position_on
from repair.scripts.procedure import Setting
from repair.scripts.unread_sources import uncounted
from tests.repair.build import NEW, OLD, channel, model, server, snapshot_of
from topology.readings.snapshot import LogPosition
from topology.readings.version import ServerVersion

OUTSIDE = replace(channel("x", name="x"), source=None)
BY_FILE = channel("a", auto=False)


def setting_of(servers: Model, action: AutoPositionOn | StartChannel) -> Setting:
    seen = snapshot_of(servers).last_read
    after = simulate(servers, action)
    return Setting(servers["b"], before=servers, after=after, seen=seen)


def warnings_of(servers: Model) -> tuple[str, ...]:
    action = AutoPositionOn("b", "", filled=GtidSet())
    return auto_position_on(action, setting_of(servers, action)).warnings


@pytest.mark.parametrize(
    ("others", "name"),
    [
        ((server("b", "a:1", BY_FILE, OUTSIDE),), "b"),
        ((server("b", "a:1", BY_FILE, channel("c", name="c")), server("c", "a:1", OUTSIDE)), "c"),
        ((server("b", "a:1", BY_FILE, channel("c", name="c")), server("c", "a:1")), None),
        ((server("b", "a:1", channel("a"), OUTSIDE),), None),  # on auto-position already
        ((server("b", "a:1", BY_FILE),), None),
        # What its own source has is not known either: there is nothing to compare with.
        ((server("b", "a:1", replace(BY_FILE, source=None), OUTSIDE),), None),
        # In a ring, b is above itself: its channel is listed once.
        (
            (
                server("b", "a:1", BY_FILE, channel("c", name="c"), OUTSIDE),
                server("c", "a:1", channel("b")),
            ),
            "b",
        ),
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


@pytest.mark.parametrize(
    ("version", "source", "is_warned"),
    [
        (OLD, "a", True),
        (NEW, "a", False),  # it counts what its relay log has
        (OLD, None, False),  # what its source may have lost is not known
    ],
)
def test_the_last_transaction_of_an_old_relay_log_may_be_of_a_former_history(
    version: ServerVersion, source: str | None, *, is_warned: bool
) -> None:
    stopped = replace(channel("a", runs=False), source=source)
    servers = model(server("a", "a:1-2"), server("b", "a:1", stopped, version=version))
    setting = setting_of(servers, StartChannel("b", ""))
    [read] = setting.seen["b"].channels or ()
    waits = replace(read, applied_to=LogPosition.of(file="binlog.000001", position=4))
    seen = {**setting.seen, "b": replace(setting.seen["b"], channels=(waits,))}
    texts = [*uncounted(StartChannel("b", ""), replace(setting, seen=seen))]
    assert bool(texts) is is_warned
    assert all("If a lost it since" in each and "b executes it" in each for each in texts)


def test_a_source_that_the_model_names_and_does_not_have_was_not_read() -> None:
    read = model(server("a", "a:1"), server("b", "a:1", BY_FILE, OUTSIDE))
    known = read.replace(server("b", "a:1", BY_FILE, replace(OUTSIDE, source="z")))
    action = AutoPositionOn("b", "", filled=GtidSet())
    setting = replace(setting_of(read, action), server=known["b"], before=known)
    texts = auto_position_on(action, setting).warnings
    assert any("from which b replicates, was not read" in each for each in texts)
