"""`history --forget`: what an operator has compared is not remembered any more, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from gtid import Gtid, GtidSet
from gtid_audit.tasks.compared_restarts import DirectoryMemory, Memory
from gtid_audit.tasks.kept_history import KeptHistory
from gtid_audit.tasks.written_run import PARTIAL
from tests.gtid_audit.build import run_cli
from tests.gtid_audit.test_served_memory import ONE, SUSPECT, TWO, known_difference
from tests.snapshots import NOON, A
from topology.adapters.history_file import HistoryFile
from topology.questions.contents_to_compare import Remembered

LOST = GtidSet.parse(f"{A}:7-9")


def remembered() -> Remembered:
    """Return what a memory has: a difference under A:1, another one under A:2, and lost sets."""
    one = known_difference()
    two = replace(one, difference=replace(one.difference, gtid=Gtid.parse(f"{A}:2")))
    differences = {"a": (one, two), "b": (one,)}
    return Remembered({ONE: NOON}, {"a": SUSPECT}, differences, {ONE: LOST, TWO: LOST})


def memories(folder: Path) -> dict[str, Memory]:
    """Return the memory of a directory, and that of a history file."""
    kept = KeptHistory(HistoryFile.at(folder / "history"), of_servers=True)
    return {"directory": DirectoryMemory(folder), "file": kept.memory_of_fleet()}


@pytest.mark.parametrize(("place", "changed"), [(".", "directory"), ("history", "file")])
def test_a_difference_and_a_lost_set_are_forgotten(
    place: str, changed: str, tmp_path: Path
) -> None:
    for memory in memories(tmp_path).values():
        memory.read()
        memory.write(remembered())
    done = run_cli("history", str(tmp_path / place), "--forget", f"{A}:1:8-20")
    assert (done.returncode, done.stdout.splitlines(), done.stderr) == (
        0,
        [
            "forgotten: 2 differences, of a and b",
            f"forgotten, as lost by another server: {A}:8-9, of a and b",
        ],
        "",
    )
    was, left = remembered(), GtidSet.parse(f"{A}:7")
    now = replace(was, differences={"a": was.differences["a"][1:]}, reported={ONE: left, TWO: left})
    for name, memory in memories(tmp_path).items():
        assert memory.read() == (now if name == changed else was), name
    again = run_cli("history", str(tmp_path / place), "--forget", f"{A}:1:8-20")
    assert again.returncode == 1
    assert again.stdout.rstrip().endswith("audits remember nothing of these GTIDs")


def test_selected_clusters_are_forgotten_as_well(tmp_path: Path) -> None:
    """`audit --cluster X --out DIR` has its memory below DIR; there may be no other."""
    partial = tmp_path / PARTIAL
    partial.mkdir()
    for folders, count in (([partial], 2), ([partial, tmp_path], 4)):
        for folder in folders:
            memory = DirectoryMemory(folder)
            memory.read()
            memory.write(remembered())
        done = run_cli("history", str(tmp_path), "--forget", f"{A}:1")
        assert (done.returncode, done.stdout) == (
            0,
            f"forgotten: {count} differences, of a and b\n",
        )


THREE = UUID(int=33)


def of_three() -> Remembered:
    """Return what a memory has of a source and two replicas, which both have what it lost."""
    one = known_difference()
    version = replace(one.difference.replica, server="c")
    other = replace(
        one, difference=replace(one.difference, replica=version), server_uuids=(ONE, THREE)
    )
    return Remembered({}, {}, {"a": (one, other)}, {TWO: LOST, THREE: LOST})


def forgotten(folder: Path, *options: str) -> tuple[int, str, str]:
    done = run_cli("history", str(folder / "history"), "--forget", *options)
    return done.returncode, done.stdout, done.stderr


def test_what_other_servers_have_is_kept(tmp_path: Path) -> None:
    """It ended all of them: of a replica that was cloned, and of one that was not compared."""
    memory = memories(tmp_path)["file"]
    memory.read()
    memory.write(of_three())
    for gtids, listed in (
        (f"{A}:1", f"a ({ONE}), b ({TWO}), c ({THREE})"),
        (f"{A}:7", f"{TWO}, {THREE}"),
    ):
        status, out, error = forgotten(tmp_path, gtids)
        assert (status, out) == (64, "")
        assert f"remembered of several servers: {listed}. Name those" in error
    assert memory.read() == of_three()
    assert forgotten(tmp_path, f"{A}:1", "--server", "a")[0] == 1, "of one there is no difference"
    status, out, _ = forgotten(tmp_path, f"{A}:1", "--server", "a", "--server", str(TWO))
    assert (status, out) == (0, "forgotten: 1 difference, of a and b\n")
    status, out, _ = forgotten(tmp_path, f"{A}:7-9", "--server", str(THREE))
    assert (status, out) == (0, f"forgotten, as lost by another server: {LOST}, of {THREE}\n")
    was = of_three()
    assert memory.read() == replace(
        was, differences={"a": was.differences["a"][1:]}, reported={TWO: LOST}
    )
    status, out, error = forgotten(tmp_path, f"{A}:1", "--server", "d")
    assert (status, out) == (64, "")
    assert f"--server: 'd' is none of the servers: a ({ONE}), c ({THREE})" in error
    done = run_cli("history", str(tmp_path / "history"), "--server", "a")
    assert (done.returncode, "--server is for --forget" in done.stderr) == (64, True)


def test_nothing_is_forgotten_where_nothing_is_remembered(tmp_path: Path) -> None:
    HistoryFile.at(tmp_path / "new")
    done = run_cli("history", str(tmp_path / "new"), "--forget", f"{UUID(int=3)}:1")
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("absent", "--forget", f"{A}:1"), "no such file"),
        ((".", "--forget", f"{A}:1"), "no audit has stored there what it remembers"),
        (("new", "--forget", "soon"), "--forget: "),
        (("new", "--forget", f"{A}:1", "--json"), "--forget has no JSON document"),
        (("damaged", "--forget", f"{A}:1"), "not a history of gtid-audit: not a SQLite file"),
    ],
)
def test_what_is_wrong_is_64_and_changes_nothing(
    arguments: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    HistoryFile.at(tmp_path / "new")
    (tmp_path / "damaged").write_bytes(b"not SQLite" * 100)
    place, *options = arguments
    done = run_cli("history", str(tmp_path / place), *options)
    assert done.returncode == 64
    assert said in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "absent").exists()
