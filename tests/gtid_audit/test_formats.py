"""--format: JSON lines, the line of a monitoring plugin, and contradictions."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from gtid_audit import clock
from gtid_audit.cli import run
from gtid_audit.exits import UsageProblem
from gtid_audit.output_form import OutputForm, form_of
from gtid_audit.views.audit_counts import LABEL_CHARACTERS_MAX, label_words
from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.json_lines import lines_of_document
from gtid_audit.views.plugin_line import SUMMARY_CHARACTERS_MAX, PerformanceCount, PluginLine
from gtid_audit.views.report import AuditReport, Engine, report_of
from tests.gtid_audit.build import half_read, healthy, holed
from tests.topology.pasted_texts import pair
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Unknown, Verdict

NOON = datetime(2026, 1, 2, 12, 1, tzinfo=UTC)
# label=value[;warn[;crit[;min]]], as the guidelines of monitoring plugins define it.
PERFORMANCE = re.compile(r"(?:'[^=']+'|[^ =']+)=-?[0-9.]+(?:;[0-9]*;[0-9]*;[0-9]*)?")
DEAD = ("mysql://root@127.0.0.1:1/", "mysql://root@127.0.0.1:2/", "--timeout", "1")


@pytest.fixture
def stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A pair whose applier stopped with an error, as pasted output."""
    monkeypatch.setattr(clock, "now", lambda: NOON)
    error = "Could not execute Write_rows: a | b\n and 'c'"
    for name, text in pair(
        Replica_SQL_Running="No", Last_SQL_Errno="1062", Last_SQL_Error=error
    ).items():
        (tmp_path / f"{name}.txt").write_text(text)
    return str(tmp_path)


def of_pair(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = run(arguments)
    return status, capsys.readouterr().out


# -- which form -----------------------------------------------------------------------------------


def test_json_is_a_form() -> None:
    assert form_of(None, as_json=True) is form_of("json", as_json=True) is OutputForm.JSON
    assert form_of(None, as_json=False) is form_of("text", as_json=False) is OutputForm.TEXT


@pytest.mark.parametrize("form", ["text", "jsonl", "plugin"])
def test_contradictions_are_refused(form: str) -> None:
    with pytest.raises(UsageProblem, match=f"contradicts --format {form}"):
        form_of(form, as_json=True)


@pytest.mark.parametrize(
    "command",
    [
        ("pair", *DEAD),
        ("audit", *DEAD),
        ("handshake", *DEAD),
        ("locks", *DEAD),
        ("trace", *DEAD),
        ("schema", "versions", *DEAD),
        ("schema", "drift", *DEAD),
        ("binlog", "scan", "x"),
        ("binlog", "locate", "", "x"),
        ("binlog", "cover", "x", "--from", ""),
        ("binlog", "compare", "x", "y"),
    ],
)
def test_every_command_refuses_contradictions_before_it_connects(
    capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert run((*command, "--json", "--format", "text")) == 64
    assert "contradicts --format text" in capsys.readouterr().err
    assert run((*command, "--format", "xml")) == 64
    assert "--format: expected one of text, json, jsonl" in capsys.readouterr().err


def test_the_scan_of_a_log_has_no_plugin_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("binlog", "scan", "x", "--format", "plugin")) == 64
    assert "expected one of text, json, jsonl\n" in capsys.readouterr().err


# -- JSON lines -----------------------------------------------------------------------------------


def document_and_lines(*snapshots: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    answer = InMemory(report_of(Engine.LOCAL, map(audit_cluster, snapshots)))
    return json.loads("".join(answer.document())), [*map(json.loads, answer.lines())]


def test_lines_have_all_of_the_document() -> None:
    document, lines = document_and_lines(healthy("x"), holed("y"), half_read("z"))
    *items, verdict = lines
    assert all(line["schema_version"] == document["schema_version"] for line in lines)
    for name, kind in {"clusters": "cluster", "findings": "finding", "unknown": "unknown"}.items():
        found = [line for line in items if line["type"] == kind]
        plain = [{k: v for k, v in each.items() if k[:4] not in ("type", "sche")} for each in found]
        assert plain == document[name]
        assert verdict["counts"][name] == len(document[name]) > 0
    assert verdict["type"] == "verdict"
    for name in ("audited_at", "engine", "verdict"):
        assert verdict[name] == document[name]
    assert verdict["counts"]["contents"] is document["contents"] is None


def test_lines_of_a_document() -> None:
    document = {
        "schema_version": 1,
        "verdict": "OK",
        "servers": ["a"],
        "answers": [{"source": "a"}],
        "unknown": [],
    }
    first, last = map(json.loads, lines_of_document(document))
    assert first == {"schema_version": 1, "type": "answer", "source": "a"}
    counts = {"answers": 1, "unknown": 0}
    assert last == {
        "schema_version": 1,
        "type": "verdict",
        "verdict": "OK",
        "servers": ["a"],
        "counts": counts,
    }


# -- the plugin line ------------------------------------------------------------------------------


def parsed(line: str) -> tuple[str, str, dict[str, str]]:
    """Split a line as a monitoring system does: at the first pipe, then at spaces."""
    assert line.count("\n") == 1
    assert line.endswith("\n")
    text, _, data = line[:-1].partition("|")
    assert "|" not in data
    words = PERFORMANCE.findall(data)
    assert " ".join(words) == data.strip()
    status, summary = text.split(" - ", 1)
    return status, summary.rstrip(), dict(each.split("=") for each in words)


def test_the_plugin_line_of_an_audit(stopped: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = of_pair(capsys, "audit", "--offline", stopped, "--format", "plugin")
    head, summary, data = parsed(out)
    assert (status, head) == (2, "GTID CRITICAL")
    assert "A2 " in summary
    assert "db1 → db2" in summary
    assert data["critical"] == "1;;0;0"
    assert data["servers"] == "2;;;0"


def test_a_server_that_is_not_read_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = of_pair(capsys, "pair", *DEAD, "--format", "plugin")
    head, summary, data = parsed(out)
    assert (status, head, data["unknown"]) == (3, "GTID UNKNOWN", "2;;;0")
    assert "2 facts not read" in summary
    assert "; not read: 127.0.0.1:1, connection (unreachable: Can't connect" in summary
    assert "; not read: 127.0.0.1:2, connection (" in summary


def test_the_first_facts_that_were_not_read_are_in_the_line() -> None:
    read = [audit_cluster(half_read())]
    unknown = [Unknown("pair", f"s{number}", "channels", "x " * 500) for number in range(5)]
    report = report_of(Engine.LOCAL, [replace(each, unknown=tuple(unknown)) for each in read])
    _, summary, data = parsed(InMemory(report).plugin_line() + "\n")
    assert data["unknown"] == "5;;;0"
    assert [f"not read: s{at}, channels" in summary for at in range(3)] == [True, True, False]
    assert summary.endswith("…); 3 more not read")
    assert len(summary) < SUMMARY_CHARACTERS_MAX


@pytest.mark.parametrize(
    "command", [("locks",), ("trace",), ("handshake",), ("schema", "versions"), ("schema", "drift")]
)
def test_every_verdict_has_its_forms(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out = of_pair(capsys, *command, *DEAD, "--format", "plugin")
    assert (status, parsed(out)[0]) == (3, "GTID UNKNOWN")
    status, out = of_pair(capsys, *command, *DEAD, "--json")
    assert (status, json.loads(out)["verdict"]) == (3, "UNKNOWN")
    status, out = of_pair(capsys, *command, *DEAD, "--format", "jsonl")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (status, lines[-1]["type"], lines[-1]["verdict"]) == (3, "verdict", "UNKNOWN")
    assert len(lines) == 1 + sum(lines[-1]["counts"].values())
    status, out = of_pair(capsys, *command, *DEAD, "--quiet")
    assert (status, out.count("\n"), out.split()[0]) == (3, 1, "UNKNOWN")


def test_pipes_and_line_ends_are_escaped() -> None:
    counts = (PerformanceCount("two words", 3, warning=0),)
    line = str(PluginLine(Verdict.WARNING, "a | b\nc\r\x1b[1m", counts))
    assert line == r"GTID WARNING - a \x7c b\nc\r\x1b[1m | 'two words'=3;0;;0"
    assert parsed(line + "\n")[1] == r"a \x7c b\nc\r\x1b[1m"


@pytest.mark.parametrize("label", ["", "a=b", "it's"])
def test_a_label_that_would_split_is_refused(label: str) -> None:
    with pytest.raises(ValueError, match="label"):
        PerformanceCount(label, 1)


def test_a_long_summary_is_cut_and_the_data_stays() -> None:
    line = str(PluginLine(Verdict.OK, "x" * 10_000, (PerformanceCount("n", 1),)))
    assert len(line.encode()) < 4096
    assert line.endswith("… | n=1;;;0")


def test_questions_have_a_document(capsys: pytest.CaptureFixture[str]) -> None:
    status, out = of_pair(capsys, "audit", "--questions", "9.7.0", "--json")
    assert status == 0
    assert "gtid_executed" in json.loads(out)["script"]
    assert run(("audit", "--questions", "9.7.0", "--format", "plugin")) == 64


LABELS = (("env", "production"), ("team", "pay|ments"))


def labelled_report(*snapshots: Any) -> AuditReport:
    audits = [audit_cluster(each) for each in snapshots]
    return report_of(Engine.LOCAL, [replace(each, labels=LABELS) for each in audits])


def test_labels_are_in_the_line_and_in_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    words = "(env=production, team=pay|ments)"
    _, summary, _ = parsed(InMemory(labelled_report(holed("y"))).plugin_line() + "\n")
    in_line = words.replace("|", r"\x7c")
    assert summary.startswith(f"y {in_line}, 2 servers, ")
    assert summary.count("team=") == 1
    both = labelled_report(holed("y"), half_read("z"))
    _, summary, _ = parsed(InMemory(both).plugin_line() + "\n")
    assert f"H1 bypassed by file position (a → b, cluster y {in_line}, 3 transactions)" in summary
    assert f"not read: b, cluster z {in_line}, connection" in summary
    InMemory(labelled_report(holed("y"))).show()
    assert capsys.readouterr().out.startswith(f" CRITICAL   y {words} · 2 servers")
    InMemory(both).show()
    out = " ".join(capsys.readouterr().out.split())
    assert f"y {words} CRITICAL" in out
    assert f"where cluster y {words} · a → b" in out


def test_long_labels_are_cut() -> None:
    assert label_words((("team", "x" * 256),)) == f" (team={'x' * (LABEL_CHARACTERS_MAX - 6)}…)"
    assert label_words(()) == ""
