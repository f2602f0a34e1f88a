"""`binlog locate` on the command line; what it finds is held to more in tests/binlog/test_heads.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlog.event_types import EventType
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit.cli import run
from gtid_audit.views.locate_text import FILES_SHOWN_MAX, PLACES_SHOWN_MAX
from tests.binlog.builders import UUID_A, Log

A = str(UUID_A)


def _logs(folder: Path, *contents: range) -> Path:
    """Write files of empty transactions and their index."""
    for number, gnos in enumerate(contents, start=1):
        log = Log()
        before = f"{A}:1-{gnos.start - 1}" if gnos.start > 1 else ""
        log.add(EventType.PREVIOUS_GTIDS, encode(GtidSet.parse(before)))
        for gno in gnos:
            log.gtid(gno)
            log.query("BEGIN")
            log.xid()
        (folder / f"binlog.{number:06}").write_bytes(bytes(log))
    return folder


@pytest.mark.parametrize("command", ["locate", "show"])
def test_an_unset_variable_is_no_set(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`binlog locate "$missing" DIR` was OK: all of nothing is there."""
    assert run(("binlog", command, "", str(_logs(tmp_path, range(1, 4))))) == 64
    assert "SET is empty: there is nothing to look for" in capsys.readouterr().err


def test_everything_found_is_ok(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = _logs(tmp_path, range(1, 4), range(4, 7), range(7, 10))
    assert run(("binlog", "locate", f"{A}:2:8", str(logs))) == 0
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0].startswith(" OK ")
    assert "2 of 2 GTIDs located · in 2 of 3 files" in " ".join(said.out.split())
    places = [line.split() for line in lines if line.strip().startswith(f"{A}:") and "  " in line]
    assert [place[0] for place in places if len(place) == 3] == [f"{A}:2", f"{A}:8"]
    assert all(int(place[2]) - int(place[1]) == 122 for place in places if len(place) == 3)


def test_json_has_every_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = _logs(tmp_path, range(3, 5), range(5, 7))
    assert run(("binlog", "locate", f"{A}:1:4-5:99", str(logs), "--json")) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "WARNING"
    assert found["source"] == str(logs)
    assert found["wanted"] == {"gtid_set": f"{A}:1:4-5:99", "gtid_count": 4}
    assert [Path(each["file"]).name for each in found["files"]] == [
        "binlog.000001",
        "binlog.000002",
    ]
    first, second = found["files"]
    [place] = first["transactions"]
    assert (place["gtid"], place["is_complete"]) == (f"{A}:4", True)
    assert place["end"] == Path(first["file"]).stat().st_size
    assert second["transactions"][0]["end"] - second["transactions"][0]["start"] == 122
    assert [each["transactions_left_out"] for each in found["files"]] == [0, 0]
    assert found["absent"] == [
        {"reason": "before the first file", "gtid_set": f"{A}:1", "gtid_count": 1},
        {"reason": "in no file", "gtid_set": f"{A}:99", "gtid_count": 1},
    ]
    assert (found["file_count"], found["heads_read"], found["errors"]) == (2, 2, [])


def test_what_is_absent_is_said_with_its_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = _logs(tmp_path, range(3, 5))
    assert run(("binlog", "locate", f"{A}:1-99", str(logs))) == 1
    said = capsys.readouterr().out
    assert said.startswith(" WARNING ")
    assert "before the first file" in said
    assert f"{A}:1-2" in said
    assert "in none of the files" in said
    assert f"{A}:5-99" in said


def test_what_could_not_be_read_makes_it_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = _logs(tmp_path, range(1, 3), range(3, 5))
    broken = tmp_path / "binlog.000002"
    broken.write_bytes(broken.read_bytes()[:-5])
    assert run(("binlog", "locate", f"{A}:3-4", str(logs))) == 3
    said = capsys.readouterr().out
    assert said.startswith(" UNKNOWN ")
    assert "binlog.000002: at byte" in said
    assert run(("binlog", "locate", f"{A}:3-4", str(logs), "--json")) == 3
    [error] = json.loads(capsys.readouterr().out)["errors"]
    assert (error["error"], error["file"]) == ("TruncatedBinlog", "binlog.000002")
    assert 0 < error["position"] < broken.stat().st_size


def test_a_page_is_short_and_counts_what_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = _logs(tmp_path, *(range(1 + 12 * n, 13 + 12 * n) for n in range(FILES_SHOWN_MAX + 3)))
    assert run(("binlog", "locate", f"{A}:1-1000", str(logs))) == 1
    said = capsys.readouterr().out
    assert "… and 3 more files" in said
    assert said.count(f"… and {12 - PLACES_SHOWN_MAX} more transactions") == FILES_SHOWN_MAX


def test_wrong_operands_are_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logs = str(_logs(tmp_path, range(1, 3)))
    assert run(("binlog", "locate", "no-set", logs)) == 64
    assert "[HERE]" in capsys.readouterr().err
    assert run(("binlog", "locate", f"{A}:1", str(tmp_path / "none"))) == 64
    assert "no such file" in capsys.readouterr().err
    assert run(("binlog", "locate", f"{A}:1")) == 64
    assert run(("binlog", "locate", f"{A}:1", logs, "mysql://root@127.0.0.1:1/")) == 64
    assert run(("binlog", "locate", f"{A}:1", logs, "--timeout", "-1")) == 64


def test_a_server_that_is_not_there_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("binlog", "locate", f"{A}:1", "mysql://root@127.0.0.1:1/")) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert "Can't connect" in said.err
