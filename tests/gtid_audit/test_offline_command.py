"""`audit --offline DIR` and `audit --questions VERSION`: statuses, output, and what excludes it."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest

from gtid_audit import clock, exits
from gtid_audit.cli import run
from gtid_audit.document_types.command_documents import schema_of
from tests.topology.pasted_texts import A, pair, vertical, whole
from topology.adapters.offline.pasted_output import parse_output
from topology.adapters.offline.recognised import PastedKind, kind_of_statement
from topology.adapters.offline.statements_to_paste import script_for, statements_for
from topology.readings.version import ServerVersion

NOON = datetime(2026, 1, 2, 12, 1, tzinfo=UTC)
DSN = "mysql://root@127.0.0.1:1/"


@pytest.fixture(autouse=True)
def _it_is_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON)


def saved(folder: Path, **changed: str) -> str:
    for name, text in pair(**changed).items():
        (folder / f"{name}.txt").write_text(text)
    return str(folder)


# -- statuses and output --------------------------------------------------------------------------


def test_a_healthy_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("audit", "--offline", saved(tmp_path))) == exits.OK
    out, err = capsys.readouterr()
    assert (out.splitlines()[0].split()[0], err) == ("OK", "")
    assert "  db1\n  └─▶ db2\n" in out
    assert "From pasted output: binary logs and contents of transactions were not read." in out
    assert "Read once: db1, db2." in out


def test_the_document_follows_the_schema(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = saved(tmp_path, Replica_SQL_Running="No", Last_SQL_Errno="1062")
    assert run(("audit", "--offline", folder, "--json")) == 2
    document = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema_of("audit", is_closed=True)).validate(document)
    assert [each["code"] for each in document["findings"]] == ["A2"]
    assert document["clusters"][0]["servers"] == ["db1", "db2"]
    again = run(("audit", "--offline", folder, "--json"))
    assert (again, json.loads(capsys.readouterr().out)) == (2, document), "the same every time"


def test_a_file_with_little_is_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "db1.txt").write_text(vertical({"@@GLOBAL.gtid_executed": f"{A}:1-5"}))
    assert run(("audit", "--offline", str(tmp_path))) == 3
    out = capsys.readouterr().out
    assert "not in the file: run SELECT @@GLOBAL.gtid_purged" in out
    assert "SHOW REPLICA STATUS (before 8.0.22 or 8.2: SHOW SLAVE STATUS)" in " ".join(out.split())


@pytest.mark.parametrize(
    ("hours_later", "status", "max_age"),
    [(23, 0, "24h"), (25, 3, "24h"), (25, 0, "2d"), (2400, 0, "none"), (-1, 3, "none")],
)
def test_old_output_is_not_of_the_present(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hours_later: int,
    status: int,
    max_age: str,
) -> None:
    folder = saved(tmp_path)
    monkeypatch.setattr(clock, "now", lambda: NOON + timedelta(hours=hours_later))
    assert run(("audit", "--offline", folder, "--max-age", max_age)) == status


def test_contents_that_a_live_audit_would_compare_are_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "db1.txt").write_text(whole(A, name="db1", server_id=1, uptime="60"))
    assert run(("audit", "--offline", str(tmp_path), "--json")) == 3
    document = json.loads(capsys.readouterr().out)
    assert [(each["server"], each["fact"]) for each in document["unknown"]] == [
        ("db1", "content of transactions")
    ]
    assert run(("audit", "--offline", str(tmp_path), "--no-content", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["contents"] is None


def test_logs_that_a_live_audit_would_read_are_unread(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = pair()
    texts["db2"] = texts["db2"].replace(f"{A}:1-9", f"{A}:1-3:6-9")
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    assert run(("audit", "--offline", str(tmp_path), "--json")) in (2, 3)
    unknown = json.loads(capsys.readouterr().out)["unknown"]
    assert ("db1", "binary logs") in {(each["server"], each["fact"]) for each in unknown}


# -- wrong usage ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ((DSN,), "DSN"),
        (("--discover", DSN), "--discover"),
        (("--fleet", "x"), "--fleet"),
        (("--cluster", "x"), "--cluster"),
        (("--snapshots", "x"), "--snapshots"),
        (("--out", "x"), "--out"),
        (("--engine", "spark"), "--engine spark"),
        (("--timeout", "3"), "--timeout"),
        (("--ask-password",), "--ask-password"),
        (("--content",), "--content"),
    ],
)
def test_other_sources_are_excluded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], option: str
) -> None:
    assert run(("audit", "--offline", saved(tmp_path), *arguments)) == exits.USAGE
    out, err = capsys.readouterr()
    expected = f"{option} is for servers that gtid-audit reads, not for --offline"
    assert (out, expected in err) == ("", True)


def test_wrong_files_are_64_with_their_places(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("audit", "--offline", str(tmp_path))) == exits.USAGE
    assert f"{tmp_path}: no files" in capsys.readouterr().err
    saved(tmp_path, Retrieved_Gtid_Set=f"{A}:1-9,")
    (tmp_path / "notes.txt").write_text("nothing")
    assert run(("audit", "--offline", str(tmp_path))) == exits.USAGE
    err = capsys.readouterr().err
    assert f"{tmp_path}/db2.txt:24: Retrieved_Gtid_Set ends with a comma" in err
    assert f"{tmp_path}/notes.txt: nothing in it was recognised" in err


def test_terminal_codes_in_a_file_are_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "db1.txt").write_text(f"@@GLOBAL.gtid_executed\n{A}:\x1b[31m\n")
    assert run(("audit", "--offline", str(tmp_path))) == exits.USAGE
    assert "\x1b" not in capsys.readouterr().err


# -- the statements -------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["5.6.24", "5.7.44-log", "8.0.21", "8.0.36", "9.7.4"])
def test_the_statements_are_printed(version: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("audit", "--questions", version)) == exits.OK
    out = capsys.readouterr().out
    parsed = ServerVersion.parse(version)
    assert out == script_for(parsed)
    statements = [statement for _, statement in statements_for(parsed)]
    assert all(f"\n{statement};\n" in out for statement in statements)
    is_new = parsed >= ServerVersion(8, 0, 22)
    assert (f"SHOW {'REPLICA' if is_new else 'SLAVE'} STATUS" in statements) is True


def test_every_statement_is_known_by_its_marker_and_by_its_text() -> None:
    """So that an empty result, or an error, is of the right statement."""
    for version in map(ServerVersion.parse, ("5.6.24", "5.7.44", "8.0.21", "9.7.4")):
        for kind, statement in statements_for(version):
            marked = vertical({"statement": kind.value}) + vertical({"statement": "end"})
            typed = f"mysql> {statement};\nEmpty set (0.00 sec)\n"
            if kind in (PastedKind.VALUES, PastedKind.UPTIME):
                continue  # they always have rows
            for text in (marked, typed):
                [result] = parse_output(text).results
                assert kind_of_statement(result.statement) is kind, statement


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--questions", "new"), "--questions: expected a release number, found 'new'"),
        (("--questions", "9.7.4", "--offline", "x"), "--questions prints the statements for"),
    ],
)
def test_wrong_questions(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("audit", *arguments)) == exits.USAGE
    assert said in capsys.readouterr().err
