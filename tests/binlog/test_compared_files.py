"""Archives that have holes, damage or two histories, as one side of a comparison."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from binlog.adapters.compare_all import compare_all
from binlog.adapters.compare_files import FilesCompared
from binlog.content.compare import Agreement
from binlog.content.reuse import Compared, compare_after_starts, compare_given
from binlog.event_types import EventType
from compose.native import shapes
from compose.native.provision import copy_data_directory
from compose.native.server import Server
from compose.native.shapes import wait_for
from gtid import GtidSet
from gtid.binary import encode
from tests.binlog.builders import NOON_SECONDS, UUID_A, Log

FILES = 6
WHOLE = GtidSet.parse(f"{UUID_A}:1-{2 * FILES}")


def gtids(*numbers: int) -> GtidSet:
    return GtidSet.parse(",".join(f"{UUID_A}:{number}" for number in numbers))


def write(path: Path, previous: GtidSet, statements: dict[int, str], *, created: int = 0) -> None:
    log = Log(created=created)
    log.add(EventType.PREVIOUS_GTIDS, encode(previous))
    for gno, sql in statements.items():
        log.gtid(gno)
        log.query(sql)
    path.write_bytes(bytes(log))


def archive(folder: Path, **other: str) -> list[Path]:
    """Return files of two transactions each; `other` has the statements that differ, as `g5`."""
    folder.mkdir()
    paths = [folder / f"binlog.{number:06}" for number in range(1, FILES + 1)]
    for at, path in enumerate(paths):
        own = (2 * at + 1, 2 * at + 2)
        previous = GtidSet.parse(f"{UUID_A}:1-{2 * at}") if at else GtidSet()
        write(path, previous, {n: other.get(f"g{n}", f"CREATE TABLE t{n} (a INT)") for n in own})
    return paths


def both_ways(left: list[Path], right: list[Path]) -> list[Compared]:
    """Compare everything, and all GTIDs by number."""
    sides = FilesCompared("left", left), FilesCompared("right", right)
    return [compare_all(*sides), compare_given(*sides, wanted=WHOLE)]


@pytest.mark.parametrize("kept", [0, 3, 60, -3])
def test_a_file_that_was_cut_is_damage_unless_it_is_the_last(tmp_path: Path, kept: int) -> None:
    """As it was: the file was left out, and all others were the same."""
    whole, cut = archive(tmp_path / "a"), archive(tmp_path / "b", g5="DROP TABLE t5")
    cut[2].write_bytes(cut[2].read_bytes()[: kept or None] if kept else b"")
    for found in both_ways(whole, cut):
        assert [each.log for each in found.unread if not each.is_lasting] == ["right"]
        assert "binlog.000003" in found.unread[0].reason
    whole[-1].write_bytes(whole[-1].read_bytes()[:-3])  # the server was writing it
    for found in both_ways(whole, archive(tmp_path / "c")):
        [last] = found.comparisons
        assert (str(last.gtid)[-2:], last.agreement) == ("12", Agreement.UNKNOWN)
        assert (last.reason.count("its end is missing"), found.unread) == (1, ())


def test_a_file_that_is_missing_is_reported(tmp_path: Path) -> None:
    whole, other = archive(tmp_path / "a"), archive(tmp_path / "b", g5="DROP TABLE t5")
    del other[2]
    for found in both_ways(whole, other):
        assert found.gtids == WHOLE - gtids(5, 6)
        assert found.comparisons == ()
        assert any(f"2 GTIDs, {UUID_A}:5-6" in each.reason for each in found.unread)


@pytest.mark.parametrize("files_before", [1, 2, 4, 5])
def test_two_transactions_under_one_gtid_are_never_the_same(
    tmp_path: Path, files_before: int
) -> None:
    """Of a server that lost 9-10, or that was reset; whatever the number of files before."""
    old = archive(tmp_path / "old", g9="DROP TABLE t9")[:-1]
    later = tmp_path / "old" / "binlog.000007"
    write(later, GtidSet.parse(f"{UUID_A}:1-8"), {9: "CREATE TABLE t9 (a INT)", 10: "DROP TABLE u"})
    last = tmp_path / "old" / "binlog.000008"
    write(last, GtidSet.parse(f"{UUID_A}:1-10"), {11: "CREATE TABLE t11 (a INT)"})
    of_server = [*old[-files_before:], later, last]
    replica = archive(tmp_path / "b", g9="DROP TABLE t9")
    for found in both_ways(of_server, replica):
        assert {str(each.gtid)[-2:] for each in found.comparisons} == {":9", "10"}
        agreements = {str(each.gtid)[-2:]: each.agreement for each in found.comparisons}
        assert agreements["10"] in (Agreement.DIFFERENT, Agreement.UNKNOWN)


def test_files_of_two_histories_are_never_ok(tmp_path: Path) -> None:
    """The files with the reused numbers are not among them: the others are all the same."""
    of_server, replica = archive(tmp_path / "old"), archive(tmp_path / "b")
    write(of_server[-1], gtids(*range(1, 7)), {})
    for found in (
        compare_all(FilesCompared("left", of_server), FilesCompared("right", replica)),
        compare_after_starts(FilesCompared("left", of_server), FilesCompared("right", replica)),
    ):
        [doubt] = [each for each in found.unread if not each.is_lasting]
        assert doubt.reason.startswith("binlog.000006 does not list")
        assert found.comparisons == ()


@pytest.mark.parametrize("files_before", [1, 2, 4, 5])
def test_after_a_reset_every_file_is_searched(tmp_path: Path, files_before: int) -> None:
    old = archive(tmp_path / "old")[:files_before]
    for number, previous in ((7, GtidSet()), (8, gtids(1))):
        write(
            tmp_path / "old" / f"binlog.{number:06}",
            previous,
            {number - 6: f"DROP TABLE t{number}"},
        )
    of_server = [*old, *(tmp_path / "old" / f"binlog.{number:06}" for number in (7, 8))]
    replica = archive(tmp_path / "b")
    for found in both_ways(of_server, replica):
        # One file before the reset has an empty header, too: nothing shows that there was a reset.
        expected = Agreement.UNKNOWN if files_before > 1 else Agreement.DIFFERENT
        assert [each.agreement for each in found.comparisons] == [expected] * 2
        for each in found.comparisons:
            assert ("have two transactions under this GTID" in each.reason) is (files_before > 1)


@pytest.mark.parametrize("is_received_again", [True, False])
def test_what_a_server_lost_and_used_again_is_two_transactions(
    tmp_path: Path, is_received_again: bool
) -> None:
    """The copy of binlog.000005 ends with 10. The server lost it, and no header lists less."""
    of_server, replica = archive(tmp_path / "old", g10="DROP TABLE t10"), archive(tmp_path / "b")
    again = "DROP TABLE t10" if is_received_again else "CREATE TABLE t10 (a INT)"
    statements = {10: again, 11: "CREATE TABLE t11 (a INT)"}
    write(of_server[5], gtids(*range(1, 10)), statements, created=NOON_SECONDS)
    for compare in (compare_all, compare_after_starts):
        found = compare(FilesCompared("left", of_server), FilesCompared("right", replica))
        doubts = [each.reason for each in found.unread if not each.is_lasting]
        if is_received_again:
            assert doubts == []
        else:
            [doubt] = doubts
            assert doubt.startswith("binlog.000005 and binlog.000006 have two different")
            assert f"with the GTID {UUID_A}:10:" in doubt


@pytest.mark.parametrize("installation", ["installation97", "installation56"])
def test_archives_of_a_real_server_and_their_malign_twins(
    installation: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Rotations, a restart, a crash and gtid_purged look like holes and new histories, or not."""
    whole, reset = tmp_path / "whole", tmp_path / "reset"
    whole.mkdir()
    with shapes.single(request.getfixturevalue(installation)) as server:
        server.execute("SET GLOBAL gtid_purged = 'eeeeeeee-0000-0000-0000-000000000000:1-5'")
        server.execute("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        for number, then in enumerate(
            ("FLUSH LOGS", "restart", "crash", "FLUSH LOGS", "FLUSH LOGS")
        ):
            server.execute(f"INSERT INTO d.t VALUES ({number})")
            if then == "FLUSH LOGS":
                server.execute(then)
            elif then == "restart":
                server.restart()
            else:
                server.kill()
                server.start()
        executed = GtidSet.parse(server.value("@@GLOBAL.gtid_executed"))
        for path in sorted(server.datadir.glob("binlog.0*")):
            shutil.copy(path, whole)
        shutil.copytree(whole, reset)
        server.execute(
            server.dialect.words.reset_binary_logs_and_gtids, "CREATE DATABASE other", "FLUSH LOGS"
        )
        for path in sorted(server.datadir.glob("binlog.0*")):
            number = int(path.suffix[1:]) + 100  # it numbers anew, too
            shutil.copy(path, reset / f"binlog.{number:06}")
    files = sorted(whole.iterdir())
    own = executed - GtidSet.parse("eeeeeeee-0000-0000-0000-000000000000:1-5")

    def compared(paths: list[Path]) -> Compared:
        found = compare_all(FilesCompared("archive", paths), FilesCompared("whole", files))
        assert found.comparisons == () or paths[-1].parent == reset
        return found

    healthy = compared(files)
    assert healthy.gtids == own
    assert all(each.is_lasting for each in healthy.unread), healthy.unread
    without = compared([*files[:2], *files[3:]])
    assert without.gtids < own
    assert any((own - without.gtids).shortened() in each.reason for each in without.unread)
    cut = tmp_path / files[2].name
    cut.write_bytes(files[2].read_bytes()[:-40])
    damaged = compared([*files[:2], cut, *files[3:]])
    assert any(cut.name in each.reason and not each.is_lasting for each in damaged.unread)
    again = compared(sorted(reset.iterdir()))
    assert any("GTIDs begin anew there" in each.reason for each in again.unread)
    assert [each.agreement for each in again.comparisons] == [Agreement.UNKNOWN]


@pytest.mark.parametrize("installation", ["installation97", "installation56"])
@pytest.mark.parametrize("is_received_again", [True, False])
def test_an_archive_has_what_its_server_lost_in_a_crash(
    installation: str, is_received_again: bool, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A replica receives again what it lost; a source commits other work under the same GTIDs."""
    with shapes.star(request.getfixturevalue(installation)) as star:
        source, other = star["source"], star["replica2"]
        server = star["replica1"] if is_received_again else source
        source.execute(
            "CREATE DATABASE d", "CREATE TABLE d.t (a INT)", "INSERT INTO d.t VALUES (1)"
        )
        star.settle()
        server.freeze()
        copy_data_directory(server.datadir, server.folder / "before")
        server.thaw()
        source.execute("INSERT INTO d.t VALUES (2)")
        star.settle()
        archive_logs(server, tmp_path / "archive")
        server.kill()
        shutil.rmtree(server.datadir)
        (server.folder / "before").rename(server.datadir)
        server.start()
        if not is_received_again:
            source.execute("INSERT INTO d.t VALUES (99)")
        wait_for(server, other.value("@@GLOBAL.gtid_executed"))
        archive_logs(server, tmp_path / "archive")
        archive_logs(other, tmp_path / "other")
    both = (
        FilesCompared("server", sorted((tmp_path / "archive").iterdir())),
        FilesCompared("other", sorted((tmp_path / "other").iterdir())),
    )
    for found in (compare_all(*both), compare_after_starts(*both)):
        doubts = [each.reason for each in found.unread if not each.is_lasting]
        if is_received_again:
            assert (doubts, found.comparisons) == ([], ())
        else:
            assert "have two different transactions with the GTID" in doubts[0]


def archive_logs(server: Server, folder: Path) -> None:
    """Copy each log that is new or longer than its copy."""
    folder.mkdir(exist_ok=True)
    for path in sorted(server.datadir.glob("binlog.0*")):
        copied = folder / path.name
        if not copied.exists() or copied.stat().st_size < path.stat().st_size:
            shutil.copy(path, copied)
