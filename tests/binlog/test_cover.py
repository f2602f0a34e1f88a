"""Whether an archive of logs continues a set: files that are missing, damaged, or of others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlog.errors import TruncatedBinlog
from binlog.locating.cover import ArchivedLog, cover_of
from compose.native.server import Server
from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.views.cover_text import document_of, verdict_of
from tests.hypothesis_profiles import laws
from topology.catalogue.findings import Verdict

UUID = "aaaaaaaa-0000-0000-0000-000000000000"


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(f"{UUID}:{text}") if text else GtidSet()


def log(name: str, previous: str, inside: str) -> ArchivedLog:
    return ArchivedLog(name, gtids(previous), gtids(inside))


ARCHIVE = (log("b.1", "", "1-4"), log("b.2", "1-4", "5-9"), log("b.3", "1-9", "10-12"))


@pytest.mark.parametrize(
    ("start", "kept", "hole", "verdict"),
    [
        ("", (0, 1, 2), "", Verdict.OK),
        ("1-5", (0, 1, 2), "", Verdict.OK),
        ("1-4", (1, 2), "", Verdict.OK),
        ("1-3", (1, 2), "4", Verdict.CRITICAL),
        ("1-4", (0, 2), "5-9", Verdict.CRITICAL),
        ("1-12", (0, 1), "", Verdict.WARNING),  # the last file is missing, and the set has it
        ("1-20", (0, 1, 2), "", Verdict.WARNING),
    ],
)
def test_the_hole_is_what_headers_list_and_no_file_has(
    start: str, kept: tuple[int, ...], hole: str, verdict: Verdict
) -> None:
    found = cover_of(gtids(start), [ARCHIVE[at] for at in kept])
    assert (found.hole, verdict_of(found)) == (gtids(hole), verdict)


def test_only_files_with_something_new_are_needed() -> None:
    assert [each.file for each in cover_of(gtids("1-9"), ARCHIVE).needed] == ["b.3"]


def cut(*, in_use: bool) -> ArchivedLog:
    error = TruncatedBinlog(file="b.4", position=9, what="an event", in_use=in_use)
    return ArchivedLog("b.4", gtids("1-12"), gtids("13"), error=error)


@pytest.mark.parametrize(
    ("bad", "is_unread"),
    [
        (ArchivedLog("b.4", None, GtidSet()), True),
        (ArchivedLog("b.4", gtids("1-12"), GtidSet(), anonymous_count=1), True),
        (cut(in_use=False), True),
        (cut(in_use=True), False),  # its server still writes it
    ],
)
def test_what_could_not_be_read_is_unknown(bad: ArchivedLog, *, is_unread: bool) -> None:
    found = cover_of(GtidSet(), (*ARCHIVE, bad))
    assert (verdict_of(found) is Verdict.UNKNOWN) is is_unread
    assert len(document_of(found)["unread"]) == is_unread


@laws()
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6), st.data())
def test_a_complete_archive_has_no_hole_and_a_removed_file_is_one(
    sizes: list[int], data: st.DataObject
) -> None:
    files, last = [], 0
    for number, size in enumerate(sizes):
        inside = f"{last + 1}-{last + size}" if size else ""
        files.append(log(f"b.{number}", f"1-{last}" if last else "", inside))
        last += size
    start = data.draw(st.integers(0, last))
    have = gtids(f"1-{start}" if start else "")
    assert not cover_of(have, files).hole
    removed = data.draw(st.integers(0, len(files) - 1))
    rest = files[:removed] + files[removed + 1 :]
    behind = any(
        each.previous_gtids and files[removed].gtids <= each.previous_gtids for each in rest
    )
    expected = files[removed].gtids - have if behind else GtidSet()
    assert cover_of(have, rest).hole == expected


def test_an_archive_of_a_real_server(
    mysql97: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mysql97.execute("CREATE DATABASE cover", "CREATE TABLE cover.t (id INT PRIMARY KEY)")
    for number in range(3):
        mysql97.execute("FLUSH BINARY LOGS", f"INSERT INTO cover.t VALUES ({number})")
    mysql97.execute("FLUSH BINARY LOGS")
    names = [str(row[0]) for row in mysql97.query("SHOW BINARY LOGS")]
    for name in names:
        shutil.copy(mysql97.datadir / name, tmp_path / name)
    executed = mysql97.value("@@GLOBAL.gtid_executed")
    purged = mysql97.value("@@GLOBAL.gtid_purged")
    assert run(["binlog", "cover", "--from", purged, str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert GtidSet.parse(found["end"]) == GtidSet.parse(executed)
    # A copy that ends inside a transaction does not have it, although its first event is there.
    cut = tmp_path / names[-2]
    whole = cut.read_bytes()
    for size in range(len(whole) - 60, len(whole) - 320, -40):
        cut.write_bytes(whole[:size])
        assert run(["binlog", "cover", "--from", purged, str(tmp_path), "--json"]) != 0
        assert json.loads(capsys.readouterr().out)["hole_count"] == 1
    removed = names[-2]
    (tmp_path / removed).unlink()
    assert run(["binlog", "cover", "--from", purged, str(tmp_path)]) == 2
    shown = capsys.readouterr().out
    assert shown.startswith(" CRITICAL ")
    assert "1 GTID in none of them" in shown
    newest = tmp_path / names[-1]
    newest.write_bytes(newest.read_bytes()[:60])
    assert run(["binlog", "cover", "--from", executed, str(tmp_path)]) == 3


def test_wrong_usage_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["binlog", "cover", "--from", "x", str(tmp_path)]) == 64
    assert run(["binlog", "cover", "--from", "", str(tmp_path / "none")]) == 64
    assert run(["binlog", "cover", "--from", "", "mysql://root@127.0.0.1:1/"]) == 64
    assert "binlog cover reads files" in capsys.readouterr().err
