"""Commands with --json on a real pair: each prints a document that its schema permits.

With the documents that need no server (test_command_schemas.py), and those of the tests that
ELSEWHERE lists, these are all documents.
"""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compose import faults
from compose.native.shapes import Pair
from gtid_audit.cli import run
from gtid_audit.document_types.command_documents import DOCUMENTS
from repair.adapters.journal import JournalWriter
from repair.applying.procedures_applied import EventKind, ProcedureEvent
from tests.documents import check_text, command_of
from tests.gtid_audit.build import GTID_AUDIT

TESTS = Path(__file__).parent
OFFLINE = {
    "sets",
    "sets diff",
    "explain",
    "audit --questions",
    "completion",
    "man",
    "spark command",
}
ELSEWHERE = {
    "repair apply --detach": "test_apply_command.py::test_a_repair_goes_on_in_the_background",
    "spark package": "test_spark_submit.py::test_the_commands_have_json",
    "spark submit": "test_spark_submit.py::test_the_commands_have_json",
    "spark submit --deploy-mode cluster": "test_spark_submit.py::test_the_commands_have_json",
    "spark trends": "test_results_command.py::test_trends_as_a_document",
}


class Printer:
    """Runs commands with --json, and keeps which documents they printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.names: set[str] = set()

    def __call__(self, *words: str, status: int | None = 0) -> dict[str, Any]:
        self._capsys.readouterr()
        ended = run([*words, "--json"])
        out, err = self._capsys.readouterr()
        assert out, (words, ended, err)
        assert status is None or ended == status, (words, ended, err)
        self.note(words, out)
        document: dict[str, Any] = json.loads(out)
        return document

    def note(self, words: tuple[str, ...], text: str) -> None:
        command = command_of(words)
        assert command is not None, words
        self.names |= set(check_text(command, text))


def fleet_of(pair: Pair, folder: Path) -> str:
    file = folder / "fleet.yaml"
    servers = ", ".join(
        f"{{name: {name}, host: {each.host}, port: {each.port}}}"
        for name, each in pair.servers.items()
    )
    file.write_text(
        f"defaults: {{user: root}}\nclusters:\n  - name: orders\n    servers: [{servers}]\n"
    )
    return str(file)


def of_reading(printed: Printer, a: str, b: str, folder: Path, fleet: str) -> None:
    history = str(folder / "history.sqlite3")
    printed("pair", a, b, "--history", history, status=2)
    assert printed("history", history)["episodes"]
    [promoted, _] = printed("handshake", a, b, status=None)["servers"]
    assert printed("handshake", a, b, "--promote", promoted, status=None)["promotion"]
    printed("locks", a, b)
    printed("trace", a, b, status=None)
    printed("schema", "versions", a, b, status=None)
    assert printed("schema", "drift", a, b, status=None)["clusters"][0]["pairs"]
    printed("snapshot", "--fleet", fleet, "--out", str(folder / "runs"))
    printed("reconcile", "cluster", "orders", "--fleet", fleet, status=None)
    printed("monitoring", "--out", str(folder / "monitoring"))


def of_logs(printed: Printer, pair: Pair, folder: Path, gtids: str) -> None:
    a, b = pair.a.dsn, pair.b.dsn
    index = str(pair.a.value("@@log_bin_index"))
    store = ("--store", str(folder / "definitions"))
    assert printed("binlog", "scan", index, "--details")["tables"]
    assert printed("binlog", "locate", gtids, index)["files"]
    assert printed("binlog", "cover", "--from", "", index)["files"]
    shown = printed("binlog", "show", gtids, a, "--schema-from", a, status=None)
    assert any("rows" in item for item in shown["transactions"][0]["content"])
    assert printed("binlog", "show", gtids, a, "--redo", status=None)["direction"]
    assert printed("binlog", "compare", a, b, "--everywhere", status=None)["differences"]
    printed("binlog", "schema", "follow", a, *store)
    assert printed("binlog", "schema", "list", *store)["tables"]
    assert printed("binlog", "schema", "list", "documents.t", *store)["tables"][0]["definition"]
    assert printed("binlog", "schema", "update", "documents.t", "--from-source", a, *store)["done"]
    compare = ("binlog", "schema", "compare", "documents.t", "--source", a, "--replica", b)
    assert printed(*compare, *store)["views"]
    assert printed("binlog", "schema", "delete", "documents.t", *store)["entries"]


def of_repairs(printed: Printer, a: str, b: str, folder: Path, patch: pytest.MonkeyPatch) -> None:
    plan, directory = ("repair", "plan", "--pair", a, b), str(folder / "plan")
    choices = ("--strategy", "H1=inject_empty")
    assert printed(*plan, *choices, "--out", directory, status=None)["steps"]
    assert printed("repair", "apply", directory, "--dry-run")["scripts"]
    write = JournalWriter.write

    def stopping(self: JournalWriter, kind: EventKind, text: str, **where: Any) -> ProcedureEvent:
        written = write(self, kind, text, **where)
        if kind is EventKind.SCRIPT and not stops:
            [going_on] = printed("repair", "list")["procedures"]
            stops.append(going_on["procedure"])
            assert printed("repair", "stop", stops[0])["is_stop_requested"]
        return written

    stops: list[str] = []
    with patch.context() as patched:
        patched.setattr(JournalWriter, "write", stopping)
        run(["repair", "apply", directory, "--yes"])
    assert stops
    assert printed("repair", "state", stops[0], status=None)["state"] == "stopped"
    assert printed("repair", "resume", stops[0], "--yes", status=None)["state"] == "done"


def of_the_service(printed: Printer, fleet: str) -> None:
    words = ("serve", "--fleet", fleet, "--listen", "127.0.0.1:0", "--json")
    with subprocess.Popen([GTID_AUDIT, *words], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = process.stdout.readline()
            assert line, "it ended"
            text += line
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    printed.note(words, text)


@pytest.mark.slow  # each command's own tests print its document, and are compared as well
def test_every_document_is_printed(
    pair97: Pair,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    printed = Printer(capsys)
    a, b, fleet = pair97.a.dsn, pair97.b.dsn, fleet_of(pair97, tmp_path)
    pair97.a.execute("CREATE DATABASE documents")
    pair97.a.execute("CREATE TABLE documents.t (id INT PRIMARY KEY, name VARCHAR(9))")
    gtids = faults.commit(pair97.a, "INSERT INTO documents.t VALUES (1, 'a'), (2, NULL)")
    pair97.settle()
    faults.reused_numbers(pair97)
    assert any(
        each["different"] for each in printed("repair", "check-data", a, b, status=2)["tables"]
    )
    faults.position_bypass(pair97)
    of_reading(printed, a, b, tmp_path, fleet)
    of_logs(printed, pair97, tmp_path, gtids)
    of_repairs(printed, a, b, tmp_path, monkeypatch)
    of_the_service(printed, fleet)
    assert printed.names | OFFLINE | set(ELSEWHERE) == set(DOCUMENTS)
    assert not printed.names & (OFFLINE | set(ELSEWHERE))


@pytest.mark.parametrize("test", sorted(set(ELSEWHERE.values())))
def test_the_other_tests_exist_and_ask_for_documents(test: str) -> None:
    file, _, name = test.partition("::")
    body = (TESTS / file).read_text().partition(f"def {name}(")[2].partition("\ndef ")[0]
    assert '"--json"' in body
