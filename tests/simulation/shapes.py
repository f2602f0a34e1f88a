"""The shapes of simulated topologies: who receives from whom, and where clients write."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tests.simulation import replication as act
from tests.simulation.membership import new_queue
from tests.simulation.state import Channel, Group, World, new_server


@dataclass(frozen=True, slots=True)
class Shape:
    """A topology before anything happened in it."""

    sources: dict[str, tuple[str, ...]]  # replica -> its sources
    primaries: tuple[str, ...]
    group: tuple[str, ...] = ()  # the members; the first one is the primary
    group_uuid: str = "g"

    @property
    def is_multi_source(self) -> bool:
        return any(len(each) > 1 for each in self.sources.values())


SHAPES: dict[str, Shape] = {
    "pair": Shape({"a": ("b",), "b": ("a",)}, ("a", "b")),
    "replica": Shape({"a": (), "b": ("a",)}, ("a",)),
    "star": Shape({"a": (), "b": ("a",), "c": ("a",)}, ("a",)),
    "chain": Shape({"a": (), "b": ("a",), "c": ("b",)}, ("a",)),
    "ring": Shape({"a": ("c",), "b": ("a",), "c": ("b",)}, ("a", "b", "c")),
    "multi-source": Shape({"a": (), "b": (), "c": ("a", "b")}, ("a", "b")),
    "tree": Shape({"a": (), "b": ("a",), "c": ("a",), "d": ("b",), "e": ("b",)}, ("a",)),
    "diamond": Shape({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}, ("a",)),
    "pair and replica": Shape({"a": ("b",), "b": ("a",), "c": ("a",)}, ("a", "b")),
    "unlinked": Shape({"a": (), "b": (), "c": ("a",)}, ("a", "b")),
    "group": Shape({"a": (), "b": (), "c": ()}, ("a",), ("a", "b", "c")),
    "group and replica": Shape({"a": (), "b": (), "c": (), "d": ("b",)}, ("a",), ("a", "b", "c")),
    "group named a": Shape({"a": (), "b": (), "c": ()}, ("a",), ("a", "b", "c"), "a"),
}
# Groups whose name is the server_uuid of a replica below them, or of the member that it follows. They
# are made of a part of the histories of another shape, so that all other seeds stay what they were.
_WITH_REPLICA = SHAPES["group and replica"]
VARIANTS: dict[str, tuple[str, ...]] = {
    "group and replica": ("group named d", "group named b and replica"),
}
GENERATED = tuple(SHAPES)
SHAPES |= {
    "group named d": replace(_WITH_REPLICA, group_uuid="d"),
    "group named b and replica": replace(_WITH_REPLICA, group_uuid="b"),
}

VERSIONS: dict[str, tuple[int, int, int]] = {"9.7.4": (9, 7, 4), "5.6.24": (5, 6, 24)}


@dataclass(frozen=True, slots=True)
class Setup:
    """A shape with the settings that all its servers have."""

    shape: str
    version: str = "9.7.4"
    workers: int = 4
    commit_order: bool = True

    def world(self) -> World:
        """Return new servers whose channels run."""
        shape = SHAPES[self.shape]
        world = World(primaries=set(shape.primaries))
        for number, name in enumerate(sorted(shape.sources), start=1):
            world.servers[name] = new_server(name, number, version=VERSIONS[self.version])
        for name, sources in shape.sources.items():
            for source in sources:
                channel = Channel("" if len(sources) == 1 else f"from_{source}", source)
                channel.workers, channel.commit_order = self.workers, self.commit_order
                channel.receiver, channel.applier = "Connecting", "Yes"
                world[name].channels.append(channel)
        if shape.group:
            world.group = Group(shape.group_uuid, shape.group, set(shape.group))
            world.group.primary = shape.group[0]
            for name in shape.group:
                world[name].group_applier = new_queue(world[name])
        act.rest(world)
        return world
