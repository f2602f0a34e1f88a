"""What one kind of fault is: a function that injects it, and the edges where it can happen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.random_faults.cases import EDGES, Edge
from tests.random_faults.expectations import Expected
from tests.random_faults.scene import Scene

ALL: Final = ("pair", "ring", "star", "chain", "pair56")
MODERN: Final = ("pair", "ring", "star", "chain")
ONE_WAY: Final = ("star", "chain")
PAIRS: Final = ("pair", "pair56")


@dataclass(frozen=True, slots=True)
class Injected:
    """What was injected, and how it is undone where that is one step."""

    expected: Expected
    undo: Callable[[], None] | None = None
    also: tuple[Expected, ...] = ()  # of a second fault, at another edge
    during: Callable[[], None] | None = None  # runs beside the audit


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault that can be injected."""

    inject: Callable[[Scene], Injected]
    shapes: tuple[str, ...]
    at_writers: bool = True  # the source of the edge must be a server to which clients write
    at_leaves: bool = False  # nothing replicates from the replica of the edge
    permits_lag: bool = True  # another replica may be delayed

    def edges(self, shape: str) -> tuple[Edge, ...]:
        """Return the edges of a shape where it can happen."""
        if shape not in self.shapes:
            return ()
        edges = EDGES[shape]
        if self.at_writers and shape == "chain":
            edges = edges[:1]
        if self.at_leaves:
            sources = {source for source, _ in EDGES[shape]}
            edges = tuple(edge for edge in edges if edge[1] not in sources)
        return edges


def edges_by_shape(kinds: Mapping[str, Kind]) -> dict[str, dict[str, tuple[Edge, ...]]]:
    """Return the kinds that each shape can have, with their edges."""
    return {
        shape: {name: edges for name, kind in kinds.items() if (edges := kind.edges(shape))}
        for shape in EDGES
    }
