"""Draws one case from its seed: the servers, the fault, and what happens around it.

The same seed and number give the same case, so that one that failed can be run again alone. This
module accesses no servers.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

Edge = tuple[str, str]  # source, replica

EDGES: Final[Mapping[str, tuple[Edge, ...]]] = {
    "pair": (("a", "b"), ("b", "a")),
    "ring": (("a", "b"), ("b", "c"), ("c", "a")),
    "star": (("source", "replica1"), ("source", "replica2")),
    "chain": (("first", "middle"), ("middle", "last")),
    "pair56": (("a", "b"), ("b", "a")),
}
# The servers to which clients write.
WRITERS: Final[Mapping[str, tuple[str, ...]]] = {
    "pair": ("a", "b"),
    "ring": ("a", "b", "c"),
    "star": ("source",),
    "chain": ("first",),
    "pair56": ("a", "b"),
}
_BEFORE: Final = (
    *("rotate source", "rotate source", "rotate replica", "rotate replica", "purge source"),
    *("restart replica", "restart source"),
    *("stop and start", "stop and start", "large transaction", "large transaction"),
    *("create and drop", "create and drop"),
)
_SHAPES: Final = (
    "pair",
    "pair",
    "pair",
    "star",
    "star",
    "star",
    "chain",
    "chain",
    "ring",
    "pair56",
)
# Variable and value; the first four exist in 5.6.
_LOG_SETTINGS: Final = (
    ("binlog_row_image", "MINIMAL"),
    ("binlog_row_image", "NOBLOB"),
    ("binlog_rows_query_log_events", "ON"),
    ("binlog_order_commits", "OFF"),
    ("binlog_transaction_compression", "ON"),
    ("binlog_row_metadata", "FULL"),
    ("binlog_checksum", "NONE"),
)
CASES_PER_TOPOLOGY: Final = 20


@dataclass(frozen=True, slots=True)
class Case:
    """One fault, and its surroundings."""

    seed: int
    number: int
    shape: str
    edge: Edge
    kind: str
    has_load: bool
    workers: int
    keeps_commit_order: bool
    has_tags: bool  # the injected transactions have a tag (8.3 and later)
    before: tuple[str, ...]  # what happens before the fault, in this order
    count: int  # how many transactions the fault is about
    has_lag: bool  # another replica of the source is delayed, on purpose
    is_undone: bool  # undo the fault where that is one step, and audit again
    log_settings: tuple[tuple[str, str, str], ...]  # server, variable, value

    @property
    def dice(self) -> random.Random:
        """Return the random numbers for what the fault itself chooses."""
        return random.Random(f"{self.seed}:{self.number}:fault")

    def __str__(self) -> str:
        around = [
            "load" if self.has_load else "no load",
            f"{self.workers} workers {'in' if self.keeps_commit_order else 'out of'} order",
            *(["tags"] if self.has_tags else []),
            *(["a delayed sibling"] if self.has_lag else []),
            *(f"{name}={value} on {server}" for server, name, value in self.log_settings),
            *self.before,
        ]
        return (
            f"SEED={self.seed} CASE={self.number}: {self.kind} x{self.count} on {self.shape}"
            f" {self.edge[0]} -> {self.edge[1]} ({', '.join(around)})"
        )


def shape_of(seed: int, number: int) -> str:
    """Return the shape of a case: neighbours share it, so that the servers keep running."""
    dice = random.Random(f"{seed}:{number // CASES_PER_TOPOLOGY}:shape")
    return dice.choice(_SHAPES)


def drawn(
    seed: int,
    number: int,
    kinds_by_shape: Mapping[str, Mapping[str, tuple[Edge, ...]]],
    only_kind: str | None = None,
) -> Case:
    """Draw a case. `kinds_by_shape` has the kinds of each shape, with their edges.

    `only_kind` is the kind that it must have: then the shape is one that can have it.
    """
    dice = random.Random(f"{seed}:{number}")
    shape = shape_of(seed, number)
    if only_kind is not None and only_kind not in kinds_by_shape[shape]:
        shape = next(name for name, kinds in kinds_by_shape.items() if only_kind in kinds)
    kinds = kinds_by_shape[shape]
    kind = only_kind or dice.choice(sorted(kinds))
    edge = dice.choice(kinds[kind])
    is_old = shape == "pair56"
    return Case(
        seed=seed,
        number=number,
        shape=shape,
        edge=edge,
        kind=kind,
        has_load=dice.random() < 0.7,
        workers=dice.choice((1, 4)),
        keeps_commit_order=is_old or dice.random() < 0.6,
        has_tags=not is_old and dice.random() < 0.25,
        before=tuple(dice.choice(_BEFORE) for _ in range(dice.choice((0, 0, 1, 1, 2, 3)))),
        count=dice.choice((1, 1, 2, 3, 5, 8, 20)),
        has_lag=shape == "star" and dice.random() < 0.3,
        is_undone=dice.random() < 0.6,
        log_settings=_log_settings(dice, shape),
    )


def _log_settings(dice: random.Random, shape: str) -> tuple[tuple[str, str, str], ...]:
    """Draw how some servers write their logs: the same transaction may then have other bytes."""
    servers = sorted({name for edge in EDGES[shape] for name in edge})
    choices = _LOG_SETTINGS[:4] if shape == "pair56" else _LOG_SETTINGS
    return tuple(
        (dice.choice(servers), *dice.choice(choices)) for _ in range(dice.choice((0, 0, 1, 2)))
    )
