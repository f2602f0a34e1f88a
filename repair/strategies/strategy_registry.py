"""How each strategy is carried out: the one table of repair, keyed as strategy_table.py.

1. A strategy either has a planner, which proposes actions or refuses, or a manual instruction.
2. The planner of a plan (planner.py) simulates the actions, and an invariant may still refuse them.
3. `leaves_out`: the strategy declares that transactions are not needed. It comes after every
   strategy that delivers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from repair.model.strategy_case import Case, Outcome
from repair.strategies import clone_instructions as clones
from repair.strategies import manual_instructions as manual
from repair.strategies.blocking_sessions import kill_blocker
from repair.strategies.closing_gaps import until_after_gaps
from repair.strategies.configuring import configure, raise_retention
from repair.strategies.data_repair import data_repair, data_repair_on_source
from repair.strategies.definition_repair import repair_definition
from repair.strategies.executed_since import resolve_or_start
from repair.strategies.fetching_again import refetch
from repair.strategies.instruction_context import Text, always
from repair.strategies.leaving_out import gtid_purged_append, inject_empty, reset_and_purge
from repair.strategies.moving_past import position_bypass
from repair.strategies.redo_on_source import redo_on_source
from repair.strategies.refused_before import start_as_selected
from repair.strategies.undo_on_replica import undo_on_replica

Planner: TypeAlias = Callable[[Case], Outcome]


@dataclass(frozen=True, slots=True)
class RepairStrategy:
    """One strategy: steps that are planned, or an instruction for the operator."""

    plan: Planner | None = None
    instruction: Text | None = None
    leaves_out: bool = False

    def __post_init__(self) -> None:
        assert (self.plan is None) != (self.instruction is None), "one of the two"


def _planned(plan: Planner, *, leaves_out: bool = False) -> RepairStrategy:
    return RepairStrategy(plan=plan, leaves_out=leaves_out)


def _by_hand(instruction: Text) -> RepairStrategy:
    return RepairStrategy(instruction=instruction)


def _noted(instruction: str) -> RepairStrategy:
    return RepairStrategy(instruction=always(instruction))


REPAIRS: Mapping[str, RepairStrategy] = {
    "position_bypass": _planned(position_bypass),
    "refetch": _planned(refetch),
    "auto_position_on": _planned(refetch),
    "inject_empty": _planned(inject_empty, leaves_out=True),
    "gtid_purged_append": _planned(gtid_purged_append, leaves_out=True),
    "reset_and_purge": _planned(reset_and_purge, leaves_out=True),
    "start_channel": _planned(start_as_selected),
    "redo_on_source": _planned(redo_on_source),
    "undo_on_replica": _planned(undo_on_replica),
    "resolve_conflict": _planned(resolve_or_start),
    "data_repair": _planned(data_repair),
    "data_repair_on_source": _planned(data_repair_on_source),
    "wait": _noted("nothing to run: audit again in a few minutes"),
    "read_again": _noted("nothing to run: audit again"),
    "until_after_gaps": _by_hand(until_after_gaps),
    "donor_refetch": _by_hand(manual.donor_refetch),
    "reclone": _by_hand(clones.reclone),
    "raise_retention": _by_hand(raise_retention),
    "move_consumer": _by_hand(manual.move_consumer),
    "new_snapshot": _by_hand(manual.new_snapshot),
    "kill_blocker": _by_hand(kill_blocker),
    "new_server_uuid": _by_hand(manual.new_server_uuid),
    "configure": _by_hand(configure),
    "grant": _noted("grant the privilege or repair the access, and audit again"),
    "explain": _by_hand(manual.explain),
    "attach": _by_hand(manual.attach),
    "join_group": _by_hand(clones.join_group),
    "add_servers": _noted("add the servers that the finding lists, and audit again"),
    "check_data": _by_hand(manual.check_data),
    "repair_definition": _planned(repair_definition),
    "rebuild_position": _by_hand(manual.rebuild_position),
}

PLANNERS: Mapping[str, Planner] = {
    name: each.plan for name, each in REPAIRS.items() if each.plan is not None
}
LEAVING_OUT = frozenset(name for name, each in REPAIRS.items() if each.leaves_out)
