"""The history file: what lasts, what ends, what is carried, and what a file must be."""

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark_audit.audits import an_audit, night, with_gtids
from topology.adapters import history_file
from topology.adapters.history_file import (
    Ending,
    HistoryFile,
    UnusableHistory,
    scope_of_cluster,
    scope_of_servers,
)
from topology.catalogue.findings import ClusterAudit
from topology.finding_history import CARRIED_DAYS_MAX


@pytest.fixture
def file(tmp_path: Path) -> HistoryFile:
    return HistoryFile.at(tmp_path / "history.sqlite3")


def keep(
    file: HistoryFile, number: int, codes: Iterable[str] = (), unread: Iterable[str] = ()
) -> list[int]:
    """Record the audit of a night; return the nights since when its findings exist."""
    [dated] = file.record(
        [an_audit("c", at=night(number), codes=codes, unread=unread)], scope_of=scope_of_cluster
    )
    return [(finding.first_seen - night(0)).days for finding in dated.findings]


def spans(file: HistoryFile) -> list[tuple[str, int, int, int | None]]:
    """Return each episode: code, first, last, and the night in which it ended."""
    return sorted(
        (
            each.code,
            (each.first_seen - night(0)).days,
            (each.last_seen - night(0)).days,
            None if each.ended_at is None else (each.ended_at - night(0)).days,
        )
        for each in file.episodes()
    )


def test_a_finding_lasts_ends_and_begins_anew(file: HistoryFile) -> None:
    assert keep(file, 0, ["H1"]) == [0]
    assert keep(file, 1, ["E1", "H1"]) == [1, 0]
    assert keep(file, 2, ["E1"]) == [1]
    assert keep(file, 3, ["E1", "H1"]) == [1, 3]
    assert spans(file) == [("E1", 1, 3, None), ("H1", 0, 1, 2), ("H1", 3, 3, None)]
    assert [each.ending for each in file.episodes() if each.ended_at] == [Ending.NOT_FOUND]


def test_a_set_that_grows_is_the_same_finding(file: HistoryFile) -> None:
    keep(file, 0, ["H1"])
    grown = with_gtids(an_audit("c", at=night(1), codes=["H1"]), "51-99")
    [dated] = file.record([grown], scope_of=scope_of_cluster)
    assert [each.first_seen for each in dated.findings] == [night(0)]


def test_an_unread_cluster_ends_nothing(file: HistoryFile) -> None:
    keep(file, 0, ["H1", "C5"])
    assert keep(file, 1, ["C5"], unread=["channels"]) == [0]
    assert keep(file, 2, ["H1"]) == [0]
    assert spans(file) == [("C5", 0, 1, 2), ("H1", 0, 2, None)]


def test_a_cluster_without_any_reading_changes_nothing(file: HistoryFile) -> None:
    keep(file, 0, ["H1"])
    unread = replace(an_audit("c", at=night(1), unread=["connection"]), read_at=None)
    file.record([unread], scope_of=scope_of_cluster)
    assert spans(file) == [("H1", 0, 0, None)]


def test_what_was_not_seen_for_long_is_ended_and_says_so(file: HistoryFile) -> None:
    keep(file, 0, ["H1"])
    keep(file, CARRIED_DAYS_MAX, unread=["channels"])
    assert spans(file) == [("H1", 0, 0, None)]
    keep(file, CARRIED_DAYS_MAX + 1, unread=["channels"])
    assert spans(file) == [("H1", 0, 0, CARRIED_DAYS_MAX + 1)]
    assert [each.ending for each in file.episodes()] == [Ending.NOT_SEEN]


def test_contents_are_not_disproved_by_an_audit_that_does_not_compare_them(
    file: HistoryFile,
) -> None:
    keep(file, 0, ["E4"])
    keep(file, 1)
    assert keep(file, 2, ["E4"]) == [0]


def test_an_older_audit_or_the_same_again_changes_nothing(file: HistoryFile) -> None:
    keep(file, 1, ["H1"])
    keep(file, 3, ["H1"])
    before = spans(file)
    assert keep(file, 2) == []
    assert keep(file, 3) == []
    assert keep(file, 2, ["H1"]) == [1]
    assert spans(file) == before == [("H1", 1, 3, None)]


def test_audits_of_other_servers_are_another_history(file: HistoryFile) -> None:
    """Every pair is the cluster `pair`, and the finding names the same two servers or one."""

    def of(number: int, *servers: str, codes: Iterable[str] = ()) -> ClusterAudit:
        [dated] = file.record(
            [replace(an_audit("pair", at=night(number), codes=codes), servers=servers)],
            scope_of=scope_of_servers,
        )
        return dated

    of(0, "a", "b", codes=["H1"])
    of(1, "a", "c")
    [found] = of(2, "b", "a", codes=["H1"]).findings
    assert found.first_seen == night(0)
    assert spans(file) == [("H1", 0, 2, None)]


def test_ended_findings_are_forgotten_late_and_backlogs_soon(file: HistoryFile) -> None:
    keep(file, 0, ["H1", "T2"])
    keep(file, 1)
    keep(file, 1 + history_file.ENDED_INFO_DAYS_MAX)
    assert {code for code, *_ in spans(file)} == {"H1", "T2"}
    keep(file, 2 + history_file.ENDED_INFO_DAYS_MAX)
    assert {code for code, *_ in spans(file)} == {"H1"}
    keep(file, 2 + history_file.ENDED_DAYS_MAX)
    assert spans(file) == []


def test_results_that_know_an_older_beginning_are_believed(file: HistoryFile) -> None:
    """`--out` passes findings whose history is in Parquet, also of an episode that ended here."""
    keep(file, 5, ["H1"])
    keep(file, 6)
    audit = an_audit("c", at=night(7), codes=["H1"])
    lasting = replace(
        audit, findings=tuple(replace(each, first_seen=night(5)) for each in audit.findings)
    )
    file.record([lasting], scope_of=scope_of_cluster)
    assert spans(file) == [("H1", 5, 7, None)]


def test_only_its_owner_can_read_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        file = HistoryFile.at(tmp_path / "h")
        keep(file, 0, ["H1"])
    finally:
        os.umask(before)
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert [each.name for each in tmp_path.iterdir()] == ["h"], "one file, without a journal"


def test_the_file_has_no_texts_of_servers(file: HistoryFile) -> None:
    """Evidence and explanations quote error texts, which can hold what a statement held."""
    keep(file, 0, ["H1"])
    content = file.path.read_bytes()
    assert b"auto_position" not in content
    assert b"lacks these" not in content


def test_two_audits_at_once_are_both_recorded(file: HistoryFile) -> None:
    failures: list[BaseException] = []

    def work(cluster: str) -> None:
        try:
            for number in range(10):
                other = HistoryFile.at(file.path)
                audit = an_audit(cluster, at=night(number), codes=["H1"])
                [dated] = other.record([audit], scope_of=scope_of_cluster)
                assert dated.findings[0].first_seen == night(0)
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=work, args=(f"c{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert spans(file) == [("H1", 0, 9, None)] * 4


WRITER = """
import sys
from pathlib import Path
from tests.spark_audit.audits import an_audit, night
from topology.adapters.history_file import HistoryFile, scope_of_cluster
sys.stdin.readline()
for number in range(20):
    file = HistoryFile.at(Path(sys.argv[1]))
    for cluster in ("shared", sys.argv[2]):
        audit = an_audit(cluster, at=night(number), codes=["H1"])
        file.record([audit], scope_of=scope_of_cluster)
"""


@pytest.mark.long
def test_processes_that_begin_at_once_share_a_file(tmp_path: Path) -> None:
    """They also create it together. Audits of one cluster at one moment count once."""
    path = tmp_path / "h"
    with ExitStack() as running:
        writers = [
            running.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", WRITER, str(path), name],
                    stdin=subprocess.PIPE,
                    cwd=Path(__file__).parents[2],
                )
            )
            for name in ("a", "b", "c")
        ]
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(b"go\n")
            writer.stdin.flush()
    assert [writer.returncode for writer in writers] == [0, 0, 0]
    assert spans(HistoryFile(path)) == [("H1", 0, 19, None)] * 4


@pytest.mark.long
def test_a_process_that_is_killed_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "h"
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), "a"],
            stdin=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        ) as writer:
            assert writer.stdin is not None
            writer.stdin.write(b"go\n")
            writer.stdin.flush()
            before = path.stat().st_mtime_ns if path.exists() else 0
            while not path.exists() or path.stat().st_mtime_ns == before:
                assert writer.poll() is None, "it wrote before it ended"
            writer.kill()
        for code, first, last, ended in spans(HistoryFile.at(path)):
            assert (code, first, ended) == ("H1", 0, None)
            assert 0 <= last < 20


# Pages that do not fit into a cache of one are written, after the journal that takes them back.
KILLED = """
import os, sqlite3, sys
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("PRAGMA cache_size = 1")
database.execute("BEGIN IMMEDIATE")
for number in range(2000):
    database.execute("INSERT INTO audited VALUES (?, ?)", (f"scope {number}", "x" * 200))
os._exit(9)
"""


def test_a_reader_takes_back_what_a_killed_writer_left(file: HistoryFile) -> None:
    keep(file, 0, ["H1"])
    killed = subprocess.run([sys.executable, "-c", KILLED, str(file.path)], check=False)
    assert killed.returncode == 9
    journal = file.path.with_name(f"{file.path.name}-journal")
    assert journal.stat().st_size > 0, "it was killed after it had begun to write"
    assert spans(file) == [("H1", 0, 0, None)]
    assert not journal.exists()
    with closing(sqlite3.connect(file.path)) as database:
        assert database.execute("SELECT COUNT(*) FROM audited").fetchone() == (1,)


def test_a_locked_file_is_an_error_after_the_limit(
    file: HistoryFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_file, "LOCK_SECONDS_MAX", 0.1)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnusableHistory, match="another process has locked"):
            keep(file, 0, ["H1"])
    assert spans(file) == []


def test_an_empty_file_becomes_a_history(tmp_path: Path) -> None:
    """A process may end between creating the file and its tables."""
    (tmp_path / "h").touch()
    keep(HistoryFile.at(tmp_path / "h"), 0, ["H1"])
    assert spans(HistoryFile(tmp_path / "h")) == [("H1", 0, 0, None)]


def _text(path: Path) -> None:
    path.write_text("first_seen: yesterday\n" * 100)


def _other_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")


def _statement(text: str, *values: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        keep(HistoryFile.at(path), 0, ["H1", "E1"])
        with closing(sqlite3.connect(path)) as other, other:
            other.execute(text, values)

    return change


def _overwritten(path: Path) -> None:
    keep(HistoryFile.at(path), 0, ["H1", "E1"])
    content = bytearray(path.read_bytes())
    content[4096:12288] = b"\xff" * 8192
    path.write_bytes(content)


def _cut(path: Path) -> None:
    keep(HistoryFile.at(path), 0, ["H1", "E1"])
    path.write_bytes(path.read_bytes()[:6000])


UNUSABLE: dict[str, tuple[Callable[[Path], None], str]] = {
    "text": (_text, "not a SQLite file"),
    "another program's": (_other_program, "not a history of gtid-audit"),
    "a later version's": (_statement("PRAGMA user_version = 2"), "a history of version 2"),
    "damaged pages": (_overwritten, "damaged"),
    "cut": (_cut, "damaged"),
    "an odd time": (_statement("UPDATE episode SET first_seen = 'soon'"), "found 'soon'"),
    "an odd severity": (_statement("UPDATE episode SET severity = ?", b"\x00"), "is damaged"),
}


@pytest.mark.parametrize("kind", UNUSABLE)
def test_an_unusable_file_is_refused_and_not_changed(kind: str, tmp_path: Path) -> None:
    make, said = UNUSABLE[kind]
    path = tmp_path / "h"
    make(path)
    before = path.read_bytes()
    with pytest.raises(UnusableHistory, match=said) as refused:
        keep(HistoryFile.at(path), 1, ["H1"])
    assert str(path) in str(refused.value)
    with pytest.raises(UnusableHistory, match=said):
        HistoryFile(path).episodes()
    assert path.read_bytes() == before


def test_a_directory_and_a_missing_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UnusableHistory, match="cannot be read or written"):
        HistoryFile.at(tmp_path)
    with pytest.raises(UnusableHistory, match="No such file or directory"):
        HistoryFile.at(tmp_path / "absent" / "h")
    with pytest.raises(UnusableHistory, match="no such file"):
        HistoryFile(tmp_path / "h").episodes()
    assert list(tmp_path.iterdir()) == [], "a listing creates nothing"
    (tmp_path / "empty").touch()
    with pytest.raises(UnusableHistory, match="the file is empty: no audit has recorded anything"):
        HistoryFile(tmp_path / "empty").episodes()
