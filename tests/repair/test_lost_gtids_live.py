"""An undo of a lost tail (E3) on real servers whose source assigns the lost GTIDs meanwhile.

A client's transaction under one of them never reaches the replicas, and afterwards the sets are
equal: each script must stop before that, and must go on after its own interruption.
"""

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid import GtidSet
from repair.render import render_files
from repair.scripts.steps import Step
from tests.repair.live import await_clean, examine, executed, refusals, rows, run_plan, run_step

CLIENT = "INSERT INTO lost.t (note) VALUES ('of a client')"


@pytest.fixture
def steps(pair: str, request: pytest.FixtureRequest) -> "Undo":
    return Undo(request.getfixturevalue(pair))


class Undo:
    """The plan of an undo whose rows are undone already, and its other two steps."""

    def __init__(self, servers: Pair) -> None:
        self.servers = servers
        self.lost = GtidSet.parse(faults.lost_tail_crash(servers).lost)
        self.plan = examine(servers).plan({"E3": "undo_on_replica"})
        undo, self.empty, self.start = self.plan.steps
        self.done(undo)

    def done(self, step: Step) -> None:
        assert refusals(self.servers, self.plan, step) == []
        done = run_step(self.servers, self.plan, step)
        assert done.returncode == 0, done.stderr

    @property
    def script(self) -> str:
        return render_files(self.plan)[self.empty.file_name]

    def assert_stops(self, script: str, why: str) -> None:
        before = executed(self.servers.b)
        refused = self.servers.a.client(script)
        assert refused.returncode != 0
        assert why in refused.stderr
        assert refusals(self.servers, self.plan, self.start) != []
        assert executed(self.servers.b) == before


@pytest.mark.parametrize("pair", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
def test_an_interrupted_script_goes_on(steps: Undo) -> None:
    lines = steps.script.splitlines(keepends=True)
    commits = [at for at, line in enumerate(lines, 1) if line == "COMMIT;\n"]
    assert len(commits) == steps.lost.gtid_count > 1
    for at in commits[:-1]:
        assert steps.servers.a.client("".join(lines[:at])).returncode == 0
    missing = steps.lost - GtidSet.parse(executed(steps.servers.a))
    assert missing == steps.lost.first(1), "clients would take the lowest GTID"
    assert refusals(steps.servers, steps.plan, steps.start) != []
    steps.done(steps.empty)
    again = steps.servers.a.client(steps.script)
    assert "Had this script run before? Then go on with the next one" in again.stderr
    steps.done(steps.start)
    await_clean(steps.servers)
    assert executed(steps.servers.a) == executed(steps.servers.b)
    assert rows(steps.servers.a, "lost.t") == rows(steps.servers.b, "lost.t")


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["pair97", "pair56"])
def test_a_client_takes_one_of_the_gtids(steps: Undo) -> None:
    steps.servers.a.execute(CLIENT)
    steps.assert_stops(steps.script, "it has reused lost GTIDs for transactions of its own")


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["pair97", "pair56"])
def test_clients_take_all_gtids_and_more(steps: Undo) -> None:
    steps.servers.a.execute(*[CLIENT] * steps.lost.gtid_count)
    refused = steps.servers.a.client(steps.script)
    assert "all these GTIDs are executed" in refused.stderr
    steps.servers.a.execute(CLIENT)
    steps.assert_stops(steps.script, "it has committed transactions of its own since the plan")


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["pair97", "pair56"])
def test_a_client_takes_the_last_gtid_while_the_script_runs(steps: Undo) -> None:
    lowest = f"SET SESSION gtid_next = IF(@go, '{steps.lost.first(1)}'"
    assert steps.script.count(lowest) == 1
    beside = f"SET SESSION gtid_next = 'AUTOMATIC'; {CLIENT};\n{lowest}"
    refused = steps.servers.a.client(steps.script.replace(lowest, beside))
    assert f"a client has committed {steps.lost.first(1)} meanwhile" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["pair97"])
def test_the_source_accepts_the_empty_transactions_while_clients_cannot_write(steps: Undo) -> None:
    steps.servers.a.execute("SET GLOBAL super_read_only = ON")
    steps.done(steps.empty)
    steps.done(steps.start)
    steps.servers.a.execute("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
    await_clean(steps.servers)


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["pair97", "pair56"])
def test_after_an_interrupted_script_the_rest_is_planned_again(steps: Undo) -> None:
    script = steps.script
    first = script.index("COMMIT;\n") + len("COMMIT;\n")
    assert steps.servers.a.client(script[:first]).returncode == 0
    plan = examine(steps.servers).plan({"E3": "undo_on_replica"})
    run_plan(steps.servers, plan)
    await_clean(steps.servers)
    assert executed(steps.servers.a) == executed(steps.servers.b)
    assert rows(steps.servers.a, "lost.t") == rows(steps.servers.b, "lost.t")
