"""What a promotion plans for a server that has a channel from the candidate already."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.snapshots import A, B, a_channel
from tests.topology.test_group_handshake import D, server
from tests.topology.test_handshake import one
from tests.topology.test_promotion_order import of, of_servers, written
from topology.catalogue.findings import Verdict
from topology.handshake.promotion import PromotionStep
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot, ThreadState

_FROM_A = a_channel("a", A, name="from_a")
_FROM_B = a_channel("b", B, name="from_b")
_CHANGE = "CHANGE REPLICATION SOURCE"


def diamond(*channels: ChannelSnapshot, executed: str = "a:1") -> tuple[ServerSnapshot, ...]:
    """Return d ─▶ a, b, and c below both."""
    from_d = (a_channel("d", D),)
    return (
        one("a", "a:1", channels=from_d),
        one("b", "a:1", channels=from_d),
        one("c", executed, channels=channels or (_FROM_A, _FROM_B)),
        server("d", "a:1"),
    )


def steps_of_c(*channels: ChannelSnapshot, executed: str = "a:1") -> list[PromotionStep]:
    _, steps = of_servers("a", *diamond(*channels, executed=executed))
    return of(steps, "c")


def test_nothing_is_planned_for_a_server_below_the_candidate() -> None:
    """A second channel from a would end the first one: a sees one server_uuid twice (13114)."""
    promotion, steps = of_servers("a", *diamond())
    assert promotion.verdict is Verdict.OK
    assert of(steps, "c") == []
    assert _CHANGE in written(tuple(of(steps, "b")))
    assert _CHANGE in written(tuple(of(steps, "d")))


def test_nothing_is_planned_for_an_only_channel_from_the_candidate() -> None:
    assert steps_of_c(a_channel("a", A)) == []


@pytest.mark.parametrize("thread", ["receiver", "applier"])
def test_a_stopped_channel_from_the_candidate_is_started(thread: str) -> None:
    stopped: dict[str, Any] = {thread: ThreadState.STOPPED}
    [start] = steps_of_c(replace(_FROM_A, **stopped), _FROM_B)
    assert start.what == "It has a channel from a already: start it."
    assert start.statements == ("START REPLICA FOR CHANNEL 'from_a';",)


def test_a_receiver_that_has_something_to_come_requests_it_again() -> None:
    [again] = steps_of_c(executed="")
    assert f"start it again, so that it requests {A}:1." in again.what
    assert again.statements == (
        "STOP REPLICA FOR CHANNEL 'from_a';",
        "START REPLICA FOR CHANNEL 'from_a';",
    )


def test_a_channel_by_file_position_from_the_candidate_is_the_one_to_change() -> None:
    [point] = steps_of_c(replace(_FROM_A, auto_position=False), _FROM_B)
    assert all(each.endswith(" FOR CHANNEL 'from_a';") for each in point.statements)
    assert point.statements[1].startswith(_CHANGE)


def test_a_channel_by_which_a_donor_served_it_is_pointed_back() -> None:
    """Its channel from a, which has purged what it needs, was pointed to b first."""
    servers = (
        one("a", "a:1-5", purged="a:1-4"),
        one("b", "a:1-5"),
        one("c", "a:1-2", channels=(replace(_FROM_A, receiver=ThreadState.STOPPED),)),
    )
    _, steps = of_servers("a", *servers)
    donor, back = of(steps, "c")
    assert "let this server replicate from b until it has them" in donor.what
    assert "SOURCE_HOST = 'b.example'" in donor.statements[1]
    assert back.what == "Point it to a."
    assert "SOURCE_HOST = 'a.example'" in back.statements[1]


def test_a_donor_serves_by_the_channel_that_comes_from_it() -> None:
    servers = (
        one("a", "a:1-5", purged="a:1-4"),
        one("b", "a:1-5"),
        one("c", "a:1-2", channels=(_FROM_A, _FROM_B)),
    )
    _, steps = of_servers("a", *servers)
    donor = of(steps, "c")[0]
    assert donor.statements[1].endswith(" FOR CHANNEL 'from_b';")


def test_another_channel_from_a_server_that_was_not_read_may_bring_its_own() -> None:
    gone = a_channel("x", None, name="from_x")
    servers = diamond(_FROM_A, gone)
    promotion, steps = of_servers("a", *servers)
    assert promotion.verdict is Verdict.UNKNOWN
    [former] = of(steps, "c")
    assert former.statements == ()
    assert "Its channel 'from_x' from x.example:3306, which was not read" in former.what


def test_without_a_version_a_channel_that_stays_has_no_statement() -> None:
    *above, last, source = diamond(replace(_FROM_A, receiver=ThreadState.STOPPED))
    _, steps = of_servers("a", *above, replace(last, version=None), source)
    [start] = of(steps, "c")
    assert (start.statements, "no statement is shown" in start.what) == ((), True)
