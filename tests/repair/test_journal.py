"""The journal: what it keeps, who may write it, and what it says after a crash."""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from repair.adapters.journal import (
    AtWork,
    Journal,
    UnknownProcedure,
    UnusableJournal,
    default_path,
)
from repair.applying.procedures_applied import AppliedProcedure, EventKind, ProcedureState
from topology.catalogue.findings import Verdict

_HOLDER = """
import sys, time
from pathlib import Path
from repair.adapters.journal import Journal
from repair.applying.procedures_applied import EventKind, ProcedureState
with Journal.at(Path(sys.argv[1])).at_work(sys.argv[2]) as writer:
    writer.enter(ProcedureState.RUNNING, done=1)
    writer.write(EventKind.SENT, "COMMIT", script=2, server="b")
    print("written", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal.at(tmp_path / "state" / "journal.sqlite")


def begun(journal: Journal, directory: str = "/plans/1") -> AppliedProcedure:
    return journal.begin(
        plan_id="0123456789abcdef",
        cluster="orders",
        directory=Path(directory),
        servers=("mysql://admin@db1/", "--admin", "admin.cnf"),
        operator="op@host",
        scripts_total=3,
    )


@pytest.fixture
def holder(journal: Journal) -> Iterator[tuple[AppliedProcedure, subprocess.Popen[str]]]:
    """Provide a procedure that another process is at work on."""
    procedure = begun(journal)
    command = [sys.executable, "-c", _HOLDER, str(journal.path), procedure.id]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "written\n"
            yield procedure, process
        finally:
            process.kill()


def test_a_procedure_is_read_as_it_was_begun(journal: Journal) -> None:
    procedure = begun(journal)
    [found] = journal.procedures()
    assert found.servers == procedure.servers
    assert (found.plan_id, found.cluster, found.directory) == (
        "0123456789abcdef",
        "orders",
        "/plans/1",
    )
    assert (found.scripts_total, found.scripts_done, found.message) == (3, 0, "")
    assert found.started_at == procedure.started_at
    assert (found.ended_at, found.verdict, found.is_stop_requested) == (None, None, False)


def test_the_newest_procedure_is_the_first(journal: Journal) -> None:
    ids = [begun(journal).id for _ in range(3)]
    assert [each.id for each in journal.procedures()] == ids[::-1]


def test_events_and_states_are_kept_in_order(journal: Journal) -> None:
    procedure = begun(journal)
    with journal.at_work(procedure.id) as writer:
        writer.enter(ProcedureState.RUNNING)
        writer.write(EventKind.SCRIPT, "commit 3 empty transactions", script=1, server="b")
        writer.write(EventKind.SENT, "COMMIT" + "x" * 5000, script=1, server="b")
        writer.enter(ProcedureState.RUNNING, done=1)
        assert journal.find(procedure.id).scripts_done == 1
        writer.enter(ProcedureState.DONE, "all is well", verdict=Verdict.OK)
    found = journal.find(procedure.id[:6])
    assert (found.state, found.message, found.verdict) == (
        ProcedureState.DONE,
        "all is well",
        Verdict.OK,
    )
    assert found.scripts_done == 1
    assert found.ended_at is not None
    script, sent = journal.events(procedure.id)
    assert (script.number, script.kind, script.script, script.server) == (
        1,
        EventKind.SCRIPT,
        1,
        "b",
    )
    assert sent.text.startswith("COMMITxxx")
    assert len(sent.text) < 4200, "a redone row may have megabytes"
    assert journal.events(procedure.id, after=1) == (sent,)
    with journal.at_work(procedure.id) as writer:
        assert writer.write(EventKind.BEGUN, "again").number == 3


def test_a_long_statement_is_cut_and_keeps_its_length_and_digest(journal: Journal) -> None:
    """`repair apply --dry-run --json` prints the statement that has this digest."""
    procedure = begun(journal)
    whole = "INSERT INTO d.t VALUES ('" + "é" * 5000 + "')"
    longest = "x" * 4096
    with journal.at_work(procedure.id) as writer:
        said = writer.write(EventKind.SENT, whole, script=1, server="a")
        writer.write(EventKind.SENT, longest, script=1, server="a")
    cut, kept = (each.text for each in journal.events(procedure.id))
    digest = hashlib.sha256(whole.encode()).hexdigest()
    assert cut == said.text == f"{whole[:4096]}… (cut: 5,027 characters, SHA-256 {digest})"
    assert kept == longest


def test_a_stop_is_requested_from_elsewhere_and_ends_with_the_run(journal: Journal) -> None:
    procedure = begun(journal)
    with journal.at_work(procedure.id) as writer:
        writer.enter(ProcedureState.RUNNING)
        before = writer.is_stop_requested
        journal.request_stop(procedure.id)
        assert (before, writer.is_stop_requested) == (False, True)
        writer.enter(ProcedureState.WAITING)
        assert journal.find(procedure.id).is_stop_requested
        writer.enter(ProcedureState.STOPPED, "by request")
    assert not journal.find(procedure.id).is_stop_requested, "it would stop the resumed run"


def test_a_stop_is_not_for_a_later_process(
    journal: Journal, holder: tuple[AppliedProcedure, subprocess.Popen[str]]
) -> None:
    procedure, process = holder
    journal.request_stop(procedure.id)
    process.kill()
    process.wait(timeout=30)
    with journal.at_work(procedure.id) as writer:
        assert not writer.is_stop_requested


def test_two_writers_that_lost_their_lock_file_overwrite_nothing(journal: Journal) -> None:
    procedure = begun(journal)
    with journal.at_work(procedure.id) as one:
        next(journal.path.parent.glob("*.lock")).unlink()
        with journal.at_work(procedure.id) as other:
            for writer in (one, other, one):
                writer.write(EventKind.SENT, "COMMIT")
    assert [each.number for each in journal.events(procedure.id)] == [1, 2, 3]


def test_one_process_is_at_work_on_a_procedure(
    journal: Journal, holder: tuple[AppliedProcedure, subprocess.Popen[str]]
) -> None:
    procedure, _ = holder
    assert journal.find(procedure.id).state is ProcedureState.RUNNING
    with pytest.raises(AtWork, match=procedure.id), journal.at_work(procedure.id):
        pytest.fail("a second process is at work")
    with journal.at_work(begun(journal).id):  # on another one
        assert journal.find(procedure.id).state is ProcedureState.RUNNING


def test_a_procedure_whose_process_was_killed_is_interrupted(
    journal: Journal, holder: tuple[AppliedProcedure, subprocess.Popen[str]]
) -> None:
    procedure, process = holder
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=30)
    found = journal.find(procedure.id)
    assert (found.state, found.scripts_done) == (ProcedureState.INTERRUPTED, 1)
    [sent] = journal.events(procedure.id)
    assert sent.text == "COMMIT", "written before it would have been sent"
    with journal.at_work(procedure.id) as writer:
        writer.enter(ProcedureState.DONE, verdict=Verdict.OK)
    assert journal.find(procedure.id).state is ProcedureState.DONE


def test_an_id_must_belong_to_one_procedure(journal: Journal) -> None:
    ids = [begun(journal).id for _ in range(17)]
    for wrong in ("", "no-such", "g"):
        with pytest.raises(UnknownProcedure, match="no procedure has an id that begins with"):
            journal.find(wrong)
    first = next(each[0] for each in ids if sum(one[0] == each[0] for one in ids) > 1)
    with pytest.raises(UnknownProcedure, match="procedures have an id"):
        journal.find(first)
    assert journal.find(ids[0].upper()).id == ids[0]


def test_only_its_owner_may_read_it(journal: Journal) -> None:
    procedure = begun(journal)
    with journal.at_work(procedure.id):
        files = sorted(journal.path.parent.iterdir())
        assert len(files) == 4, "the journal, its log and index, and the lock"
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
    assert journal.path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"text", "not a journal of gtid-audit: not a SQLite file"),
        (b"history", "a SQLite file, but not a journal of gtid-audit"),
        (b"version", "a journal of version 99"),
    ],
)
def test_another_file_is_refused_and_not_changed(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "journal.sqlite"
    if content == b"text":
        path.write_bytes(b"not a database, but long enough to be looked at" * 20)
    else:
        if content == b"version":
            Journal.at(path)
        with closing(sqlite3.connect(path)) as database:
            database.execute("CREATE TABLE other (id INT)")
            database.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(UnusableJournal, match=why):
        Journal.at(path)
    assert path.read_bytes() == before


def test_a_damaged_row_is_reported_with_its_procedure(journal: Journal) -> None:
    procedure = begun(journal)
    with closing(sqlite3.connect(journal.path)) as database:
        database.execute("UPDATE procedure SET state = 'odd'")
        database.commit()
    with pytest.raises(UnusableJournal, match=f"procedure {procedure.id} is damaged"):
        journal.procedures()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnusableJournal, match=r"journal\.sqlite: "):
        Journal.at(tmp_path / "file" / "journal.sqlite")


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"XDG_STATE_HOME": "/var/state"}, "/var/state/gtid-audit/journal.sqlite"),
        ({"XDG_STATE_HOME": "relative"}, "/home/op/.local/state/gtid-audit/journal.sqlite"),
        ({}, "/home/op/.local/state/gtid-audit/journal.sqlite"),
    ],
)
def test_where_it_is_by_default(environment: dict[str, str], expected: str) -> None:
    assert default_path(environment, Path("/home/op")) == Path(expected)


def test_the_words_that_name_the_servers_are_one_column(journal: Journal) -> None:
    begun(journal)
    with closing(sqlite3.connect(f"{journal.path.as_uri()}?mode=ro", uri=True)) as database:
        [(words,)] = database.execute("SELECT servers FROM procedure")
    assert json.loads(words) == ["mysql://admin@db1/", "--admin", "admin.cnf"]
    assert journal.path.stat().st_size
