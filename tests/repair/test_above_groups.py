"""What is added above a member of a group would be passed on by the group: no plan simulates it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from repair.model.missing_on import passed_on_by_group
from repair.strategies.leaving_out import inject_empty
from repair.strategies.redo_on_source import redo_on_source
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, reason, redone

GROUP = UUID("99999999-0000-0000-0000-000000000000")


def member(name: str, executed: str = "e:1-9", *sources: str) -> Any:
    channels = (channel(each) for each in sources)
    return replace(server(name, executed, *channels), group_name=GROUP)


def below_a_group(*, others: str = "e:1-9", is_group: bool = True) -> Any:
    """Return a source e, the group a, b of which a receives from it, and d below a."""
    return model(
        member("a", "e:1-9", "e"),
        replace(member("b", others), **({} if is_group else {"group_name": None})),
        server("d", "e:1-9 d:1", channel("a")),
        server("e", "e:1-9"),
    )


@pytest.mark.parametrize("strategy", [redo_on_source, inject_empty])
def test_an_errant_transaction_below_a_group_is_refused_with_its_reason(strategy: Any) -> None:
    errant = replace(a_finding("E1", "d:1"), source="a", replica="d")
    content = replace(a_content("d:1"), read_from="d", redo=redone("d:1"))
    case = a_case(below_a_group(), errant, content=content)
    why = reason(strategy(case))
    assert f"would pass these transactions on to b as a member of the group {GROUP}" in why
    assert "do it on e by hand" in why


def test_where_the_group_passes_nothing_on_there_is_no_reason() -> None:
    for servers, at, is_refused in (
        (below_a_group(), "e", True),
        (below_a_group(), "a", False),  # a member itself: invariants.py refuses it
        (below_a_group(), "d", False),
        (below_a_group(others="e:1-9 d:1"), "e", False),  # b has it
        (below_a_group(is_group=False), "e", False),  # a is alone in its group
    ):
        assert (passed_on_by_group(servers, [at], gtids("d:1")) is not None) is is_refused


def test_on_a_member_the_redo_is_by_hand_unless_there_is_a_reason_against_it() -> None:
    errant = replace(a_finding("E1", "d:1"), source="b", replica="d")
    content = replace(a_content("d:1"), read_from="d", redo=redone("d:1"))
    servers = model(
        member("a", "e:1-9"), member("b", "e:1-9"), server("d", "e:1-9 d:1", channel("b"))
    )
    why = reason(redo_on_source(a_case(servers, errant, content=content)))
    assert "redo them by hand on the primary of the group" in why
    assert f"binlog show '{gtids('d:1')}' SERVER --redo --keep-gtids" in why
    assert "SERVER is the DSN of d" in why


def test_nothing_is_redone_by_hand_under_the_uuid_of_the_group() -> None:
    """A member may have received it, and not applied it yet."""
    errant = replace(a_finding("E1", "d:1"), source="b", replica="d")
    content = replace(a_content("d:1"), read_from="d", redo=redone("d:1"))
    [uuid] = gtids("d:1").uuids
    for group, is_said in ((GROUP, True), (uuid, False)):
        members = (replace(member(name, "e:1-9"), group_name=group) for name in ("a", "b"))
        servers = model(*members, server("d", "e:1-9 d:1", channel("b")))
        outcome = redo_on_source(a_case(servers, errant, content=content))
        assert ("by hand on the primary" in str(outcome)) is is_said
