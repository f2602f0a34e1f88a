"""What follows transactions that a server below executed already, and may have as others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.content.transaction_content import NetRow, RowsOn, RowState
from repair.doubts.misfitting_rows import (
    misfit_of_held,
    misfit_of_moving_rows,
    misfit_of_two_histories,
    misfit_of_two_origins,
)
from repair.model.replication_model import Model, ModelServer
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_content, a_net_row
from topology.readings.content_class import ContentClass

CHANGED = a_net_row((1, 5), (1, 6))
GONE = replace(a_net_row(None, None), between=((2, 5),))


@pytest.mark.parametrize(
    ("held", "state", "row", "is_doubted"),
    [
        ("a:2-3", RowState.AS_AFTER, CHANGED, False),
        ("a:2-3", RowState.AS_BEFORE, CHANGED, True),
        ("a:2-3", RowState.AS_BEFORE, GONE, False),  # before and after are alike
        ("a:2-3", RowState.CONFLICT, CHANGED, True),
        ("a:2-3", RowState.UNREAD, CHANGED, False),
        ("a:2", RowState.CONFLICT, CHANGED, False),  # the rest arrives, and is compared
        ("", RowState.AS_BEFORE, CHANGED, False),
    ],
)
def test_rows_of_what_a_server_executed_are_as_it_left_them(
    held: str, state: RowState, row: NetRow, *, is_doubted: bool
) -> None:
    content = a_content("a:2-3", rows=(row,), rows_on={"c": RowsOn(state)})
    found = misfit_of_held(content, server("c", "a:1-3", channel("b")), gtids(held))
    assert (found is not None) is is_doubted


def test_what_else_brings_transactions_may_have_changed_their_rows() -> None:
    content = a_content("a:2-3", rows=(CHANGED,), rows_on={"c": RowsOn(RowState.CONFLICT)})
    for two in ((), (channel("b"), channel("a"))):
        assert misfit_of_held(content, server("c", "a:1-3", *two), gtids("a:2-3")) is None


def test_transactions_without_rows_fit() -> None:
    content = a_content("a:2-3", ContentClass.EMPTY, rows_on={"c": RowsOn(RowState.CONFLICT)})
    assert misfit_of_held(content, server("c", "a:1-3", channel("b")), gtids("a:2-3")) is None


def test_a_servers_own_transactions_are_its_own() -> None:
    content = a_content("c:1", rows=(CHANGED,), rows_on={"c": RowsOn(RowState.CONFLICT)})
    assert misfit_of_held(content, server("c", "c:1", channel("b")), gtids("c:1")) is None


@pytest.mark.parametrize(
    ("servers", "is_told"),
    [
        # a has b:1 by hand, and c is to get the one of b as well.
        (model(server("a", "a:1, b:1"), server("b", "b:1"), server("c", "")), True),
        # a received it from b.
        (model(server("a", "a:1, b:1", channel("b")), server("b", "b:1"), server("c", "")), False),
        (model(server("a", "a:1, b:1"), server("c", "")), False),  # of a server outside
    ],
)
def test_a_gtid_of_a_server_that_the_source_does_not_receive_from_is_named(
    servers: Model, *, is_told: bool
) -> None:
    told = misfit_of_two_origins(servers, "a", servers["c"], gtids("b:1"))
    assert bool(told) is is_told
    assert told is None or "another channel of c brings" in told
    assert misfit_of_two_origins(servers, "a", servers["c"], gtids("a:1")) is None


@pytest.mark.parametrize(
    ("moving", "kind", "is_told"),
    [
        ("a:4", ContentClass.DATA, True),
        ("a:4", ContentClass.EMPTY, False),  # it changes no row
        ("a:2", ContentClass.DATA, False),  # the same comes by both channels
        ("", ContentClass.DATA, False),
    ],
)
def test_what_another_channel_brings_meanwhile_may_change_the_same_rows(
    moving: str, kind: ContentClass, *, is_told: bool
) -> None:
    content = a_content("a:2, b:1", kind, rows=(CHANGED,))
    here = server("d", "a:1-2, a:4" if moving else "a:1", channel("b"), channel("c"))
    told = misfit_of_moving_rows(content, here, gtids(moving))
    assert bool(told) is is_told
    assert told is None or f"may change rows of {gtids('b:1')}" in told


ABOVE = server("a", "a:1", channel("b"))  # a clone, which drops the transaction e:1 of b
PASSED = replace(channel("a"), passed=gtids("a:2"))
OF_BOTH = (server("b", "a:1, e:1", channel("a")), server("c", "a:1-2", channel("a")))


@pytest.mark.parametrize(
    ("above", "others", "here", "is_told"),
    [
        # a went on with a:2 and without e:1: it comes by c, or has come.
        ("a:1-2", OF_BOTH, "a:1-2", True),
        ("a:1-2, e:1", OF_BOTH, "a:1-2", False),  # it is only late
        ("a:1-2", OF_BOTH, "a:1", False),  # it has not gone on, as far as d knows
        ("a:1-2", (server("b", "a:1-2, e:1", channel("a")), OF_BOTH[1]), "a:1-2", False),
        ("a:1-2", (server("b", "a:1, e:1", PASSED), OF_BOTH[1]), "a:1-2", False),  # before a RESET
        ("a:1-2", (server("b", "e:1"), OF_BOTH[1]), "a:1-2", False),  # b has data of its own
        ("a:1-2", (OF_BOTH[0], server("c", "a:1-2")), "a:1-2", False),  # and so has c
        ("a:1-2", (OF_BOTH[0],), "a:1-2", True),  # c was not read, and d has what a went on with
        ("a:1-2", (OF_BOTH[0],), "a:1", False),
    ],
)
def test_older_versions_may_come_behind_a_history_that_went_on_without_them(
    above: str, others: tuple[ModelServer, ...], here: str, *, is_told: bool
) -> None:
    joined = server("d", here, channel("b", name="left"), channel("c", name="right"))
    servers = model(replace(ABOVE, executed=gtids(above)), *others, joined)
    known = {"b": servers["b"].executed}
    told = misfit_of_two_histories(servers, joined, "left", gtids("e:1"), known=known)
    assert bool(told) is is_told
    assert told is None or f"a executed {gtids('a:2')} without it, which d has" in told
    # Neither the other channel, nor what all of them have, is concerned.
    assert misfit_of_two_histories(servers, joined, "left", gtids("a:1"), known=known) is None
    [only, _] = joined.channels
    alone = replace(joined, channels=(only,))
    assert misfit_of_two_histories(servers, alone, "left", gtids("e:1"), known=known) is None
    unread = model(*(each for each in servers.servers.values() if each.name != "b"))
    assert misfit_of_two_histories(unread, joined, "left", gtids("e:1"), known={}) is None
