"""A replica whose history is empty: reset, or new."""

from dataclasses import replace

import pytest

from gtid import GtidSet
from tests.repair.build import channel, model, server, snapshot_of
from tests.snapshots import A, with_facts
from tests.topology.test_decisions import of_pair, with_edges
from topology.catalogue.findings import Finding
from topology.readings.snapshot import LogPosition, ThreadState
from topology.rules import threads
from topology.rules.left_empty import emptied_text

STOPPED = ThreadState.STOPPED

[_, REPLICA] = snapshot_of(
    model(server("a", "a:1-9"), server("b", "", channel("a", runs=False)))
).last
[CHANNEL] = REPLICA.channels or ()


def test_a_channel_with_a_place_in_a_log_may_show_a_reset() -> None:
    text = emptied_text(REPLICA, CHANNEL)
    assert text.startswith(
        " gtid_executed of b is empty, and the position of its channel is binlog."
    )
    assert "run that script again" in text


@pytest.mark.parametrize(
    ("file", "position", "is_new"),
    [
        ("", 4, True),
        ("binlog.000001", 4, True),
        ("binlog.000001", 157, True),  # in the header of the first log
        ("binlog.000007", 4, True),  # the begin of a log, where it was told to begin
        ("binlog.000007", 157, False),
        ("binlog.000001", 1500, False),
    ],
)
def test_a_new_replica_has_no_place_yet(file: str, position: int, *, is_new: bool) -> None:
    place = LogPosition.of(file=file, position=position)
    assert (emptied_text(REPLICA, replace(CHANNEL, applied_to=place)) == "") is is_new


def test_a_server_with_a_history_or_an_unread_one_is_not_emptied() -> None:
    [source, _] = snapshot_of(model(server("a", "a:1"), server("b", "", channel("a")))).last
    assert emptied_text(source, CHANNEL) == ""
    assert emptied_text(with_facts(REPLICA, gtid_executed=None), CHANNEL) == ""


PLACE = LogPosition.of(file="binlog.000001", position=1500)  # behind the header, on 9.7.4


def stopped(place: LogPosition | None = PLACE, **edge: GtidSet) -> Finding:
    """Return A7 about a replica that has executed nothing, and whose channel has a place."""
    facts = with_edges(of_pair(receiver=STOPPED, applier=STOPPED, applied_to=place), edge)
    [channel] = facts.last["b"].channels or ()
    empty = replace(facts.last["b"], gtid_executed=GtidSet())
    servers = {**facts.last, "b": empty}
    first = {**facts.first, "b": empty}
    [found] = threads.replication_not_running(replace(facts, last=servers, first=first))
    assert found.channel == channel.name
    return found


def test_a_new_replica_that_is_stopped_was_not_reset() -> None:
    assert "gtid_executed" not in stopped().explanation


@pytest.mark.parametrize("part", ["behind", "passed", "bypassed"])
def test_a_place_behind_transactions_shows_a_reset(part: str) -> None:
    assert (
        "gtid_executed of b is empty, and the position"
        in stopped(PLACE, **{part: GtidSet.parse(f"{A}:1")}).explanation
    )


@pytest.mark.parametrize(
    ("file", "position", "is_shown"),
    [
        ("binlog.000001", 158, False),  # a new replica, and its source purged since
        ("binlog.000001", 200, False),
        ("binlog.000001", 201, True),
        ("binlog.000002", 158, True),  # the first log is behind it
    ],
)
def test_a_place_above_what_was_purged_shows_a_reset(
    file: str, position: int, *, is_shown: bool
) -> None:
    place = LogPosition.of(file=file, position=position)
    found = stopped(place, purged=GtidSet.parse(f"{A}:1"))
    assert ("gtid_executed of b is empty, and the position" in found.explanation) is is_shown


def test_what_was_there_in_the_first_reading_shows_a_reset() -> None:
    facts = of_pair(receiver=STOPPED, applier=STOPPED, applied_to=PLACE)
    empty = replace(facts.last["b"], gtid_executed=GtidSet())
    [found] = threads.replication_not_running(replace(facts, last={**facts.last, "b": empty}))
    assert "gtid_executed of b is empty, and the position" in found.explanation
