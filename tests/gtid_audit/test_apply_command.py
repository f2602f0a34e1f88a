"""`repair apply` and what follows it, as an operator types it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run
from gtid_audit.tasks.procedure_journal import operator
from repair.adapters.journal import Journal, JournalWriter, UnusableJournal
from repair.applying.procedures_applied import EventKind, ProcedureEvent, ProcedureState
from repair.render import PLAN
from tests.repair.live import executed, wait_until

_PROGRAM = Path(sys.executable).with_name("gtid-audit")
_PASSWORD = "s3cret-of-the-admin"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def dsns(pair: Pair, user: str = "root") -> tuple[str, str]:
    a, b = (f"mysql://{user}@{each.host}:{each.port}/" for each in (pair.a, pair.b))
    return a, b


def planned(pair: Pair, folder: Path) -> Path:
    faults.position_bypass(pair)
    directory = folder / "plan"
    words = ["repair", "plan", "--pair", *dsns(pair), "--strategy", "H1=inject_empty"]
    assert run([*words, "--out", str(directory)]) == 0
    return directory


def document(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def documented(heading: str) -> set[str]:
    """Return the fields that a section of docs/json.md lists in its table."""
    page = (Path(__file__).parents[2] / "docs/json.md").read_text()
    table = page.partition(f"## {heading}")[2].partition("|---|---|")[2].partition("\n\n")[0]
    rows = [line.split("|") for line in table.strip().splitlines()]
    listed = " ".join(name + (text if "`events`" in name else "") for _, name, text, _ in rows)
    return set(re.findall(r"`([a-z_]+)`", listed))


# -- what is typed --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["apply", "/nowhere"], "/nowhere/plan.json: No such file"),
        (["state", "x"], "no procedure has an id that begins with 'x'"),
        (["stop", "x"], "no procedure has an id that begins with 'x'"),
        (["resume", "x"], "no procedure has an id that begins with 'x'"),
        (["resume", "x", "--step", "--detach"], "--step asks on the terminal"),
        (["list", "--journal", "/proc/none/j"], "/proc/none"),
    ],
)
def test_what_cannot_be_done_is_said(
    words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["repair", *words]) == 64
    assert why in capsys.readouterr().err


def test_an_empty_journal_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["repair", "list"]) == 0
    assert capsys.readouterr().out == "No plan was applied yet.\n"
    assert run(["repair", "list", "--json"]) == 0
    assert document(capsys)["procedures"] == []


# -- on servers -----------------------------------------------------------------------------------


def test_a_plan_is_applied_followed_and_listed(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(pair97, tmp_path)
    identity = json.loads((plan / PLAN).read_text())["id"]
    capsys.readouterr()
    assert run(["repair", "apply", str(plan)]) == 64
    assert f"use --yes, or --approve {identity}" in capsys.readouterr().err
    assert run(["repair", "apply", str(plan), "--approve", "0" * 16]) == 64
    assert f"has the id {identity}" in capsys.readouterr().err
    assert run(["repair", "apply", str(plan), "--approve", identity]) == 0
    lines = capsys.readouterr().out.splitlines()
    procedure = lines[0].removeprefix("procedure ")
    assert re.fullmatch(r"\d\d:\d\d:\d\d 1\. \S+ answered: step 1 is done", lines[3])
    [ending] = [each for each in lines if each.startswith("done: ")]
    assert ending.startswith("done: the audit afterwards: OK. As the plan announced, what")
    assert not any("sent:" in line for line in lines), "statements are in the journal"
    assert executed(pair97.a) == executed(pair97.b)
    assert run(["pair", *dsns(pair97), "--content", "--accepted", str(plan)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"emptied by plan {identity}, applied by {operator()}, accepted." in shown

    assert run(["repair", "state", procedure[:8], "--json"]) == 0
    found = document(capsys)
    assert (found["procedure"], found["plan"], found["state"]) == (procedure, identity, "done")
    assert (found["scripts_done"], found["scripts_total"], found["verdict"]) == (3, 3, "OK")
    assert {"schema_version", *documented("A procedure")} == {*found, *found["events"][0]}
    kinds = [each["event"] for each in found["events"]]
    assert kinds.count("sent") > 50
    assert [each for each in kinds if each != "sent"] == [
        "begun",
        *("script", "answered", "compared"),
        *("script", "answered"),
        *("script", "answered", "compared"),
        *("audited", "done"),
    ]
    sent = [each["text"] for each in found["events"] if each["event"] == "sent"]
    assert run(["repair", "apply", str(plan), "--dry-run", "--json"]) == 0
    dry = document(capsys)
    assert [each for script in dry["scripts"] for each in script["statements"]] == sent

    assert run(["repair", "resume", procedure]) == 64
    assert "is done" in capsys.readouterr().err
    assert run(["repair", "list"]) == 0
    assert f"{procedure[:8]} " in capsys.readouterr().out


def test_a_failed_plan_says_why_and_how_to_go_on(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(pair97, tmp_path)
    b = pair97.b
    b.execute(b.dialect.stop_replica, b.dialect.reset_replica)
    capsys.readouterr()
    assert run(["repair", "apply", str(plan), "--yes", "--json"]) == 2
    found = document(capsys)
    assert (found["state"], found["scripts_done"]) == ("failed", 0)
    assert "its channels changed since the plan was made" in found["message"]
    assert run(["repair", "state", found["procedure"]]) == 2
    assert f"gtid-audit repair resume {found['procedure']}" in capsys.readouterr().out


def test_what_the_plan_did_not_announce_is_in_the_status(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(pair97, tmp_path)
    assert run(["repair", "apply", str(plan), "--yes"]) == 0
    faults.errant_transaction(pair97)
    capsys.readouterr()
    assert run(["repair", "apply", str(plan), "--yes"]) == 2
    out = capsys.readouterr().out
    assert "the audit afterwards: CRITICAL. the plan did not announce: " in " ".join(out.split())
    assert "E1 errant" in out


def test_another_account_writes_and_its_password_is_in_no_file(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The account of the audit may not write. `--admin` names an option file with one that may."""
    plan = planned(pair97, tmp_path)
    for server in (pair97.a, pair97.b):
        server.execute(
            "SET SESSION sql_log_bin = 0",
            f"CREATE USER fixer@'%' IDENTIFIED BY '{_PASSWORD}'",
            "GRANT ALL ON *.* TO fixer@'%'",
            "CREATE USER reader@'%'",
            "GRANT SELECT, REPLICATION CLIENT ON *.* TO reader@'%'",
        )
    readers = dsns(pair97, "reader")
    assert run(["repair", "apply", str(plan), *readers, "--yes"]) == 2
    assert "a condition of the script is false: 127.0.0.1" in (shown := capsys.readouterr().out)
    assert "REPLICATION_APPLIER" in shown
    admin = tmp_path / "admin.cnf"
    admin.write_text(f"[client]\nuser = fixer\npassword = {_PASSWORD}\nssl-mode = REQUIRED\n")
    admin.chmod(0o600)
    secured = [f"{each}?ssl=required" for each in readers]
    assert run(["repair", "apply", str(plan), *secured, "--admin", str(admin), "--yes"]) == 0
    written = capsys.readouterr()
    assert _PASSWORD not in written.out + written.err
    for file in tmp_path.rglob("*"):
        if file.is_file() and file != admin:
            assert _PASSWORD.encode() not in file.read_bytes(), file


def test_servers_must_be_those_of_the_plan(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(pair97, tmp_path)
    a, b = dsns(pair97)
    capsys.readouterr()
    assert run(["repair", "apply", str(plan), a, "--yes"]) == 64
    assert "no address was given for" in capsys.readouterr().err
    assert run(["repair", "apply", str(plan), b, a, "--yes"]) == 0, "in any order"


def test_an_edited_script_is_not_run(
    pair97: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(pair97, tmp_path)
    script = next(plan.glob("01-*.sql"))
    script.write_text(script.read_text().replace("COMMIT;", "COMMIT; DROP DATABASE bypassed;"))
    before = executed(pair97.b)
    assert run(["repair", "apply", str(plan), "--yes"]) == 64
    assert f"{script.name}: it was edited after the plan was made" in capsys.readouterr().err
    assert executed(pair97.b) == before


def test_a_repair_goes_on_in_the_background(
    pair97: Pair, tmp_path: Path, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = planned(pair97, tmp_path)
    capsys.readouterr()
    assert run(["repair", "apply", str(plan), "--yes", "--detach", "--json"]) == 0
    found = document(capsys)
    journal = Journal.at(state / "gtid-audit/journal.sqlite")
    wait_until(lambda: journal.find(found["procedure"]).verdict is not None)
    assert journal.find(found["procedure"]).state is ProcedureState.DONE
    lines = [json.loads(line) for line in Path(found["log"]).read_text().splitlines()]
    assert {each["procedure"] for each in lines} == {found["procedure"]}
    assert lines[-1]["event"] == "done"
    assert executed(pair97.a) == executed(pair97.b)


def test_a_journal_that_is_lost_ends_the_run_as_failed(
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = planned(pair97, tmp_path)
    write = JournalWriter.write

    def full(self: JournalWriter, kind: EventKind, text: str, **where: Any) -> ProcedureEvent:
        if kind is EventKind.ANSWERED:
            raise UnusableJournal("journal.sqlite: database or disk is full")
        return write(self, kind, text, **where)

    monkeypatch.setattr(JournalWriter, "write", full)
    capsys.readouterr()
    assert run(["repair", "apply", str(plan), "--yes"]) == 2
    shown = capsys.readouterr()
    assert "disk is full. The run has ended, and the servers may be between two" in shown.err
    procedure = shown.out.split()[1]
    monkeypatch.undo()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert run(["repair", "resume", procedure, "--yes"]) == 0
    assert executed(pair97.a) == executed(pair97.b)


@pytest.mark.parametrize(("answer", "options"), [("y", ()), ("n", ()), ("y", ("--step",))])
def test_it_asks_on_a_terminal(
    answer: str, options: tuple[str, ...], pair97: Pair, tmp_path: Path
) -> None:
    """It shows what it would run; with --step it asks before each of the two steps as well."""
    plan, before = planned(pair97, tmp_path), executed(pair97.b)
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode() * (3 if options else 1))
    try:
        done = subprocess.run(
            [str(_PROGRAM), "repair", "apply", str(plan), *options],
            stdin=theirs,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    shown = " ".join(done.stdout.split())
    assert "3 scripts to run" in shown
    assert "the content of these transactions will never be applied here" in shown
    assert "Apply it? [y/N]" in done.stderr
    assert done.stderr.count("after its checks 02-") == len(options)
    assert done.returncode == (0 if answer == "y" else 130), done.stderr
    assert (executed(pair97.b) == before) is (answer == "n")


@pytest.fixture
def held(pair97: Pair, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Provide a process that applies a plan and has begun its first script."""
    plan = planned(pair97, tmp_path)
    command = [str(_PROGRAM), "repair", "apply", str(plan), "--yes", "--json-lines"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                event = json.loads(line)
                if (event["event"], event["script"]) == ("script", 1):
                    break
            else:
                assert process.stderr is not None
                pytest.fail(f"the first script did not begin: {process.stderr.read()}")
            yield process, event["procedure"]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_between_two_scripts(
    held: tuple[subprocess.Popen[str], str],
    number: signal.Signals,
    pair97: Pair,
    capsys: pytest.CaptureFixture[str],
) -> None:
    process, procedure = held
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert f"{number.name}: stops after the present step" in errors
    assert process.returncode == 1
    capsys.readouterr()
    assert run(["repair", "state", procedure]) == 1
    assert "stopped: stopped by request before 02-" in capsys.readouterr().out
    assert run(["repair", "resume", procedure, "--yes"]) == 0
    assert executed(pair97.a) == executed(pair97.b)


def test_a_killed_process_leaves_an_interrupted_procedure(
    held: tuple[subprocess.Popen[str], str], pair97: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    process, procedure = held
    process.kill()
    process.wait(timeout=30)
    assert run(["repair", "state", procedure]) == 1
    assert "interrupted" in capsys.readouterr().out
    assert run(["repair", "stop", procedure]) == 64
    assert "is interrupted: nothing is running" in capsys.readouterr().err
    deadline = time.monotonic() + 30
    while run(["repair", "resume", procedure, "--yes"]) != 0:  # the server notices the end first
        assert time.monotonic() < deadline
    assert executed(pair97.a) == executed(pair97.b)
