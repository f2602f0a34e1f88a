"""Whether an archive of logs continues a set: files that are missing, damaged, or of others."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlog.errors import TruncatedBinlog
from binlog.event_types import EventType
from binlog.header import FLAG_IN_USE
from binlog.locating.cover import ArchivedLog, cover_of
from binlog.locating.histories import LogOrigin, RepeatedGtids
from compose.faults import commit
from compose.faults_content import restart_with
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit.cli import run
from gtid_audit.views.cover_text import document_of, show_cover, verdict_of
from tests.binlog.builders import UUID_A, Log
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


@pytest.mark.parametrize(
    ("start", "between", "verdict"),
    [("1-4", "5-6", Verdict.WARNING), ("1-6", "", Verdict.WARNING), ("1-5", "6", Verdict.WARNING)],
)
def test_numbers_that_are_nowhere_are_named(start: str, between: str, verdict: Verdict) -> None:
    """The server executed 5-6 while it ran without its binary log: no header lists them."""
    files = (log("b.1", "", "1-4"), log("b.2", "1-4", "7-9"))
    found = cover_of(gtids(start), files)
    assert (found.between, found.hole, verdict_of(found)) == (gtids(between), GtidSet(), verdict)
    assert document_of(found)["between"] == str(gtids(between))
    received = [replace(each, origin=LogOrigin(is_relay_log=True)) for each in files]
    assert cover_of(gtids(start), received).between == GtidSet()


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


LATER = log("b.5", "1-13", "14")
OTHER_SERVER = replace(log("c.5", "", "1-14"), origin=LogOrigin(server_id=9))
OPEN = replace(log("b.4", "1-12", "13"), ends_in_transaction=True)
RELAY = LogOrigin(is_relay_log=True)


@pytest.mark.parametrize(
    ("files", "unread"),
    [
        ((*ARCHIVE, cut(in_use=True), LATER), ["b.4"]),
        ((LATER, cut(in_use=True), *ARCHIVE), ["b.4"]),  # the order of the logs, not of the paths
        ((*ARCHIVE, cut(in_use=True), OTHER_SERVER), []),
        ((*ARCHIVE, OPEN), []),
        ((*ARCHIVE, OPEN, LATER), ["b.4"]),
        ([replace(each, origin=RELAY) for each in (*ARCHIVE, OPEN, LATER)], []),
        # Each channel has a newest relay log.
        (
            [
                replace(each, origin=RELAY, file=f"relay-{channel}.{at:06}")
                for channel in ("one", "two")
                for at, each in enumerate((*ARCHIVE, cut(in_use=True)), start=1)
            ],
            [],
        ),
    ],
)
def test_only_the_newest_file_may_be_cut(files: Sequence[ArchivedLog], unread: list[str]) -> None:
    """A server closes a file before it makes the next one: that copy is not the whole file."""
    found = cover_of(GtidSet(), files)
    assert [each.file for each in found.unread] == unread
    assert not unread or verdict_of(found) is Verdict.UNKNOWN


def test_a_cut_file_that_was_copied_again() -> None:
    files = (*ARCHIVE, cut(in_use=True), log("b.4", "1-12", "13-15"), log("b.5", "1-15", "16"))
    assert cover_of(GtidSet(), files, [RepeatedGtids((3, 4), gtids("13"), GtidSet())]).unread == ()
    assert (
        len(cover_of(GtidSet(), files, [RepeatedGtids((3, 4), GtidSet(), GtidSet())]).unread) == 1
    )


def test_a_cut_file_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    found = cover_of(GtidSet(), (*ARCHIVE, OPEN, LATER))
    show_cover(found)
    assert "b.4: it ends inside a transaction" in capsys.readouterr().out
    [unread] = document_of(found)["unread"]
    assert (unread["ends_in_transaction"], unread["error"]) == (True, None)


@pytest.mark.parametrize("flags", [0, FLAG_IN_USE])
def test_the_exit_status_of_a_cut_file(
    flags: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What `--help` says of status 3, for each end that a copy may have."""
    whole = []
    for number, previous in enumerate(("", "1-2", "1-4"), start=1):
        made = Log(flags=flags if number == 3 else 0)
        made.add(EventType.PREVIOUS_GTIDS, encode(gtids_of_files(previous)))
        made.gtid(2 * number - 1)
        made.query("BEGIN")
        made.xid()
        made.gtid(2 * number)
        at = len(made.data)
        made.query("BEGIN")
        made.xid()
        whole.append((bytes(made), at))
    paths = [tmp_path / f"b.{number:06}" for number in (1, 2, 3)]
    for cut_file in (0, 1, 2):
        for extra in (0, 5):  # behind an event, and inside one
            for at, (path, (content, end)) in enumerate(zip(paths, whole, strict=True)):
                path.write_bytes(content[: end + extra] if at == cut_file else content)
            is_good = cut_file == 2 and (not extra or flags)
            expected = 0 if is_good else 3
            assert run(["binlog", "cover", "--from", "", str(tmp_path), "--json"]) == expected
            found = json.loads(capsys.readouterr().out)
            end_expected = "1-5" if cut_file == 2 else "1-6"
            assert GtidSet.parse(found["end"]) == gtids_of_files(end_expected)


def gtids_of_files(text: str) -> GtidSet:
    return GtidSet.parse(text and f"{UUID_A}:{text}")


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


def archived(server: Server, folder: Path, *, first: str = "") -> list[str]:
    """Copy the logs of a server, from a name on; return their names."""
    server.execute("FLUSH BINARY LOGS")
    names = [str(row[0]) for row in server.query("SHOW BINARY LOGS") if str(row[0]) >= first]
    for name in names:
        shutil.copy(server.datadir / name, folder / name)
    return names


def inserted(server: Server, *numbers: int) -> None:
    for number in numbers:
        server.execute(f"INSERT INTO cover.t VALUES ({number})")


@pytest.mark.mysql
@pytest.mark.parametrize("version", ["97", "56"])
def test_a_reset_does_not_fill_a_hole(
    version: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The server used the GTIDs of a missing file again: they are other transactions."""
    installation = request.getfixturevalue(f"installation{version}")
    with shapes.single(installation) as server:
        server.execute("CREATE DATABASE cover", "CREATE TABLE cover.t (id INT PRIMARY KEY)")
        inserted(server, 1)
        start = server.value("@@GLOBAL.gtid_executed")
        names = []
        for number in (2, 3):
            server.execute("FLUSH BINARY LOGS")
            inserted(server, number)
        names = archived(server, tmp_path)
        time.sleep(1.1)  # a file has the second in which it was made
        if version == "97":
            server.execute("RESET BINARY LOGS AND GTIDS TO 20")
        else:
            server.execute("RESET MASTER")
        inserted(server, *range(10, 20))
        later = tmp_path / "later"
        later.mkdir()
        archived(server, later)
        paths = [str(tmp_path), str(later)]
        capsys.readouterr()
        assert run(["binlog", "cover", "--from", start, *paths, "--json"]) == 3
        [new] = json.loads(capsys.readouterr().out)["new_histories"]
        assert (new["before"], new["is_proved"]) == (names[-1], True)
        (tmp_path / names[1]).unlink()
        assert run(["binlog", "cover", "--from", start, *paths]) == 2
        assert "GTIDs begin anew after" in capsys.readouterr().out
        # RESET, and gtid_purged as before: one history.
        purged = server.value("@@GLOBAL.gtid_executed")
        server.execute("RESET BINARY LOGS AND GTIDS TO 30" if version == "97" else "RESET MASTER")
        server.execute(f"SET GLOBAL gtid_purged = '{purged}'")
        inserted(server, 30)
        restored = tmp_path / "restored"
        restored.mkdir()
        archived(server, restored)
        capsys.readouterr()
        assert run(["binlog", "cover", "--from", "", str(later), str(restored)]) == 0


def test_damage_inside_a_transaction_is_found(
    installation97: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with shapes.single(installation97) as server:
        server.execute("CREATE DATABASE cover", "CREATE TABLE cover.t (id INT PRIMARY KEY)")
        inserted(server, 0x61626364)
        name = archived(server, tmp_path)[0]
        log = tmp_path / name
        whole = log.read_bytes()
        at = whole.rindex(b"dcba")
        for damaged in (b"ccba", bytes(4)):
            log.write_bytes(whole[:at] + damaged + whole[at + 4 :])
            assert run(["binlog", "cover", "--from", "", str(tmp_path)]) == 3
            assert "expected checksum" in " ".join(capsys.readouterr().out.split())
        log.write_bytes(whole)
        assert run(["binlog", "cover", "--from", "", str(tmp_path)]) == 0
        assert "checksums" not in capsys.readouterr().out
        server.execute("SET GLOBAL binlog_checksum = NONE")
        inserted(server, 2)
        names = archived(server, tmp_path)
        assert run(["binlog", "cover", "--from", "", str(tmp_path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["unchecked"] == names[2:3]
        assert run(["binlog", "cover", "--from", "", str(tmp_path)]) == 0
        assert "1 file without checksums" in capsys.readouterr().out


@pytest.mark.mysql
def test_what_was_executed_without_a_binary_log_is_not_covered(
    pair97: shapes.Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The benign twin, numbers that no transaction has, looks the same: the answer names both."""
    a, b = pair97.a, pair97.b
    commit(a, "CREATE DATABASE cover", "CREATE TABLE cover.t (id INT PRIMARY KEY)")
    pair97.settle()
    kept = b.settings
    restart_with(b, "--skip-log-bin")
    unlogged = commit(a, "INSERT INTO cover.t VALUES (1)", "INSERT INTO cover.t VALUES (2)")
    pair97.settle()
    b.settings = kept
    b.restart()
    commit(a, "INSERT INTO cover.t VALUES (3)")
    pair97.settle()
    archived(b, tmp_path)
    assert run(["binlog", "cover", "--from", "", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["between"], found["hole"]) == (unlogged, "")
    # A session jumps a number: no transaction has the one below.
    tsid, _, last = str(a.value("@@GLOBAL.gtid_executed")).rpartition("-")
    uuid = tsid.rpartition(":")[0]
    jumped = f"{uuid}:{int(last) + 2}"
    a.execute(f"SET SESSION gtid_next = '{jumped}'", "INSERT INTO cover.t VALUES (4)")
    other = tmp_path / "a"
    other.mkdir()
    archived(a, other)
    assert run(["binlog", "cover", "--from", "", str(other), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["between"] == f"{uuid}:{int(last) + 1}"
