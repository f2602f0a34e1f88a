"""One history, all oracles: play, read, audit, compare with the truth."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.cause_oracles import causes
from tests.simulation.choice_oracles import chosen_plans
from tests.simulation.contents import contents_of
from tests.simulation.group_oracles import group_conclusions, group_plans
from tests.simulation.history import History, generate
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import Truth, Violation, conclusions
from tests.simulation.plan_oracles import plans
from tests.simulation.reading import read
from tests.simulation.shrinking import shrink
from tests.simulation.state import World
from topology.audit import audit_cluster
from topology.findings import ClusterAudit
from topology.policy import Policy


def check_world(
    world: World, history: History, *, with_plans: bool = True
) -> tuple[list[Violation], ClusterAudit]:
    """Read and audit a world, and return what the truth contradicts."""
    policy = Policy()
    snapshot = with_answers(world, history.reading, read(world, history.reading), policy)
    audit = audit_cluster(snapshot, policy, contents_of(world, history.reading))
    truth = Truth(world, history.reading, snapshot, policy)
    found = [*conclusions(truth, audit), *causes(truth, audit), *group_conclusions(truth, audit)]
    if with_plans:
        found += [*plans(truth, snapshot, audit), *group_plans(truth, snapshot, audit)]
        found += chosen_plans(truth, snapshot, audit)
    return found, audit


def check(history: History, *, with_plans: bool = True) -> list[Violation]:
    """Play one history and return what the truth contradicts."""
    return check_world(history.play(), history, with_plans=with_plans)[0]


def check_seed(seed: int, *, with_plans: bool = True) -> tuple[History, list[Violation]]:
    """Make a history of a seed and check it."""
    history, world = generate(seed)
    return history, check_world(world, history, with_plans=with_plans)[0]


def shortest(history: History, kind: tuple[str, str]) -> History:
    """Return the shortest history with a violation of this kind."""
    with_plans = kind[0].startswith("plan")

    def fails(candidate: History) -> bool:
        return any(each.kind == kind for each in check(candidate, with_plans=with_plans))

    return shrink(replace(history), fails)
