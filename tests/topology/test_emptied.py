"""A replica whose history is empty: reset, or new."""

from dataclasses import replace

import pytest

from tests.repair.build import channel, model, server, snapshot_of
from topology.rules.emptied import emptied_text
from topology.snapshot import LogPosition

[_, REPLICA] = snapshot_of(
    model(server("a", "a:1-9"), server("b", "", channel("a", runs=False)))
).last
[CHANNEL] = REPLICA.channels or ()


def test_a_channel_with_a_place_in_the_log_shows_a_reset() -> None:
    text = emptied_text(REPLICA, CHANNEL)
    assert text.startswith(" gtid_executed of b is empty although its channel has applied the log")
    assert "run that script again" in text


@pytest.mark.parametrize("place", [None, LogPosition.of(file="binlog.000001", position=4)])
def test_a_new_replica_has_no_place_yet(place: LogPosition | None) -> None:
    assert emptied_text(REPLICA, replace(CHANNEL, applied_to=place)) == ""


def test_a_server_with_a_history_or_an_unread_one_is_not_emptied() -> None:
    [source, _] = snapshot_of(model(server("a", "a:1"), server("b", "", channel("a")))).last
    assert emptied_text(source, CHANNEL) == ""
    assert emptied_text(replace(REPLICA, gtid_executed=None), CHANNEL) == ""
