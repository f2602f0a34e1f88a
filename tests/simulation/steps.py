"""The steps of a history: what clients and operators do, one row of a table for each.

1. A step is a name and plain arguments, so a history is text that a DBA can read and a test replay.
2. `do` returns False, and changes nothing, where the step does not apply: a shortened history stays
   a history.
3. `choose` proposes arguments for the world as it is. It decides nothing else.
4. A step that makes a server pass over transactions records which, in `World.absence`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation import replication as act
from tests.simulation.membership import REFUSED_ON_MEMBERS, is_member
from tests.simulation.state import SECOND, Change, Channel, Gtid, Place, Server, World

Arg = str | int
Args = tuple[Arg, ...]
Line = tuple[Arg, ...]  # the step's name, then its arguments
Choose = Callable[[World, random.Random], Args | None]

KEYS_PER_SERVER = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of step."""

    name: str
    choose: Choose
    do: Callable[..., bool]
    is_fault: bool = True


# What an operator or a power loss can do to a server while a session blocks the rest.
DURING_A_LOCK = frozenset({"unlock", "release-gtid", "crash"})

STEPS: dict[str, Step] = {}


def step(
    name: str, choose: Choose, *, is_fault: bool = True
) -> Callable[[Callable[..., bool]], Callable[..., bool]]:
    """Add a step to the table."""

    def added(do: Callable[..., bool]) -> Callable[..., bool]:
        assert name not in STEPS, name
        STEPS[name] = Step(name, choose, do, is_fault)
        return do

    return added


def perform(world: World, line: Line) -> bool:
    """Do one step of a history. Return whether it applied."""
    name, *args = line
    world.clock += 1
    if args and name not in DURING_A_LOCK and args[0] in world.servers:
        server = world[str(args[0])]
        if server.lock or server.session_owns is not None:
            return False  # the statement would wait for the session
        if name in REFUSED_ON_MEMBERS and is_member(world, server.name):
            return False
    done = STEPS[str(name)].do(world, *args)
    if done:
        world.steps_done.append(str(name))
    return done


# -- choosing -------------------------------------------------------------------------------------


def some_server(world: World, dice: random.Random) -> Args | None:
    return (dice.choice(sorted(world.servers)),)


def some_primary(world: World, dice: random.Random) -> Args | None:
    return (dice.choice(sorted(world.primaries)),) if world.primaries else None


def some_replica(world: World, dice: random.Random) -> Args | None:
    names = sorted(name for name, each in world.servers.items() if each.channels)
    return (dice.choice(names),) if names else None


def some_channel(world: World, dice: random.Random) -> Args | None:
    paths = world.paths()
    if not paths:
        return None
    server, channel = dice.choice(paths)
    return (server.name, channel.name)


def some_change(server: Server, dice: random.Random, prefix: str = "") -> Args:
    key = f"{prefix or server.name}{dice.randint(1, KEYS_PER_SERVER)}"
    if key not in server.rows:
        return ("insert", key)
    return (dice.choice(("update", "update", "delete")), key)


def _change_on(names: Choose) -> Choose:
    def choose(world: World, dice: random.Random) -> Args | None:
        chosen = names(world, dice)
        if chosen is None:
            return None
        return (*chosen, *some_change(world[str(chosen[0])], dice))

    return choose


def change_of(world: World, kind: str, key: str) -> tuple[Change, ...]:
    """Return the change that a step names; its value is new each time."""
    value = None if kind == "delete" else world.works + 1
    return (Change(kind, key, value),)  # type: ignore[arg-type]


# -- clients --------------------------------------------------------------------------------------


@step("write", _change_on(some_primary), is_fault=False)
def write(world: World, name: str, kind: str, key: str) -> bool:
    """Commit one row on a primary."""
    return (
        name in world.servers
        and act.write(world, world[name], change_of(world, kind, key)) is not None
    )


def _choose_tagged(world: World, dice: random.Random) -> Args | None:
    chosen = _change_on(some_primary)(world, dice)
    return chosen if chosen and world[str(chosen[0])].version >= act.MODERN else None


@step("write-tagged", _choose_tagged, is_fault=False)
def write_tagged(world: World, name: str, kind: str, key: str) -> bool:
    """Commit one row under an automatic GTID with a tag."""
    return act.write(world, world[name], change_of(world, kind, key), tag="dba") is not None


def _choose_load(world: World, dice: random.Random) -> Args | None:
    return (dice.choice((5, 15, 40)), dice.randrange(10**6))


@step("load", _choose_load, is_fault=False)
def load(world: World, moments: int, seed: int) -> bool:
    """Clients write on the primaries and replication goes on, in any order, for some moments."""
    dice = random.Random(seed)
    draw, bits = dice.random, dice.getrandbits
    moves, committing = act.moves_of(world, dice), _committing(world)
    primaries = [world[name] for name in sorted(world.primaries)]
    for _ in range(moments):
        world.clock += 1
        if primaries and draw() < 0.15:
            server = dice.choice(primaries)
            kind, key = some_change(server, dice)
            # Only who has a commit to finish decides which moves there are.
            if (
                act.begin(world, server, change_of(world, str(kind), str(key)))
                and (now := _committing(world)) != committing
            ):
                moves, committing = act.moves_of(world, dice), now
        elif moves:
            # As dice.choice(moves) draws: that takes longer than most moves.
            count = len(moves)
            at = bits(count.bit_length())
            while at >= count:
                at = bits(count.bit_length())
            moves[at]()
    return True


def _committing(world: World) -> list[bool]:
    return [bool(server.pending) for server in world.servers.values()]


@step("flow", _choose_load, is_fault=False)
def flow(world: World, moments: int, seed: int) -> bool:
    """Let replication go on for some moments, without writes."""
    act.flow(world, moments, random.Random(seed))
    return True


@step("rest", lambda _world, _dice: (), is_fault=False)
def rest(world: World) -> bool:
    """Let replication come to rest."""
    act.rest(world)
    return True


def _choose_wait(world: World, dice: random.Random) -> Args | None:
    return (dice.choice((1, 5, 100)),)


@step("wait", _choose_wait, is_fault=False)
def wait(world: World, seconds: int) -> bool:
    """Let time pass."""
    act.rest(world, with_delay=False)
    world.clock += seconds * SECOND
    act.rest(world, with_delay=False)
    return True


def _choose_errant(world: World, dice: random.Random) -> Args | None:
    names = sorted(world.servers.keys() - world.primaries)
    if not names:
        return None
    name = dice.choice(names)
    prefix = "" if dice.random() < 0.6 else dice.choice(sorted(world.servers))
    return (name, *some_change(world[name], dice, prefix))


@step("write-errant", _choose_errant)
def write_errant(world: World, name: str, kind: str, key: str) -> bool:
    """Commit one row on a server that clients should not write to."""
    return act.write(world, world[name], change_of(world, kind, key)) is not None


@step("write-empty", some_server)
def write_empty(world: World, name: str) -> bool:
    """Commit a transaction that changes nothing (DDL that changes no row, a heartbeat)."""
    return act.write(world, world[name], (), is_upkeep=True) is not None


def _choose_foreign_row(world: World, dice: random.Random) -> Args | None:
    name = dice.choice(sorted(world.servers))
    other = dice.choice(sorted(world.servers))
    return (name, *some_change(world[name], dice, other))


@step("write-foreign-row", _choose_foreign_row)
def write_foreign_row(world: World, name: str, kind: str, key: str) -> bool:
    """Commit a change of a row that another server's clients write."""
    if name not in world.primaries:
        return False
    # Two servers that change one row at the same time end with different values, and no set and no
    # error shows it.
    world.drifted.add(key)
    return act.write(world, world[name], change_of(world, kind, key)) is not None


@step("create-table", some_server)
def create_table(world: World, name: str) -> bool:
    """CREATE TABLE of a name that may exist elsewhere."""
    return act.write(world, world[name], (Change("create", "table", 0),)) is not None


@step("drift", _choose_foreign_row)
def drift(world: World, name: str, kind: str, key: str) -> bool:
    """Change one row with sql_log_bin=0."""
    server, changes = world[name], change_of(world, kind, key)
    if act.conflict(server, changes) or key in server.locked_keys:
        return False
    world.works += 1
    if changes[0].new is None:
        server.rows.pop(key)
    else:
        server.rows[key] = world.works
    world.drifted.add(key)
    return True


def _choose_hand_made(world: World, dice: random.Random) -> Args | None:
    name = dice.choice(sorted(world.servers))
    uuid = dice.choice([*sorted(world.servers), "x"])
    highest = max((each[2] for each in world[name].executed if each[0] == uuid), default=0)
    number = highest + dice.choice((1, 1, 2, 3, 5))
    if dice.random() < 0.3:
        return (name, uuid, number, "empty", "-")
    return (name, uuid, number, *some_change(world[name], dice))


@step("write-by-hand", _choose_hand_made)
def write_by_hand(  # noqa: PLR0917 - the words of a step
    world: World, name: str, uuid: str, number: int, kind: str, key: str
) -> bool:
    """SET gtid_next = 'uuid:number' and commit."""
    server = world[name]
    gtid: Gtid = (uuid, "", number)
    changes = () if kind == "empty" else change_of(world, kind, key)
    if act.write(world, server, changes, gtid) is None:
        return False
    world.by_hand[gtid] = name
    return True


# -- binary logs ----------------------------------------------------------------------------------


@step("rotate", some_server, is_fault=False)
def rotate(world: World, name: str) -> bool:
    """FLUSH BINARY LOGS."""
    server = world[name]
    if server.pending or not server.log_bin or not server.files[-1].entries:
        return False
    act.rotate(world, world[name])
    return True


@step("purge", some_server)
def purge(world: World, name: str) -> bool:
    """PURGE BINARY LOGS TO the current one, as far as no connected receiver reads."""
    server = world[name]
    if not server.log_bin:
        return False
    keep = server.files[-1].number
    for _, channel in world.replicas_of(name):
        if channel.receiver == "Yes" and channel.read_to is not None:
            keep = min(keep, channel.read_to.file)
    gone = [log for log in server.files if log.number < keep]
    # A real server begins no new log before what is in the last one is committed.
    if not gone or any(each.gtid not in server.executed for log in gone for each in log.entries):
        return False
    server.files = server.files[len(gone) :]
    server.purged |= server.files[0].previous
    return True


# -- channels -------------------------------------------------------------------------------------


def stop_threads(world: World, server: Server, channel: Channel, *, which: str = "both") -> bool:
    """STOP REPLICA. A lock that blocks a worker would block the statement: it does not apply."""
    if which in ("both", "applier") and channel.applier == "Yes":
        if server.lock and channel.working:
            return False
        act.finish_workers(world, server, channel)
        channel.applier = "No"
    if which in ("both", "receiver"):
        channel.receiver = "No"
    return True


def start_threads(world: World, server: Server, channel: Channel, *, which: str = "both") -> None:
    """START REPLICA: errors are cleared, the receiver connects again."""
    channel.is_reset = False
    if which in ("both", "applier") and channel.applier == "No":
        channel.applier, channel.applier_error, channel.failed = "Yes", (0, ""), None
        channel.done_by.clear()
        channel.skip_counter = 0  # a new applier has none (seen on 9.7.4)
    if which in ("both", "receiver") and channel.receiver == "No":
        channel.receiver, channel.receiver_error = "Connecting", (0, "")
        act.connect(world, server, channel)


def _choose_threads(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    return (*chosen, dice.choice(("both", "receiver", "applier"))) if chosen else None


def found(world: World, name: str, channel: str) -> tuple[Server, Channel | None]:
    return world[name], world[name].channel(channel)


@step("stop-replica", _choose_threads)
def stop_replica(world: World, name: str, channel: str, which: str) -> bool:
    """STOP REPLICA, or one of its threads."""
    server, path = found(world, name, channel)
    return path is not None and stop_threads(world, server, path, which=which)


@step("start-replica", _choose_threads, is_fault=False)
def start_replica(world: World, name: str, channel: str, which: str) -> bool:
    """START REPLICA, or one of its threads."""
    server, path = found(world, name, channel)
    if path is None:
        return False
    if path.is_reset and which == "applier":  # 1871 (seen on 5.6.24 and 9.7.4)
        return False
    start_threads(world, server, path, which=which)
    return True


@step("auto-position-on", some_channel)
def auto_position_on(world: World, name: str, channel: str) -> bool:
    """STOP REPLICA; CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1; START REPLICA.

    CHANGE deletes the relay logs. Until the receiver has connected, its place is the applier's.
    """
    server, path = found(world, name, channel)
    if path is None or not stop_threads(world, server, path):
        return False
    if not path.auto_position:
        path.auto_position, path.is_reset = True, False
        path.read_to = act.applied_place(path)
        path.clear_relay()
    start_threads(world, server, path)
    return True


def _choose_place(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    if chosen is None:
        return None
    path = world[str(chosen[0])].channel(str(chosen[1]))
    assert path is not None, "it was just chosen"
    source = world[path.source]
    log = dice.choice(source.listed[-2:])
    return (*chosen, log.number, dice.randint(0, len(log.entries)))


@step("change-by-position", _choose_place)
def change_by_position(world: World, name: str, channel: str, file: int, index: int) -> bool:
    """CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE, SOURCE_LOG_POS, SOURCE_AUTO_POSITION = 0."""
    server, path = found(world, name, channel)
    if path is None:
        return False
    source = world[path.source]
    log = source.file(file)
    if (
        not source.log_bin
        or log is None
        or index > len(log.entries)
        or not stop_threads(world, server, path)
    ):
        return False
    path.auto_position = path.is_reset = False
    path.clear_relay()
    path.read_to = Place(file, index)
    start_threads(world, server, path)
    return True


def _choose_relay_place(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    if chosen is None:
        return None
    path = world[str(chosen[0])].channel(str(chosen[1]))
    assert path is not None, "it was just chosen"
    return (*chosen, dice.randint(0, len(path.relay)))


@step("relay-log-position", _choose_relay_place)
def relay_log_position(world: World, name: str, channel: str, place: int) -> bool:
    """CHANGE REPLICATION SOURCE TO RELAY_LOG_FILE, RELAY_LOG_POS, SOURCE_AUTO_POSITION = 0."""
    server, path = found(world, name, channel)
    if (
        path is None
        or path.is_reset
        or place > len(path.relay)
        or not stop_threads(world, server, path)
    ):
        return False
    path.auto_position = False
    for at, each in enumerate(path.relay[:place]):
        gtid = each.transaction.gtid
        if at >= path.relay_at and gtid not in server.executed:
            world.absence.pop((name, gtid), None)  # it came again, and would have been applied
        act.note(world, server, gtid, "relay-log-position")
    path.relay_at = place
    start_threads(world, server, path)
    return True


def _choose_repoint(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    if chosen is None:
        return None
    others = sorted(world.servers.keys() - {chosen[0]})
    return (*chosen, dice.choice(others)) if others else None


def _follows_already(server: Server, path: Channel, source: str) -> bool:
    return any(each is not path and each.source == source for each in server.channels)


@step("repoint", _choose_repoint)
def repoint(world: World, name: str, channel: str, source: str) -> bool:
    """STOP REPLICA; CHANGE REPLICATION SOURCE TO another server, by sets; START REPLICA."""
    server, path = found(world, name, channel)
    if path is None or source == name or _follows_already(server, path, source):
        return False
    if not stop_threads(world, server, path):
        return False
    path.source, path.source_uuid, path.auto_position = source, None, True
    path.is_reset = False
    path.read_to = None
    path.clear_relay()
    start_threads(world, server, path)
    return True


@step("configure-only", _choose_repoint)
def configure_only(world: World, name: str, channel: str, source: str) -> bool:
    """CHANGE REPLICATION SOURCE TO another server without START REPLICA."""
    server, path = found(world, name, channel)
    if path is None or source == name or _follows_already(server, path, source):
        return False
    if not stop_threads(world, server, path):
        return False
    path.source, path.source_uuid, path.auto_position = source, None, True
    path.is_reset = False
    path.read_to = None
    # Seen on 5.6.24 and 9.7.4: the applier's error is forgotten, the receiver's is not.
    path.applier_error, path.failed = (0, ""), None
    path.clear_relay()
    return True


def _choose_reset_replica(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    return (*chosen, dice.choice(("keep", "all"))) if chosen else None


@step("reset-replica", _choose_reset_replica)
def reset_replica(world: World, name: str, channel: str, scope: str) -> bool:
    """STOP REPLICA; RESET REPLICA, or RESET REPLICA ALL."""
    server, path = found(world, name, channel)
    if path is None or not stop_threads(world, server, path):
        return False
    if scope == "all":
        server.channels.remove(path)
        return True
    path.clear_relay()
    path.receiver_error = path.applier_error = (0, "")
    path.failed = None
    # Coordinates are forgotten: by file position the receiver begins at the source's first log.
    path.read_to, path.is_reset = None, True
    return True


def _choose_delay(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    return (*chosen, dice.choice((0, 30, 3600))) if chosen else None


@step("source-delay", _choose_delay)
def source_delay(world: World, name: str, channel: str, seconds: int) -> bool:
    """STOP REPLICA SQL_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_DELAY; START.

    5.6 wants both threads stopped. Where no thread runs, CHANGE deletes the relay logs, and the
    receiver goes on where the applier was (seen on 9.7.4).
    """
    server, path = found(world, name, channel)
    if path is None or path.is_reset:
        return False
    receives = path.receiver != "No"
    which = "applier" if server.version >= act.MODERN else "both"
    if not stop_threads(world, server, path, which=which):
        return False
    path.delay = seconds * SECOND
    if path.receiver == "No":
        path.read_to = act.applied_place(path)
        path.clear_relay()
    start_threads(world, server, path, which="both" if receives else "applier")
    return True


def _choose_filter(world: World, dice: random.Random) -> Args | None:
    chosen = some_channel(world, dice)
    if chosen is None:
        return None
    return (*chosen, f"{dice.choice(sorted(world.servers))}1")


@step("filter", _choose_filter)
def set_filter(world: World, name: str, channel: str, key: str) -> bool:
    """CHANGE REPLICATION FILTER REPLICATE_IGNORE_TABLE (here: one row). 5.6 does not have it."""
    server, path = found(world, name, channel)
    if path is None or path.is_reset or server.version < act.MODERN:
        return False
    if not stop_threads(world, server, path, which="applier"):
        return False
    path.ignored_keys |= {key}
    start_threads(world, server, path, which="applier")
    return True
