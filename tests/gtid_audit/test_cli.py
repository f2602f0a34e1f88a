import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from gtid_audit import __version__, cli, exits
from gtid_audit.cli import app, run
from tests.gtid_audit.build import GTID_AUDIT, run_program
from topology.catalogue.findings import Verdict
from topology.catalogue.verdict_table import CATALOGUE

HEAVY = ("numpy", "pandas", "pyarrow", "pyspark", "pydantic", "prometheus_client", "yaml", "numba")
DEAD = "mysql://nobody@127.0.0.1:1/"
ALSO_DEAD = "mysql://nobody@127.0.0.1:2/"
SECRET = "hunter2SECRET"
_A1_TEXT = "Query caused different errors on master and slave."


def loaded_by(*arguments: str) -> tuple[set[str], int]:
    script = (
        "import sys; from gtid_audit.cli import run; status = run(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    names = done.stderr.split()
    return {*names, *(name.partition(".")[0] for name in names)}, done.returncode


def test_pair_imports_nothing_heavy() -> None:
    modules, status = loaded_by("pair", DEAD, ALSO_DEAD, "--json", "--timeout", "1")
    assert status == 3
    assert "pymysql" in modules
    assert modules.isdisjoint((*HEAVY, "rich", "repair", "spark_audit"))
    of_binlog = {name for name in modules if name.startswith("binlog")}
    assert of_binlog <= {
        *("binlog", "binlog.log_times", "binlog.quoting", "binlog.content", "binlog.adapters"),
        *("binlog.content.server_starts", "binlog.adapters.set_statements"),
    }


@pytest.mark.long
def test_pair_for_people_imports_only_rich_in_addition() -> None:
    modules, _ = loaded_by("pair", DEAD, ALSO_DEAD, "--timeout", "1")
    assert "rich" in modules
    assert modules.isdisjoint(HEAVY)


def test_sets_imports_no_driver() -> None:
    modules, status = loaded_by("sets", "count", "")
    assert status == 0
    assert modules.isdisjoint((*HEAVY, "pymysql", "rich", "ssl"))


def test_version() -> None:
    done = run_program("--version")
    assert (done.stdout, done.returncode) == (f"gtid-audit {__version__}\n", 0)


@pytest.mark.parametrize(
    "command",
    [
        *[
            "",
            "sets",
            "sets diff",
            "pair",
            "audit",
            "snapshot",
            "handshake",
            "history",
            "explain",
            "trace",
            "serve",
            "monitoring",
        ],
        "repair plan",
        *["schema", "schema versions", "schema drift"],
        *["spark", "spark trends", "spark package", "spark command", "spark submit"],
    ],
)
def test_help(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    assert done.exit_code == 0
    assert "Usage: " in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Commands:"),
        (("frob",), "No such command"),
        (("pair", DEAD), "Missing argument 'DSN_B'"),
        (("pair", DEAD, ALSO_DEAD, "--timeout", "0"), "--timeout: expected 0.1 to 3600"),
        (("pair", DEAD, ALSO_DEAD, "--timeout", "nan"), "--timeout: expected 0.1 to 3600"),
        (("pair", DEAD, ALSO_DEAD, "--allow-uuid", "x"), "--allow-uuid: not a UUID"),
        (("pair", DEAD, "mysql://x@127.0.0.1:1"), "same server"),
        (("pair", DEAD, ALSO_DEAD, "--ask-password"), "needs a terminal"),
        (("audit",), "--snapshots DIR or --offline DIR"),
        (("audit", "--snapshots", "x", "--cluster", "y"), "for live servers"),
        (("audit", "--snapshots", "/nowhere"), "no stored snapshots"),
        (("audit", "--fleet", "/nowhere.yaml"), "/nowhere.yaml: No such file"),
        (("audit", "--fleet", "x", "--engine", "abacus"), "--engine"),
        (("snapshot", "--fleet", "/nowhere.yaml"), "Missing option"),
        (("explain", "Z9"), "no catalogue entry"),
        (("explain",), "Missing argument"),
        (("trace",), "Missing argument"),
        (("trace", "x"), "expected a GTID (UUID:NUMBER), user@host:port or mysql://"),
        (("trace", DEAD, "--window", "-1"), "--window: expected a whole number from 0 to 3,600"),
        (("trace", DEAD, "--search", "much"), "--search: expected a whole number"),
        (("repair",), "Commands:"),
        (("repair", "plan"), "needs either --pair DSN_A DSN_B or --fleet FILE"),
        (("repair", "plan", DEAD), "needs the DSNs of at least two servers"),
        (("repair", "plan", DEAD, "--pair", DEAD, ALSO_DEAD), "needs either --pair"),
        (("repair", "plan", DEAD, DEAD, "x1:1"), "two DSNs refer to the same server"),
        (("repair", "plan", "--fleet", "x"), "--fleet and --cluster must be used together"),
        (("repair", "plan", "--pair", DEAD, ALSO_DEAD, "--strategy", "x"), "CODE_OR_ID=NAME"),
        (("serve", "--fleet", "x", "--listen", "nowhere"), "--listen: expected HOST:PORT"),
        (("serve", "--fleet", "x", "--interval", "0"), "--interval"),
    ],
)
def test_wrong_usage_is_64(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == exits.USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("pair", f"mysql://root:{SECRET}@h/", ALSO_DEAD),
        ("pair", DEAD, f"mysql://root:{SECRET}@h/", "--json"),
        ("pair", DEAD, ALSO_DEAD, f"mysql://root:{SECRET}@h/"),
        ("pair", f"mysql://h/?password={SECRET}", DEAD),
        ("repair", "plan", "--pair", f"mysql://root:{SECRET}@h/", DEAD),
        ("repair", "plan", f"mysql://root:{SECRET}@h/"),
        (f"mysql://root:{SECRET}@h/",),
        ("audit", "--fleet", f"mysql://root:{SECRET}@h/"),
    ],
)
def test_a_password_on_the_command_line_is_refused_and_not_repeated(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == exits.USAGE
    out, err = capsys.readouterr()
    assert SECRET not in out + err


def test_wrong_usage_of_the_process_is_64() -> None:
    done = run_program("pair", DEAD, ALSO_DEAD, f"mysql://root:{SECRET}@h/")
    assert (done.returncode, done.stdout) == (64, "")
    assert SECRET not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize("variable", ["GTID_AUDIT_PASSWORD", "MYSQL_PWD"])
@pytest.mark.parametrize("form", ["--json", "--ask-nothing", ""])
def test_a_password_in_the_environment_appears_nowhere(variable: str, form: str) -> None:
    flags = [form] if form else []
    done = run_program("--debug", "pair", DEAD, ALSO_DEAD, *flags, environment={variable: SECRET})
    assert SECRET not in done.stdout + done.stderr


@pytest.mark.long
def test_servers_that_are_not_there_are_unknown_not_critical() -> None:
    done = run_program("pair", DEAD, ALSO_DEAD, "--json", "--timeout", "2")
    assert done.returncode == 3
    found = json.loads(done.stdout)
    lists = ["clusters", "findings", "unknown", "contents", "definitions"]
    assert list(found) == ["schema_version", "audited_at", "engine", "verdict", *lists]
    assert (found["engine"], found["verdict"]) == ("local", "UNKNOWN")
    assert {fact["server"] for fact in found["unknown"]} == {"127.0.0.1:1", "127.0.0.1:2"}
    assert {fact["fact"] for fact in found["unknown"]} == {"connection"}
    assert all(fact["reason"].startswith("unreachable") for fact in found["unknown"])


def test_a_defect_is_70_and_short(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(_operands: object) -> None:
        raise RuntimeError("mysql://root:pw@h/ is odd")

    monkeypatch.setattr("gtid_audit.commands.sets.read_operands", fail)
    assert run(("sets", "count", "")) == exits.DEFECT
    said = capsys.readouterr().err
    assert "a defect of gtid-audit" in said
    assert "mysql://…@h/" in said
    assert "Traceback" not in said
    assert run(("--debug", "sets", "count", "")) == exits.DEFECT
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert "root:pw" not in said


def test_an_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_operands: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gtid_audit.commands.sets.read_operands", interrupt)
    assert run(("sets", "count", "")) == exits.INTERRUPTED


def test_main_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["gtid-audit", "sets", "equal", "", "x"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == exits.USAGE


@pytest.mark.long
def test_a_reader_that_goes_away_is_141() -> None:
    many = ",".join(f"{number:08x}-71ca-11e1-9e33-c80aa9429562:1" for number in range(20_000))
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            [GTID_AUDIT, "sets", "canonical", "-"],
            input=many.encode(),
            stdout=pipe,
            stderr=subprocess.PIPE,
            check=False,
            timeout=60,
        )
    assert done.returncode == exits.BROKEN_PIPE
    assert done.stderr == b""


def test_every_verdict_has_the_status_of_a_monitoring_plugin() -> None:
    by_verdict = {verdict.value: exits.status_of(verdict) for verdict in Verdict}
    assert by_verdict == {"OK": 0, "WARNING": 1, "CRITICAL": 2, "UNKNOWN": 3}


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("explain", "h1", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["code"] == "H1"
    assert found["advice"]
    assert run(("explain", *_A1_TEXT.split())) == 0
    assert "An empty transaction does not help" in capsys.readouterr().out


def test_explain_reads_the_sets_of_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    gtid = "aaaaaaaa-0000-0000-0000-000000000000:81"
    text = f"Worker 1 failed executing transaction '{gtid}' at source log b.1; Duplicate entry"
    assert run(("explain", f"{text} '1' for key 'PRIMARY'", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    expected = [{"what": "transaction that failed", "gtid_set": gtid, "gtid_count": 1}]
    assert (found["code"], found["gtid_sets"]) == ("A2", expected)
    assert f"gtid-audit binlog show '{gtid}' DSN_OF_SOURCE" in found["advice"][-1]
    assert run(("explain", f"{text} '1' for key 'PRIMARY'")) == 0
    assert f"transaction that failed: {gtid} (1 transaction)" in capsys.readouterr().out


def test_explain_computes_with_two_sets(capsys: pytest.CaptureFixture[str]) -> None:
    uuid = "aaaaaaaa-0000-0000-0000-000000000000"
    text = (
        f"This member has more executed transactions than those present in the group. Local"
        f" transactions: {uuid}:1-5 > Group transactions: {uuid}:1-4"
    )
    assert run(("explain", text, "--json")) == 0
    assert json.loads(capsys.readouterr().out)["computed_sets"] == [
        {"what": "only the member has", "gtid_set": f"{uuid}:5", "gtid_count": 1},
        {"what": "missing on the member", "gtid_set": "", "gtid_count": 0},
    ]
    assert run(("explain", text)) == 0
    shown = capsys.readouterr().out
    assert f"computed only the member has: {uuid}:5 (1 transaction)" in shown
    assert "computed missing on the member: none (0 transactions)" in shown


def test_a_text_that_no_row_knows_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("explain", "gibberish of 2040")) == 3
    said = capsys.readouterr().out
    assert "no explanation for 'gibberish of 2040'" in said
    assert "performance_schema.error_log" in said
    assert run(("explain", "gibberish", "--json")) == 3
    found = json.loads(capsys.readouterr().out)
    assert (found["title"], found["code"], len(found["advice"])) == (None, None, 3)


def test_explain_says_that_no_audit_reports_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    unreported = next(entry for entry in CATALOGUE.values() if not entry.has_rule)
    assert run(("explain", unreported.code)) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "No audit reports this code" in text
    assert f"do {unreported.proof}" in text, "what reports it instead"


@pytest.mark.long
def test_output_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    done = run_program("explain", "E1", environment={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.startswith("E1")


def test_the_package_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gtid_audit", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("gtid-audit ")
