"""Clusters as stored rows, and what the columns and the rules say of them."""

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from spark_audit.evaluate_batch import evaluate_rows
from spark_audit.evaluate_cluster import evaluate_records
from tests.topology.world import SHAPES, World
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.documents.records import Record, audit_to_record, snapshot_to_record
from topology.policy import Policy
from topology.readings.snapshot import BinaryLog, ClusterSnapshot

POLICY = Policy()


def records_of(snapshot: ClusterSnapshot, name: str) -> list[Record]:
    return [
        snapshot_to_record(
            replace(
                server,
                cluster=name,
                settings=(("datadir", f"/data/{server.name}"), ("hostname", server.name)),
                binary_logs=(BinaryLog("binlog.000001", 157, encrypted=False),),
            )
        )
        for server in (*snapshot.first, *snapshot.last)
    ]


def world_of(number: int) -> World:
    dice = random.Random(number)
    world = World(SHAPES[dice.choice(sorted(SHAPES))], dice)
    world.run(dice.choice([0, 20, 100]))
    return world


def disturbed(world: World) -> bool:
    """Do what makes findings, or nothing; tell whether the world may go on while it is read."""
    dice = world.dice
    kinds = ["nothing", "rest", "rest", "rest", "bypass", "lose", "stop", "purge", "pass"]
    kind = dice.choice(kinds)
    channel = dice.choice(world.channels)
    if kind == "bypass":
        channel.auto_position = False
        world.bypass(channel, dice.randrange(1, 4))
    if kind == "pass":
        channel.receive()
        world.pass_by(channel, dice.randrange(1, 4))
    if kind == "lose":
        world.lose_tail(dice.choice(list(world.servers.values())), dice.randrange(1, 4))
    if kind == "purge":
        world.purge_too_much(channel.source, channel)
    if kind == "stop":
        channel.disconnect()
        world.run(20)
    if kind == "rest":
        world.settle()
    return kind in ("nothing", "rest")


def fleet(count: int) -> dict[str, list[Record]]:
    clusters = {}
    for number in range(count):
        world = world_of(number)
        goes_on = disturbed(world)
        snapshot = world.snapshot(restless=goes_on and number % 3 == 0)
        clusters[f"cluster-{number:04}"] = records_of(snapshot, f"cluster-{number:04}")
    return clusters


def evaluated(clusters: dict[str, list[Record]]) -> list[Record]:
    return [
        audit_to_record(evaluate_records(name, clusters[name], policy=POLICY))
        for name in sorted(clusters)
    ]


def in_columns(rows: list[Record]) -> list[Record]:
    table = table_of_records(rows, SNAPSHOT_SCHEMA)
    return records_of_table(evaluate_rows(table, policy=POLICY))


def numbers_of(values: list[int]) -> Any:
    import numpy as np

    return np.array(values, np.int64)


def audits_of(piece: Any) -> list[Record]:
    return records_of_table(evaluate_rows(piece, policy=POLICY))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every field within a record, however deep."""
    yield path
    if isinstance(value, dict):
        for name, each in value.items():
            yield from places(each, (*path, name))
    if isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def with_at(value: Any, path: tuple[Any, ...], put: Any) -> Any:
    """Return a copy of a record that has `put` at `path`."""
    if not path:
        return put
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_at(copy[path[0]], path[1:], put)
    return copy


def fits(rows: list[Record]) -> bool:
    """Return whether the rows can be columns at all: others never reach a file."""
    import pyarrow as pa

    try:
        return records_of_table(table_of_records(rows, SNAPSHOT_SCHEMA)) == rows
    except (pa.ArrowException, AssertionError, ValueError, TypeError, KeyError):
        return False
