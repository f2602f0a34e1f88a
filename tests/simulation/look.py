"""Look at one history: python -m tests.simulation.look SEED|FILE [whole] [rest].

Prints what the oracles contradict; then, of the shortest history of each kind, the true world, both
readings' findings with their texts, and the plan. `whole` leaves the history as it is; `rest` prints
the world at rest too.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from tests.simulation import replication as act
from tests.simulation.checking import check, check_seed, shortest
from tests.simulation.contents import contents_of
from tests.simulation.history import History, generate, parse
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import Truth
from tests.simulation.plan_oracles import plan_of
from tests.simulation.reading import gtids, read
from tests.simulation.run import say
from tests.simulation.state import Channel, Gtid, World, gtid_text
from topology.audit_cluster import audit_cluster
from topology.policy import Policy


def sets(members: Iterable[Gtid]) -> str:
    """Return a set of GTIDs with the short names of the simulator: `a:1-4, b:1`."""
    found: dict[tuple[str, str], list[int]] = {}
    for uuid, tag, number in sorted(members):
        found.setdefault((uuid, tag), []).append(number)
    parts = []
    for (uuid, tag), numbers in found.items():
        runs: list[list[int]] = []
        for number in numbers:
            if runs and number == runs[-1][1] + 1:
                runs[-1][1] = number
            else:
                runs.append([number, number])
        ranges = ":".join(f"{a}-{b}" if a < b else f"{a}" for a, b in runs)
        parts.append(f"{uuid}:{tag}:{ranges}" if tag else f"{uuid}:{ranges}")
    return ", ".join(parts) or "-"


def lines_of_world(world: World) -> Iterator[str]:
    """Yield the servers of a world, each with its logs, rows and channels."""
    for name, server in world.servers.items():
        state = "" if server.is_up else " DOWN"
        state += f" lock={server.lock}" if server.lock else ""
        state += f" uuid={server.uuid}" if server.uuid != name else ""
        state += "".join(
            f" {each}"
            for each in ("permissive", "idempotent", "skips_errors")
            if getattr(server, each)
        )
        state += "" if server.log_replica_updates else " log_replica_updates=OFF"
        state += "" if server.log_bin else " log_bin=OFF"
        yield f"  {name} executed {sets(server.executed)} purged {sets(server.purged)}{state}"
        for log in server.files:
            texts = " ".join(gtid_text(each.gtid) for each in log.entries)
            yield f"      log {log.number} after {sets(log.previous)}: {texts}"
        yield f"      rows {server.rows}; started at {server.started_at}"
        for channel in server.channels:
            yield from lines_of_channel(channel)
    missing = [
        f"{name} lacks {gtid_text(gtid)}: {step}" for (name, gtid), step in world.absence.items()
    ]
    yield from (f"  {each}" for each in missing)


def lines_of_channel(channel: Channel) -> Iterator[str]:
    """Yield a channel, and what waits in its relay log."""
    mode = "auto" if channel.auto_position else "position"
    error = channel.receiver_error[1] or channel.applier_error[1]
    yield (
        f"      {channel.name!r} from {channel.source} ({mode}): receiver {channel.receiver},"
        f" applier {channel.applier}, retrieved {sets(channel.retrieved)}"
        + (f", delay {channel.delay}" if channel.delay else "")
        + (f", skips {channel.skip_counter}" if channel.skip_counter else "")
        + (f", {error[:90]}" if error else "")
    )
    waiting = [gtid_text(each.transaction.gtid) for each in channel.relay[channel.relay_at :]]
    if waiting or channel.working:
        work = [gtid_text(each.transaction.gtid) for each in channel.working]
        yield f"        waits: {' '.join(waiting)}; with workers: {' '.join(work)}"


def look(history: History, *, at_rest: bool) -> None:
    """Print a history, its world, what is found and what is planned."""
    say(history.text())
    world = history.play()
    policy = Policy()
    snapshot = with_answers(world, history.reading, read(world, history.reading), policy)
    audit = audit_cluster(
        snapshot.with_contents(contents_of(world, history.reading, snapshot)), policy
    )
    truth = Truth(world, history.reading, snapshot, policy)
    say("-- the world after the second reading")
    for each in lines_of_world(world):
        say(each)
    if at_rest:
        say("-- at rest")
        act.rest(rested := world.copy())
        for each in lines_of_world(rested):
            say(each)
    say(f"-- {audit.verdict.value}")
    for one in audit.findings:
        shown = sets_of(one.gtid_set, world)
        say(
            f"  {one.code} {one.severity.name} {one.grade.value} {one.source}->{one.replica} {shown}"
        )
        say(f"      {one.explanation}")
    plan = plan_of(truth, world, snapshot, audit)
    say("-- the plan")
    for step in plan.steps:
        say(f"  {step.server}: {step.effect}")
    for note in (*plan.not_planned, *plan.not_chosen, *plan.warnings, *plan.afterwards):
        say(f"  {note}")


def sets_of(gtid_set: object, world: World) -> str:
    """Return a set of the product with the short names of the simulator."""
    known = set[Gtid]().union(*(each.executed | each.purged for each in world.servers.values()))
    known |= {each.transaction.gtid for each in world.acknowledged}
    here = {each for each in known if gtids([each]) <= gtid_set}  # type: ignore[operator]
    return sets(here)


def main(arguments: list[str]) -> int:
    """Look at one history. Return 1 if something contradicts the truth."""
    name, options = arguments[0], set(arguments[1:])
    if name.isdigit():
        history, _ = generate(int(name))
        _, violations = check_seed(int(name))
    else:
        history = parse(Path(name).read_text())
        violations = check(history)
    for each in violations:
        say(f"{each.oracle}: {each.code}: {each.text}")
    shown = {each.kind for each in violations} if "whole" not in options else set()
    for kind in sorted(shown):
        short = shortest(history, kind)
        say(f"\n== {kind[0]}, {kind[1]}")
        look(short, at_rest="rest" in options)
        for each in check(short):
            say(f"#  {each.oracle}: {each.text}")
    if not shown:
        look(history, at_rest="rest" in options)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
