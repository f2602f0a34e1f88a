"""One history, all oracles: play, read, audit, compare with the truth."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from tests.simulation.cause_oracles import causes
from tests.simulation.choice_oracles import chosen_plans
from tests.simulation.consumer_oracles import consumer_conclusions
from tests.simulation.contents import contents_of
from tests.simulation.definition_oracles import definition_conclusions
from tests.simulation.definitions import definitions_of
from tests.simulation.group_oracles import group_conclusions, group_plans
from tests.simulation.history import History, generate
from tests.simulation.likely_oracles import named_causes
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import Truth, Violation, conclusions
from tests.simulation.plan_oracles import plans
from tests.simulation.reading import read
from tests.simulation.shrinking import shrink
from tests.simulation.state import World
from tests.simulation.state_causes import stated
from tests.simulation.variations import vary
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy

Oracles = Literal["all", "conclusions", "plans", "choices"]


def check_world(
    world: World, history: History, *, oracles: Oracles = "all"
) -> tuple[list[Violation], ClusterAudit]:
    """Read and audit a world, and return what the truth contradicts.

    `conclusions` makes no plans; `plans` looks at plans without choices alone, `choices` at plans
    with choices alone.
    """
    policy = Policy()
    snapshot = with_answers(world, history.reading, read(world, history.reading), policy)
    compared = snapshot.with_contents(contents_of(world, history.reading, snapshot))
    compared = compared.with_definitions(definitions_of(world, history.reading, snapshot))
    audit = audit_cluster(compared, policy)
    truth = Truth(world, history.reading, snapshot, policy)
    found: list[Violation] = []
    if oracles in ("all", "conclusions"):
        found += [*conclusions(truth, audit), *causes(truth, audit), *named_causes(truth, audit)]
        found += [*stated(truth, audit), *group_conclusions(truth, audit)]
        found += [*consumer_conclusions(truth, audit), *definition_conclusions(truth, audit)]
    if oracles in ("all", "plans"):
        found += [*plans(truth, snapshot, audit), *group_plans(truth, snapshot, audit)]
    if oracles in ("all", "choices"):
        found += chosen_plans(truth, snapshot, audit)
    return found, audit


def check(history: History, *, oracles: Oracles = "all") -> list[Violation]:
    """Play one history and return what the truth contradicts."""
    return check_world(history.play(), history, oracles=oracles)[0]


def made_of(seed: int, *, kept: bool = False) -> tuple[History, World]:
    """Make a history of a seed: by chance, or as a variation of a kept one."""
    return vary(seed) if kept else generate(seed)


def check_seed(
    seed: int, *, oracles: Oracles = "all", kept: bool = False
) -> tuple[History, list[Violation]]:
    """Make a history of a seed and check it."""
    history, world = made_of(seed, kept=kept)
    return history, check_world(world, history, oracles=oracles)[0]


def oracles_of(kind: tuple[str, str]) -> Oracles:
    """Return the oracles that find a kind of violation."""
    if kind[0].startswith("choice"):
        return "choices"
    return "plans" if "plan" in kind[0] else "conclusions"


def shortest(history: History, kind: tuple[str, str]) -> History:
    """Return the shortest history with a violation of this kind."""

    def fails(candidate: History) -> bool:
        return any(each.kind == kind for each in check(candidate, oracles=oracles_of(kind)))

    return shrink(replace(history), fails)
