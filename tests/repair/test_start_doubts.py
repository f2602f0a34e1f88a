"""Doubts about the start of a stopped channel: one fact of the servers at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.doubts.start_doubts import (
    as_warning,
    came_beside,
    doubts_of_start,
    left_gaps,
    stops_by_wish,
    waiting_ddl,
    warnings_of_start,
    would_not_connect,
)
from repair.doubts.switch_doubts import not_to_be_switched
from repair.model.actions import AutoPositionOn, StartChannel
from repair.model.replication_model import Model
from repair.model.strategy_case import Case
from repair.strategies.starting import misfit_of_waiting
from tests.repair.build import NEW, OLD, UUIDS, channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding
from topology.readings.content_class import ContentClass
from topology.readings.version import ServerVersion

FOUND = a_finding("A7", "a:3")
START = StartChannel("b", "")


def chain(*others: Any, a: dict[str, Any] | None = None, beside: Any = (), **facts: Any) -> Model:
    """Return a -> b -> c, where the channel of b is stopped and a:3 waits on it."""
    stopped = replace(channel("a", runs=False), **facts)
    return model(
        replace(server("a", "a:1-3"), **(a or {})),
        server("b", "a:1-2", stopped, *beside),
        server("c", "a:1-2", channel("b")),
        *others,
    )


def with_b(servers: Model, **facts: Any) -> Model:
    return servers.replace(replace(servers["b"], **facts))


def doubts(servers: Model, **facts: Any) -> list[str]:
    """Return the doubts, each of which is a warning of a start that was selected."""
    case = a_case(servers, FOUND, is_chosen=False, **facts)
    replica = servers["b"]
    found = [*doubts_of_start(case, replica, replica.channels[0])]
    told = [*warnings_of_start(case, replica, replica.channels[0])]
    refusing = [each for each in found if "refuses" in each]
    others = [each for each in found if "refuses" not in each]
    assert told == [*refusing, *map(as_warning, others)]
    return found


def short(text: str) -> str:
    for letter, uuid in UUIDS.items():
        text = text.replace(str(uuid), letter)
    return text


OTHER = channel("d", name="o")
LONGER = {"executed": gtids("a:1-5")}
D = server("d", "a:1-2")


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (chain(), ""),
        (chain(passed=gtids("a:3")), "b may fetch a:3 again, although its applier has passed"),
        (with_b(chain(), torn_below="c"), "c receives what b applies, and was restarted or reset"),
        (with_b(chain(), logs_received=False), "b does not log what it receives (log_replica_upd"),
        (with_b(chain(), has_log=False), "Restart b with its binary log first"),
        # c receives by file position, or from a server that has committed all of that itself.
        (
            with_b(chain(), logs_received=False).replace(
                server("c", "a:1-2", channel("b", auto=False))
            ),
            "",
        ),
        (
            with_b(chain(a={"channels": (channel("b"),)}), logs_received=False).replace(
                server("c", "a:1-2")
            ),
            "",
        ),
        # A server above on another channel skips the next transaction.
        (chain(replace(D, skips_next=True), beside=(OTHER,)), "d, which sends b the same transac"),
        (
            chain(replace(D, channels=(channel("e"),)), beside=(OTHER,)).replace(
                replace(server("e", "a:1-2"), skips_next=True)
            ),
            "e, which sends b the same transactions",
        ),
        # Or it has passed some, and sends later ones.
        (
            chain(
                server("d", "a:1-2", channel("a", auto=False, bypassed="a:3")),
                beside=(OTHER,),
            ),
            "d, which sends b the same transactions over another channel, has passed a:3 without",
        ),
        # Or it may skip one that it lacks, or have skipped it, while its gtid_mode is not ON.
        (
            chain(
                replace(server("d", "a:1-2 a:4"), sends_by_sets=False), beside=(OTHER,), a=LONGER
            ),
            "d, which sends b the same transactions over another channel, does not have a:3:5",
        ),
        (
            chain(replace(D, sends_by_sets=False), beside=(OTHER,), a=LONGER),
            "d, which sends b the same transactions over another channel, does not have a:3-5 yet",
        ),
        (chain(server("d", "a:1-2 a:4"), beside=(OTHER,), a=LONGER), ""),  # workers close the gap
        (chain(replace(D, executed=gtids("a:1-5"), sends_by_sets=False), beside=(OTHER,)), ""),
        (chain(D, beside=(OTHER,)), ""),
        (chain(a={"skips_next": True}), ""),  # the source of the channel itself
        (with_b(chain(), skips_next=True), ""),  # an invariant refuses that
        (chain(beside=(replace(OTHER, source=None),)), ""),
        (chain(beside=(OTHER,)), ""),  # d was not read
    ],
)
def test_a_start_is_doubted_for_each_of_these_alone(servers: Model, words: str) -> None:
    found = [short(each) for each in doubts(servers)]
    assert len(found) == bool(words)
    assert all(words in each for each in found)


@pytest.mark.parametrize(
    ("unread", "by_sets", "retrieved", "words"),
    [
        (True, False, "a:4", "b has received a:4 over another channel, and its channels"),
        (True, False, "a:1-2", ""),  # all of it was executed when the servers were read
        (True, True, "a:4", ""),  # gtid_mode is ON: no counter skips
        (False, False, "a:4", ""),  # both readings have its channels
    ],
)
def test_what_a_second_channel_may_have_skipped_would_come_late(
    retrieved: str, words: str, *, unread: bool, by_sets: bool
) -> None:
    beside = replace(channel("d", name="o"), retrieved=gtids(retrieved))
    servers = with_b(chain(D, beside=(beside,)), had_unread_channels=unread, sends_by_sets=by_sets)
    found = [short(each) for each in doubts(servers)]
    assert len(found) == bool(words)
    assert all(words in each for each in found)
    own = with_b(chain(retrieved=gtids("a:4")), had_unread_channels=unread, sends_by_sets=by_sets)
    assert doubts(own) == [], "what waits on the channel itself comes in its order"


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        (chain(D, beside=(replace(OTHER, orphaned=gtids("d:1")),)), "the relay log of b has d:1"),
        (chain(D, beside=(replace(OTHER, orphaned=gtids("a:2")),)), ""),  # it was applied
        (chain(D, beside=(OTHER,)), ""),
        # What waits on the channel itself is a sign of its own: former_history.py.
        (chain(D, beside=(OTHER,), orphaned=gtids("a:3")), ""),
        (
            chain(a={"channels": (replace(channel("e"), orphaned=gtids("e:1")),)}, beside=(OTHER,)),
            "the relay log of a has e:1, which e does not have",
        ),
        # c alone receives over two channels, and so has what replaced the former history.
        (
            chain(a={"channels": (replace(channel("e"), orphaned=gtids("e:1")),)}).replace(
                server("c", "a:1-2", channel("b"), channel("e", name="o"))
            ),
            "which e does not have: it belongs to a former history. c receives over several chan",
        ),
        # Behind a single path the rows match.
        (chain(a={"channels": (replace(channel("e"), orphaned=gtids("e:1")),)}), ""),
        (
            chain(a={"channels": (replace(channel("e"), orphaned=gtids("e:1")),)}).replace(
                server("c", "a:1-2", channel("b", runs=False), channel("e", name="o"))
            ),
            "",
        ),
    ],
)
def test_a_former_history_must_not_meet_what_replaced_it(servers: Model, words: str) -> None:
    found = [short(each) for each in doubts(servers)]
    assert len(found) == bool(words)
    assert all(words in each for each in found)


@pytest.mark.parametrize(("auto", "unread", "is_warned"), [
    (True, "900 MiB of its log follow", True),
    (False, "900 MiB of its log follow", False),
    (True, "", False),
])  # fmt: skip
def test_a_selected_start_warns_of_a_log_that_was_not_read(
    unread: str, *, auto: bool, is_warned: bool
) -> None:
    servers = chain(auto_position=auto, without_gtid_unread=unread)
    case = a_case(servers, FOUND)
    found = [*warnings_of_start(case, servers["b"], servers["b"].channels[0])]
    assert len(found) == is_warned
    assert all(each.endswith("if its gtid_mode was not always ON") for each in found)
    assert not [*doubts_of_start(case, servers["b"], servers["b"].channels[0])]


def beside(servers: Model, waits: str = "a:3", **seen: str) -> list[str]:
    """Return the warnings about what receiving servers have from other sources."""
    executed = {each.name: each.executed for each in servers.servers.values()}
    executed |= {name: gtids(text) for name, text in seen.items()}
    case = a_case(servers, FOUND, snapshot_executed=executed)
    return [short(each) for each in came_beside(case, START, a_content(waits))]


def test_older_versions_may_replace_what_another_source_changed_and_changed_back() -> None:
    for name in ("b", "c"):
        [text] = beside(chain(), **{name: "a:1-2 d:1"})
        assert f"what {name} has from other sources than a was not read (d:1)" in text
        assert "rows of a:3" in text
    assert beside(chain()) == []
    assert beside(chain(), b="a:1-2 b:1") == [], "own_work.py reads what a server committed itself"
    assert beside(chain(), a="a:1-3 d:1", b="a:1-2 d:1") == [], "it came through the source"
    assert beside(chain(), "a:3-4", c="a:1-2 a:4") == [], "what waits was read"
    above = chain(server("d", "a:1 d:1"), a={"channels": (channel("d"),)})
    assert beside(above, b="a:1-2 d:1") == [], "it came through a server above the source"
    there = chain().replace(server("c", "a:1-3 d:1", channel("b")))
    assert beside(there) == [], "nothing arrives on c"
    stopped = chain().replace(server("c", "a:1-2 d:1", channel("b", runs=False)))
    assert beside(stopped) == [], "c receives nothing now"
    assert beside(chain(source=None), b="a:1-2 d:1") == [], "what it sends is not known"


@pytest.mark.parametrize(
    ("facts", "executed", "version", "words"),
    [
        ({"retrieved": gtids("a:2-4")}, "a:1 a:3", NEW, "run `START REPLICA UNTIL SQL_AFTER_MTS"),
        ({"retrieved": gtids("a:2-4")}, "a:1 a:3", OLD, "run `START SLAVE UNTIL SQL_AFTER_MTS_G"),
        ({"retrieved": gtids("a:2-4")}, "a:1", NEW, ""),  # what waits follows all it executed
        ({"retrieved": gtids("a:3")}, "a:1 a:3", NEW, ""),  # a:2 is not in the relay log
        ({"retrieved": gtids("a:2-4"), "passed": gtids("a:2")}, "a:1 a:3", NEW, ""),
        ({"retrieved": gtids("a:2-4"), "running": True}, "a:1 a:3", NEW, ""),
    ],
)
def test_gaps_of_a_parallel_applier_are_filled_before_its_channel_is_changed(
    facts: dict[str, Any], executed: str, version: ServerVersion, words: str
) -> None:
    servers = chain(**facts)
    replica = replace(servers["b"], executed=gtids(executed), version=version)
    why = left_gaps(a_case(servers, FOUND), replica, replica.channels[0]) or ""
    assert words in why
    assert bool(why) is bool(words)
    assert not why or "may have left gaps (a:2)" in short(why)


@pytest.mark.parametrize(
    ("source", "facts", "words"),
    [
        ({}, {}, None),
        ({"server_id": 7}, {}, "a and b have the same server_id or server_uuid"),
        ({"has_log": False}, {}, "a has no open binary log: it would refuse"),
        ({"sends_by_sets": False}, {}, "gtid_mode is not ON on a: no channel can use"),
        ({"sends_by_sets": False}, {"auto_position": False}, None),
        ({"purged": gtids("a:1-3")}, {}, "a would refuse b with error 1236: a:3"),
        ({"purged": gtids("a:1-3")}, {"auto_position": False}, None),
        ({"has_log": False}, {"source": None}, None),  # nothing is known of its source
        ({"has_log": False}, {"source": "z"}, None),
    ],
)
def test_a_receiver_that_its_source_would_refuse_is_not_started(
    source: dict[str, Any], facts: dict[str, Any], words: str | None
) -> None:
    servers = with_b(chain(a=source, **facts), server_id=7)
    why = would_not_connect(servers, servers["b"], servers["b"].channels[0])
    assert (why is None) is (words is None)
    assert words is None or words in short(why or "")


DDL = a_content("a:3", ContentClass.DDL, statements=("DROP TABLE t", "DROP TABLE u"))


def stopping(case: Case) -> str | None:
    replica = case.model["b"]
    return stops_by_wish(case, replica, replica.channels[0])


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"until": "SQL_BEFORE_GTIDS"}, "b was started with UNTIL SQL_BEFORE_GTIDS"),
        (
            {"held_back_seconds": 3600},
            "only the applier of b is stopped, and SOURCE_DELAY is 3600 s",
        ),
    ],
)
def test_what_an_operator_stopped_is_started_only_when_selected(
    facts: dict[str, Any], words: str
) -> None:
    """Perhaps because of DDL that waits: the refusal shows it."""
    case = a_case(chain(**facts), FOUND, is_chosen=False)
    why = stopping(case) or ""
    assert words in why
    assert "select --strategy A7=start_channel" in why
    assert "DDL" not in why
    told = stopping(replace(case, arrivals={("b", ""): DDL})) or ""
    assert "DDL: a:3, `DROP TABLE t`, `DROP TABLE u`" in short(told)
    assert stopping(replace(case, is_chosen=True)) is None
    assert stopping(a_case(chain(), FOUND, is_chosen=False)) is None


def test_only_ddl_of_the_channel_itself_waits_on_it() -> None:
    case = a_case(chain(), FOUND, arrivals={("b", ""): DDL})
    assert short(waiting_ddl(case, "b", "")).startswith("DDL: a:3, `DROP TABLE t`")
    assert waiting_ddl(case, "b", "o") == ""
    rows = replace(case, arrivals={("b", ""): a_content("a:3")})
    assert waiting_ddl(rows, "b", "") == ""


@pytest.mark.parametrize(
    ("runs", "skips", "is_told"),
    [(False, True, True), (False, False, False), (True, True, False)],
)
def test_a_stopped_channel_is_not_switched_beside_one_whose_source_skips_the_next(
    *, runs: bool, skips: bool, is_told: bool
) -> None:
    """It would deliver behind later transactions what that source skips."""
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1-3", channel("a")),
        replace(server("c", "a:1-3", channel("a")), skips_next=skips),
        server(
            "d", "a:1-3", channel("b", auto=False, runs=runs, name="from_b"), channel("c", name="c")
        ),
    )
    case = a_case(servers, a_finding("C3", "", source="b", replica="d", channel="from_b"))
    why = misfit_of_waiting(case, AutoPositionOn("d", "from_b", filled=gtids("")))
    assert ("skips the next one" in (why or "")) is is_told
    # By the time it runs, the channel may be stopped: by default a running one is not switched.
    d = servers["d"]
    default = not_to_be_switched(replace(case, is_chosen=False), d, d.channels[0], servers["b"])
    assert ("skips the next one" in (default or "")) is skips
    chosen = replace(case, is_chosen=True)
    assert not_to_be_switched(chosen, d, d.channels[0], servers["b"]) is None
