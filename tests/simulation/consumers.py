"""Consumers of binary logs: what they have read, and how an audit reads their sets.

1. A consumer is no server: what the world knows of it is the set that it has read, and the one that
   it has stored. A program stores its set some time after it has read.
2. `sent` is what a server sends to a set: the truth with which consumer_oracles.py compares the
   audit. It shares no code with the product.
3. An audit reads the stored set before its first reading of the servers and after its last one.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

from tests.simulation.state import Consumer, Gtid, Server, World
from tests.simulation.steps import Args, some_server, step

PROGRAM = "cdc"
BACKUP = "monday"
STARTS, READS = "consumer-starts", "consumer-reads"
CHANGES = ("consumer-moves", "consumer-hole", "consumer-restored")
STEPS = (STARTS, READS, *CHANGES)

Answer = Literal["no log", "gtid_mode", "more", "purged", "lost", "sent"]


@dataclass(frozen=True, slots=True)
class Sent:
    """What a server does with a set that connects, and the GTIDs that decide it."""

    answer: Answer
    gtids: frozenset[Gtid] = frozenset()


def sent(
    server: Server,
    offered: set[Gtid],
    *,
    at_first: set[Gtid] | None = None,
    has: set[Gtid] | None = None,
) -> Sent:
    """Return what a server answers to a set.

    `at_first` is the part of the set that is compared with what the server `has`: what was read of
    both, if they went on since.

    sql/rpl_binlog_sender.cc: the binary log is open, gtid_mode is ON, the set has none of the
    server's own GTIDs that it has not, and it has all that is purged. "lost": the connection is
    accepted, and transactions that no log of the server holds never come, without an error.
    """
    if not server.log_bin:
        return Sent("no log")
    if server.permissive:
        return Sent("gtid_mode")
    own = {each for each in (offered if at_first is None else at_first) if each[0] == server.uuid}
    if more := own - (server.executed | server.owned if has is None else has):
        return Sent("more", frozenset(more))
    if purged := server.purged - offered:
        return Sent("purged", frozenset(purged))
    if lost := server.executed - offered - server.logged():
        return Sent("lost", frozenset(lost))
    return Sent("sent")


def _choose_start(world: World, dice: random.Random) -> Args | None:
    name = dice.choice((PROGRAM, PROGRAM, BACKUP))
    if name in world.consumers:
        return None
    where = "any" if name == BACKUP else dice.choice(("own", "own", "any"))
    return (name, *(some_server(world, dice) or ()), where)


@step(STARTS, _choose_start)
def consumer_starts(world: World, name: str, server: str, where: str) -> bool:
    """Take a snapshot of all tables: the set is gtid_executed of the server at that moment."""
    if name in world.consumers:
        return False
    has = set(world[server].executed)
    bound = server if where == "own" else ""
    world.consumers[name] = Consumer(name, bound, name == BACKUP, has, set(has), set(has))
    return True


def _choose_read(world: World, dice: random.Random) -> Args | None:
    found = world.consumers.get(PROGRAM)
    if found is None:
        return None
    server = found.server or dice.choice(sorted(world.servers))
    return (PROGRAM, server, dice.choice(("stores", "stores", "keeps")))


@step(READS, _choose_read)
def consumer_reads(world: World, name: str, server: str, then: str) -> bool:
    """Read the logs of a server to their end; `keeps`: the new set is not stored yet."""
    one = world.consumers.get(name)
    if one is None or one.is_fixed or one.server not in ("", server):
        return False
    source = world[server]
    if sent(source, one.read).answer not in ("sent", "lost"):
        return False
    one.read |= source.logged()
    if then == "stores":
        one.earlier, one.stored = one.stored, set(one.read)
    return True


def _choose_move(world: World, dice: random.Random) -> Args | None:
    found = world.consumers.get(PROGRAM)
    return (PROGRAM, dice.choice(sorted(world.servers))) if found is not None else None


@step("consumer-moves", _choose_move)
def consumer_moves(world: World, name: str, server: str) -> bool:
    """Configure another server from which it reads; it has not connected yet."""
    one = world.consumers.get(name)
    if one is None or one.is_fixed or one.server in ("", server):
        return False
    one.server = server
    return True


def _choose_hole(world: World, dice: random.Random) -> Args | None:
    found = [
        (name, uuid, number)
        for name, one in sorted(world.consumers.items())
        for uuid, tag, number in sorted(one.stored)
        if not tag
    ]
    return dice.choice(found) if found else None


@step("consumer-hole", _choose_hole)
def consumer_hole(world: World, name: str, uuid: str, number: int) -> bool:
    """Leave one transaction out of the set, as a filter of a program by GTID does."""
    one, gtid = world.consumers.get(name), (uuid, "", number)
    if one is None or gtid not in one.stored:
        return False
    one.stored.discard(gtid)
    one.read.discard(gtid)
    return True


def _choose_restored(world: World, _dice: random.Random) -> Args | None:
    return (PROGRAM,) if PROGRAM in world.consumers else None


@step("consumer-restored", _choose_restored)
def consumer_restored(world: World, name: str) -> bool:
    """Stop it, and restore the set that it had stored before."""
    one = world.consumers.get(name)
    if one is None or one.is_fixed or one.earlier == one.read:
        return False
    one.read, one.stored = set(one.earlier), set(one.earlier)
    return True


def read_on(world: World, dice: random.Random) -> None:
    """Let programs read on, or store what they have read, while the servers are read."""
    for name, one in world.consumers.items():
        if one.is_fixed or dice.random() < 0.5:
            continue
        server = one.server or dice.choice(sorted(world.servers))
        if not consumer_reads(world, name, server, dice.choice(("stores", "keeps"))):
            one.stored = set(one.read)
