"""Kept histories on real servers: the same findings and the same default plan as simulated.

Both worlds do the steps of a history, and rest after each. Then the product reads the real servers,
the simulated one is read as ever, and what is found and planned is compared. `load` is three writes
of clients here, and a crash loses what was written behind a copy of the data directory.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from compose.native.installation import Installation
from compose.native.shapes import Topology
from repair import Plan
from tests.repair.live import REMARKS, examine
from tests.simulation import faults, options, reality_options
from tests.simulation.contents import contents_of
from tests.simulation.history import History, parse
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import Truth
from tests.simulation.plan_oracles import plan_of
from tests.simulation.reading import read
from tests.simulation.reality import Twins, differences, do, lose_tail, twins
from tests.simulation.steps import Line, some_change
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy

assert faults.__name__, "importing it adds its steps to the table"
assert options.__name__, "importing it adds its steps to the table"
assert reality_options.__name__, "importing it adds its steps to the table"

pytestmark = [pytest.mark.slow, pytest.mark.mysql]

SCENARIOS = Path(__file__).parent / "scenarios"
WRITES_OF_A_LOAD = 3
TAIL = 2
NAMES = (
    "a-client-writes-below-between-a-skip-and-a-start",
    "another_source_was_reset",
    "auto-position-with-a-permissive-source",
    "backlog-of-the-failed-channel-beside",
    "by-hand-under-an-unread-server-id",
    "chosen-conflict-above-a-replica-with-its-own-row",
    "chosen-gtid-by-hand-beside-a-source",
    "chosen-injection-before-a-history-received-again",
    "chosen-injection-on-two-servers-apart",
    "chosen-refetch-of-rows-that-are-there",
    "chosen-reset-below-a-latent-refusal",
    "chosen-start-of-a-gtid-that-is-empty-above",
    "chosen-to-leave-out-and-fetched-after-all",
    "chosen-undo-that-a-server-above-need-not-have",
    "copy-at-the-address-of-the-channel",
    "data-under-a-gtid-that-its-origin-logged-empty",
    "empty-transaction-without-a-binary-log",
    "filled-and-started-with-an-equal-server-id",
    "left-out-by-choice-and-changed-later",
    "own-uuid-made-elsewhere-and-delivered",
    "place-before-a-reset-of-the-source",
    "planned-a-third-time",
    "purged-above-a-server-with-its-id",
    "refetch-above-a-reset-server-read-in-part",
    "refetch-onto-a-server-without-log-above-a-torn-reading",
    "reset-below-a-reset-behind-a-connection",
    "reset_behind_a_reset_source",
    "skipped-below-an-owned-gtid",
    "skipped-by-one-channel-that-was-read-once",
    "start-toward-an-unseen-source",
    "switch-of-a-stopped-channel-beside-own-work",
)


def _installation(history: History, request: pytest.FixtureRequest) -> Installation:
    name = "installation97" if history.setup.version.startswith("9.") else "installation56"
    installation: Installation = request.getfixturevalue(name)
    return installation


def live_through(both: Twins, lines: tuple[Line, ...]) -> None:
    """Do the steps of a history in both worlds; they agree after each."""
    for line in lines:
        name, *args = line
        if name in ("load", "flow"):
            _write(both, random.Random(int(args[1])))
        elif name == "crash" and args[1]:
            where, dice = str(args[0]), random.Random(1)
            changes = [some_change(both.world[where], dice) for _ in range(TAIL)]
            lose_tail(both, where, [("write", where, *each) for each in changes])
        else:
            assert do(both, line), f"{line} does not apply"
        assert differences(both) == [], "\n".join(both.log)


def _write(both: Twins, dice: random.Random) -> None:
    for _ in range(WRITES_OF_A_LOAD):
        name = dice.choice(sorted(both.world.primaries))
        do(both, ("write", name, *some_change(both.world[name], dice)))


def told(audit: ClusterAudit, both: Twins | None = None) -> set[tuple[str, str, str]]:
    """Return the findings without words: with the GTIDs of the simulated world.

    Servers with one server_id (C2) are named in the order of their UUIDs: here by name.
    """
    return {
        (
            each.code,
            " ".join(
                sorted((each.source or "", each.replica or ""))
                if each.code == "C2"
                else (each.source or "", each.replica or "")
            ),
            str(each.gtid_set if both is None else both.simulated(str(each.gtid_set))),
        )
        for each in audit.findings
        if each.code not in REMARKS
    }


def steps_of(plan: Plan) -> list[tuple[str, str]]:
    return [(each.server, type(each.effect).__name__) for each in plan.steps]


@pytest.mark.parametrize("name", NAMES)
def test_real_servers_are_told_the_same(name: str, request: pytest.FixtureRequest) -> None:
    history = parse((SCENARIOS / f"{name}.txt").read_text())
    policy = Policy()
    with ExitStack() as stack:
        both = twins(_installation(history, request), history.setup, stack)
        assert differences(both) == []
        live_through(both, history.lines)
        reading = replace(
            history.reading,
            moving=False,
            between=(),
            unread=(),
            contents="none",
            definitions=False,
        )
        snapshot = with_answers(both.world, reading, read(both.world, reading), policy)
        audit = audit_cluster(
            snapshot.with_contents(contents_of(both.world, reading, snapshot)), policy
        )
        truth = Truth(both.world, reading, snapshot, policy)
        seen = {name: both.topology[name] for name in reading.visible}
        real = examine(Topology(seen))
        assert told(real.audit, both) == told(audit)
        assert steps_of(real.plan()) == steps_of(plan_of(truth, both.world, snapshot, audit))
