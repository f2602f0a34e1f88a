"""A lost tail (E3) of which the source has reused a part (E4), repaired both ways to its end.

The rest of the tail is redone or undone. Under the reused GTID the version of the source is kept,
because its replicas and clients have it: the replica's own row is replaced.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit.cli import run
from tests.repair.live import executed, rows, wait_until

CLIENT = "INSERT INTO lost.t (note) VALUES ('of a client')"


@pytest.mark.parametrize("pair", ["pair97", pytest.param("pair56", marks=pytest.mark.slow)])
@pytest.mark.parametrize("strategy", ["redo_on_source", "undo_on_replica"])
def test_the_rest_and_the_reused_part_are_repaired(
    strategy: str,
    pair: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    servers: Pair = request.getfixturevalue(pair)
    a, b = servers.a, servers.b
    lost = GtidSet.parse(faults.lost_tail_crash(servers).lost)
    assert (rows(a, "lost.t"), lost.gtid_count) == ([], 3)
    tail = rows(b, "lost.t")
    a.execute(CLIENT)
    [(first, _)] = client = rows(a, "lost.t")
    assert GtidSet.parse(executed(a)) & lost == lost.first(1), "a part of the tail is reused"

    choices = (f"E3={strategy}", "E4=data_repair")
    is_undo = strategy == "undo_on_replica"
    repaired(servers, tmp_path / "first", *choices, leaves_one=is_undo)
    said = " ".join(capsys.readouterr().out.split())
    if is_undo:  # the rows of E4 are written once nothing newer of the replica is left
        assert "repair that first, then audit and plan again" in said
        # The directory shows which contents the first plan emptied. They stay different in the logs.
        repaired(
            *(servers, tmp_path / "second", "E4=data_repair"),
            leaves_one=True,
            accepted=tmp_path / "first",
        )

    kept = [] if is_undo else [row for row in tail if row[0] != first]
    assert rows(a, "lost.t") == rows(b, "lost.t") == sorted([*client, *kept])
    a.execute(CLIENT)
    wait_until(lambda: executed(a) == executed(b))
    assert rows(a, "lost.t") == rows(b, "lost.t"), "the channel runs, and applies"
    capsys.readouterr()
    assert run(["pair", a.dsn, b.dsn, "--content", "--json"]) == 2
    assert capsys.readouterr().out.count('"code": "E4"') == 1, "the logs keep both contents"
    assert run(["repair", "check-data", a.dsn, b.dsn]) == 0


def repaired(
    servers: Pair,
    out: Path,
    *choices: str,
    leaves_one: bool = False,
    accepted: Path | None = None,
) -> None:
    """Plan with contents, and apply the plan: the audit afterwards shows what it announced."""
    dsns = (servers.a.dsn, servers.b.dsn)
    chosen = [part for each in choices for part in ("--strategy", each)]
    chosen += ["--accepted", str(accepted)] if accepted is not None else []
    status = run(["repair", "plan", "--pair", *dsns, "--content", *chosen, "--out", str(out)])
    assert status == int(leaves_one)
    journal = str(out.with_name("journal.sqlite"))
    assert run(["repair", "apply", str(out), "--yes", "--journal", journal]) == 0
