"""The strategy for S2: when it plans, when it only does if selected, and what it says of the rest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.content.definition_parts import DefinitionsRead
from repair.model.actions import ChangeDefinition
from repair.model.replication_model import Model
from repair.model.strategy_case import Outcome
from repair.strategies.definition_repair import repair_definition
from tests.repair.build import channel, model, server
from tests.repair.cases import a_case, a_finding, proposed, reason
from tests.repair.test_definition_changes import ID, PRIMARY, C, differing, table
from topology.catalogue.findings import Severity

INDEXED = table(ID, C, PRIMARY, "KEY `k` (`c`)")
PLAIN = table(ID, C, PRIMARY)
FEWER = differing(INDEXED, PLAIN)  # automatic
MORE = differing(PLAIN, INDEXED)  # if selected
MOVED = differing(table(ID, PRIMARY), PLAIN)  # by hand: a column more
READ = DefinitionsRead(
    objects=(FEWER,), has_channel=True, is_mutual=False, other_sources=(), refuses_writes=False
)
TWO = model(server("a", "a:1-5"), server("b", "a:1-5", channel("a")))


def decided(
    read: DefinitionsRead | None, *, is_chosen: bool = False, servers: Model = TWO
) -> Outcome:
    case = a_case(servers, a_finding("S2", ""), is_chosen=is_chosen, definitions=read)
    return repair_definition(case)


def test_what_is_safe_is_planned_on_the_replica() -> None:
    found = proposed(decided(READ))
    [action] = found.actions
    assert isinstance(action, ChangeDefinition)
    assert (action.server, action.source) == ("b", "a")
    assert (found.warnings, found.stays) == ((), ())


def test_the_rest_stays_with_its_reason_until_it_is_selected() -> None:
    read = replace(READ, objects=(FEWER, MORE, MOVED))
    found = proposed(decided(read))
    assert len(found.actions) == 1
    more, moved = found.stays
    assert more.endswith("reports on b may use it; --strategy S2=repair_definition does it")
    assert moved.endswith("drop it by hand if nothing does")
    chosen = proposed(decided(read, is_chosen=True))
    assert len(chosen.actions) == 2
    assert len(chosen.stays) == 1
    [warning] = chosen.warnings
    assert warning.startswith("table app.t (index more `k`): it may be intended")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"has_channel": False}, "no channel connects a and b"),
        ({"is_mutual": True}, "a and b are sources of each other"),
    ],
)
def test_a_direction_that_is_not_clear_is_selected(changed: dict[str, bool], why: str) -> None:
    read = replace(READ, **changed)  # type: ignore[arg-type]
    assert reason(decided(read)).startswith(why)
    assert proposed(decided(read, is_chosen=True)).warnings[0].startswith(why)


def test_nothing_is_planned_without_what_it_needs() -> None:
    assert "were not read in full" in reason(decided(None))
    assert "super_read_only is ON on b" in reason(
        decided(replace(READ, refuses_writes=True), is_chosen=True)
    )
    assert "could not be read" in reason(decided(READ, servers=model(server("b", "a:1"))))
    assert reason(decided(replace(READ, objects=(MOVED,)))).startswith("table app.t (column more")
    assert "nothing differs now" in reason(decided(replace(READ, objects=())))
    info = replace(FEWER, drift=replace(FEWER.drift, severity=Severity.INFO))
    assert "nothing differs now" in reason(decided(replace(READ, objects=(info,))))


def test_columns_are_selected_above_other_servers_and_below_several_sources() -> None:
    column = replace(READ, objects=(differing(PLAIN, table(ID, PRIMARY)),))
    [action] = proposed(decided(column)).actions
    assert isinstance(action, ChangeDefinition)
    assert action.rows_at is not None
    below = model(
        server("a", "a:1-5"), server("b", "a:1-5", channel("a")), server("c", "a:1", channel("b"))
    )
    assert "servers below b" in reason(decided(column, servers=below))
    assert "other sources" in reason(decided(replace(column, other_sources=("x:1",))))
    errant = model(server("a", "a:1-5"), server("b", "a:1-5 b:1", channel("a")))
    assert "a has not executed" in reason(decided(column, servers=errant))
