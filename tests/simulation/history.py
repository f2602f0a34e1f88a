"""A history: a setup, steps, one reading. Made by chance, kept as text, replayed exactly."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from tests.simulation import consumers, definitions, faults, groups, options
from tests.simulation.reading import UNREADABLE, Reading
from tests.simulation.shapes import GENERATED, SHAPES, VARIANTS, Setup
from tests.simulation.state import World
from tests.simulation.steps import STEPS, Line, perform

assert faults.__name__, "importing it adds its steps to the table"
assert groups.__name__, "importing it adds its steps to the table"
assert options.__name__, "importing it adds its steps to the table"

QUIET = tuple(
    sorted(name for name, each in STEPS.items() if not each.is_fault and name != "group-join")
)
# Not among the steps that dice draw: a seed makes the history that it made before they were added.
LOSE_LOG = "lose-log"
_ADDED = frozenset({LOSE_LOG, *consumers.STEPS, *definitions.STEPS})
_OF_GROUPS = tuple(sorted(name for name in STEPS if name.startswith("group-")))
FAULTS = tuple(
    sorted(
        name
        for name, each in STEPS.items()
        if each.is_fault and name not in _OF_GROUPS and name not in _ADDED
    )
)
LOST_LOG_SHARE = 0.05
CONSUMER_SHARE = 0.08
DEFINITIONS_SHARE = 0.06
_QUIET_WEIGHTS = {"load": 6.0, "flow": 3.0, "rest": 2.0, "write": 3.0, "write-statement": 1.5}


@dataclass(frozen=True, slots=True)
class History:
    """What happened, and how it was looked at."""

    setup: Setup
    lines: tuple[Line, ...]
    reading: Reading

    def play(self) -> World:
        """Return the world after all steps, before the reading."""
        world = self.setup.world()
        for line in self.lines:
            perform(world, line)
        return world

    def text(self) -> str:
        """Return the history as lines that `parse` reads and a person too."""
        setup, reading = self.setup, self.reading
        order = "commit-order" if setup.commit_order else "any-order"
        lines = [f"shape {setup.shape.replace(' ', '_')} {setup.version} {setup.workers} {order}"]
        lines += [" ".join(map(_word, line)) for line in self.lines]
        moving = "moving" if reading.moving else "still"
        unread = ",".join(f"{server}.{fact}" for server, fact in reading.unread) or "-"
        lines.append(
            f"read {','.join(reading.visible)} {reading.seed} {moving} {unread} {reading.contents}"
            + (" definitions" if reading.definitions else "")
        )
        if reading.between:
            lines.append("between " + " ".join(_word(arg) for arg in reading.between))
        return "\n".join(lines)


def _word(arg: str | int) -> str:
    return str(arg) if arg != "" else "default"


def parse(text: str) -> History:
    """Read the text of a history; `#` begins a comment."""
    lines = [line.partition("#")[0].split() for line in text.splitlines()]
    words = [line for line in lines if line]
    _, shape, version, workers, order = words[0]
    setup = Setup(shape.replace("_", " "), version, int(workers), order == "commit-order")
    between: Line = ()
    if words[-1][0] == "between":
        between = _line(words.pop()[1:])
    _, visible, seed, moving, unread, contents, *more = words[-1]
    reading = Reading(
        tuple(visible.split(",")),
        int(seed),
        moving == "moving",
        tuple(
            (each.partition(".")[0], each.partition(".")[2])
            for each in unread.split(",")
            if unread != "-"
        ),
        contents,
        between,
        "definitions" in more,
    )
    return History(setup, tuple(_line(each) for each in words[1:-1]), reading)


def _line(words: list[str]) -> Line:
    args = [int(each) if each.isdigit() else "" if each == "default" else each for each in words]
    return tuple(args)


def generate(seed: int, shapes: tuple[str, ...] = GENERATED) -> tuple[History, World]:
    """Make a history by chance. Return it and the world before its reading."""
    dice = random.Random(seed)
    shape = dice.choice(shapes)
    others = random.Random(f"shape {seed}")
    if shape in VARIANTS and others.random() < 0.3:
        shape = others.choice(VARIANTS[shape])
    is_old = not SHAPES[shape].is_multi_source and not SHAPES[shape].group
    old = dice.random() < 0.15 and is_old
    setup = Setup(
        shape,
        version="5.6.24" if old else "9.7.4",
        workers=dice.choice((1, 4)),
        commit_order=dice.random() < 0.6,
    )
    world = setup.world()
    lines: list[Line] = []
    names = _with_lost_log(_plan(dice, in_group=world.group is not None), seed)
    names, reads_definitions = _with_ddl(_with_consumer(names, seed), seed)
    for name in names:
        chosen = STEPS[name].choose(world, dice)
        if chosen is None:
            continue
        line: Line = (name, *chosen)
        if perform(world, line):
            lines.append(line)
    reading = replace(reading_by_chance(dice, world), definitions=reads_definitions)
    return History(setup, tuple(lines), reading), world


def _plan(dice: random.Random, *, in_group: bool) -> list[str]:
    """Return the names of the steps to try: a quiet life with a few faults in it."""
    faulty = dice.choice((0, 1, 1, 1, 2, 2, 3))
    weights = [_QUIET_WEIGHTS.get(name, 0.5) for name in QUIET]
    names = ["load"]
    for _ in range(faulty):
        names += dice.choices(QUIET, weights, k=dice.randint(0, 3))
        names.append(dice.choice(_OF_GROUPS if in_group and dice.random() < 0.6 else FAULTS))
        if in_group and dice.random() < 0.5:
            names += ["write", "write-errant", "group-join"]
    names += dice.choices(QUIET, weights, k=dice.randint(0, 4))
    if dice.random() < 0.6:
        names.append("rest")
    return names


def _with_lost_log(names: list[str], seed: int) -> list[str]:
    """Return the steps; in one of twenty histories a binary log is lost, and more follows."""
    dice = random.Random(f"logs {seed}")
    if dice.random() >= LOST_LOG_SHARE:
        return names
    at = dice.randint(1, len(names))
    more = [LOSE_LOG, *dice.choices(("load", "flow", "rest", "start-replica", "rotate"), k=2)]
    return [*names[:at], "load", "rotate", *more, *names[at:]]


def _with_consumer(names: list[str], seed: int) -> list[str]:
    """Return the steps; in a few histories one or two consumers read, and more strikes them."""
    dice = random.Random(f"consumers {seed}")
    if dice.random() >= CONSUMER_SHARE:
        return names
    found = list(names)
    at = dice.randint(0, len(found))
    for each in [consumers.STARTS] * dice.choice((1, 1, 2)):
        found.insert(at, each)
    for _ in range(dice.randint(0, 4)):
        more = dice.choice((consumers.READS, consumers.READS, *consumers.CHANGES))
        found.insert(dice.randint(at + 1, len(found)), more)
    strikes = (("load", "rotate", "purge"), ("load", *_STRIKES), ("load", LOSE_LOG), ("load",))
    for _ in range(dice.choice((0, 1, 1, 2))):
        first, *others = dice.choice(strikes)
        then = others if others != [*_STRIKES] else [dice.choice(_STRIKES)]
        place = dice.randint(at + 1, len(found))
        found[place:place] = [first, *then]
    return found


_STRIKES = ("crash", "reset-binary-logs-and-gtids", "clone", "restore", "failover", "write-errant")


def _with_ddl(names: list[str], seed: int) -> tuple[list[str], bool]:
    """Return the steps, and whether definitions are compared; then some DDL is among the steps."""
    dice = random.Random(f"definitions {seed}")
    if dice.random() >= DEFINITIONS_SHARE:
        return names, False
    found = list(names)
    for _ in range(dice.randint(0, 4)):
        found.insert(dice.randint(1, len(found)), dice.choice(definitions.DRAWN))
    return found, True


def reading_by_chance(dice: random.Random, world: World) -> Reading:
    names = sorted(world.servers)
    visible = names
    if dice.random() < 0.25 and len(names) > 1:
        visible = sorted(dice.sample(names, dice.randint(1, len(names) - 1)))
    unread: tuple[tuple[str, str], ...] = ()
    if dice.random() < 0.08:
        unread = ((dice.choice(visible), dice.choice(("connection", "channels", "log_end"))),)
    between: Line = ()
    if dice.random() < 0.04:
        name = dice.choice(FAULTS)
        args = STEPS[name].choose(world, dice)
        between = (name, *args) if args is not None else ()
    seed = dice.randrange(10**6)
    # Dice of their own: what else a seed makes stays as it was before these facts were added.
    others = random.Random(f"unread {seed}")
    if others.random() < 0.06:
        fact = others.choice(tuple(UNREADABLE)) + others.choice(("", "", "", "@1", "@2"))
        unread += ((others.choice(visible), fact),)
    return Reading(
        tuple(visible),
        seed=seed,
        moving=dice.random() < 0.35,
        unread=unread,
        contents=dice.choice(("none", "starts", "everywhere")),
        between=between,
    )


def without(history: History, dropped: set[int]) -> History:
    """Return the history without some of its steps."""
    kept = tuple(line for at, line in enumerate(history.lines) if at not in dropped)
    return replace(history, lines=kept)
