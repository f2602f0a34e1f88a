"""Two faults at once, at the two replicas of one source: each must be found, as if it were alone."""

from dataclasses import replace

from tests.random_faults import extra_kinds, missing_kinds, thread_kinds
from tests.random_faults.kind import Injected, Kind
from tests.random_faults.scene import Scene

# Faults that change one replica only, and leave its source as it was.
_AT_ONE_REPLICA = {
    **{
        name: missing_kinds.KINDS[name]
        for name in ("bypass", "relay position", "equal id for a while", "future gtid")
    },
    **{name: extra_kinds.KINDS[name] for name in ("errant", "typed uuid", "declared")},
    **{
        name: thread_kinds.KINDS[name]
        for name in ("stopped", "row conflict", "object conflict", "until")
    },
}


def two_replicas(scene: Scene) -> Injected:
    """Inject one fault at each replica."""
    one, two = scene.dice.sample(sorted(_AT_ONE_REPLICA), k=2)  # two that differ: see table_on
    first = _AT_ONE_REPLICA[one].inject(scene)
    (other,) = {"replica1", "replica2"} - {scene.there.name}
    scene.delayed |= {scene.there.name}
    case, edge = scene.case, (scene.here.name, other)
    scene.case = replace(case, edge=edge)
    second = _AT_ONE_REPLICA[two].inject(scene)
    scene.case = case
    return Injected(first.expected, also=(second.expected,))


# More than one entry: they are drawn more often than a single fault.
KINDS = {
    f"two faults, {order}": Kind(two_replicas, ("star",), permits_lag=False)
    for order in ("first draw", "second draw", "third draw", "fourth draw")
}
