"""A directory of pasted output: one reading or two, and every file that cannot be used is an error."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.topology.pasted_texts import A, B, pair, status, vertical, whole
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.offline import pasted_files
from topology.adapters.offline.pasted_files import read_pasted
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Grade, Verdict
from topology.readings.read_once import read_once_in
from topology.readings.snapshot import ClusterSnapshot

LATER = "12:05:00"


def saved(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    for name, text in files.items():
        content = text if isinstance(text, bytes) else text.encode()
        (folder / name).write_bytes(content)
    return folder


def readings(folder: Path, files: Mapping[str, str | bytes]) -> ClusterSnapshot:
    return read_pasted(saved(folder, files), cluster="offline")


def audited(folder: Path, files: Mapping[str, str | bytes]) -> ClusterAudit:
    return audit_cluster(readings(folder, files))


def problems(folder: Path, files: Mapping[str, str | bytes]) -> list[str]:
    with pytest.raises(InventoryProblem) as found:
        read_pasted(saved(folder, files), cluster="offline")
    return [each.replace(f"{folder}/", "") for each in found.value.problems]


def once(**changed: str) -> dict[str, str]:
    return {f"{name}.txt": text for name, text in pair(**changed).items()}


def twice(**changed: str) -> dict[str, str]:
    first = {f"{name}.first.txt": text for name, text in pair(**changed).items()}
    return first | {f"{name}.second.txt": text for name, text in pair(at=LATER, **changed).items()}


# -- readings -------------------------------------------------------------------------------------


def test_one_reading_of_each_server(tmp_path: Path) -> None:
    snapshot = readings(tmp_path, once())
    assert [server.name for server in snapshot.last] == ["db1", "db2"]
    assert read_once_in(snapshot) == ("db1", "db2")
    audit = audit_cluster(snapshot)
    assert (audit.verdict, audit.findings, audit.unknown) == (Verdict.OK, (), ())


def test_two_readings_of_each_server(tmp_path: Path) -> None:
    snapshot = readings(tmp_path, twice())
    assert read_once_in(snapshot) == ()
    assert [server.phase for server in snapshot.last] == [2, 2]
    assert snapshot.read_ended == datetime(2026, 1, 2, 12, 5, tzinfo=UTC)
    assert audit_cluster(snapshot).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("db1", "db1"),
        ("db1.log", "db1"),
        ("10.0.0.1.txt", "10.0.0.1"),
        ("10.0.0.1", "10.0.0.1"),
        ("db-1.first", "db-1"),
        ("db1.example.first.out", "db1.example"),
    ],
)
def test_names_of_files(tmp_path: Path, name: str, server: str) -> None:
    snapshot = readings(tmp_path, {name: whole(A, name="db1", server_id=1)})
    assert [each.name for each in snapshot.first] == [server]


def test_files_of_windows_and_with_a_mark_of_their_encoding(tmp_path: Path) -> None:
    texts = {name: text.replace("\n", "\r\n") for name, text in once().items()}
    one, other = sorted(texts)
    content = {one: texts[one].encode("utf-16"), other: b"\xef\xbb\xbf" + texts[other].encode()}
    assert audited(tmp_path, content).verdict is Verdict.OK


def test_hidden_files_are_skipped(tmp_path: Path) -> None:
    assert audited(tmp_path, {**once(), ".DS_Store": b"\0"}).verdict is Verdict.OK


def test_a_difference_that_timing_explains_is_no_fault_of_one_reading(tmp_path: Path) -> None:
    """db2 was read five minutes later: it has what db1 has committed since."""
    files = {
        "db1.txt": whole(A, name="db1", server_id=1),
        "db2.txt": whole(
            B,
            name="db2",
            server_id=2,
            executed=f"{A}:1-12",
            channels=[status(Retrieved_Gtid_Set=f"{A}:1-12", Executed_Gtid_Set=f"{A}:1-12")],
            at=LATER,
        ),
    }
    audit = audited(tmp_path, files)
    [found] = audit.findings
    assert (found.code, found.grade) == ("T4", Grade.LIKELY)
    assert (audit.verdict, [each.server for each in audit.unknown]) == (Verdict.UNKNOWN, ["db1"])
    # A second reading of db1 alone decides it, after that of db2.
    (tmp_path / "db1.txt").rename(tmp_path / "db1.first.txt")
    later = {
        "db1.second.txt": whole(A, name="db1", server_id=1, executed=f"{A}:1-20", at="12:06:00")
    }
    audit = audited(tmp_path, later)
    assert (audit.verdict, audit.findings) == (Verdict.OK, ())
    lost = {"db1.second.txt": whole(A, name="db1", server_id=1, executed=f"{A}:1-9", at="12:06:00")}
    audit = audited(tmp_path, lost)
    assert "E3" in {each.code for each in audit.findings}
    assert audit.verdict is Verdict.CRITICAL


def test_what_is_missing_makes_the_verdict_unknown(tmp_path: Path) -> None:
    files = once()
    cut = files["db2.txt"].index(vertical({"statement": "channels"}))
    audit = audited(tmp_path, {**files, "db2.txt": files["db2.txt"][:cut]})
    assert audit.verdict is Verdict.UNKNOWN
    facts = {each.fact: each.reason for each in audit.unknown if each.server == "db2"}
    assert facts["channels"] == "not in the file: run SHOW REPLICA STATUS"


# -- problems -------------------------------------------------------------------------------------


def test_a_directory_without_files(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, {})
    assert "no files; expected one for each server" in problem
    with pytest.raises(InventoryProblem, match="No such file"):
        read_pasted(tmp_path / "nowhere", cluster="offline")
    with pytest.raises(InventoryProblem, match="Not a directory"):
        read_pasted(saved(tmp_path, {"file": "x"}) / "file", cluster="offline")


def test_files_that_are_not_understood_are_all_named(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        **once(),
        "notes.txt": "call Ann\n",
        "core": b"\x7fELF\0\1",
        "empty.txt": "",
    }
    found = problems(tmp_path, files)
    assert [each.partition(":")[0] for each in found] == ["core", "empty.txt", "notes.txt"]
    assert all("nothing in it was recognised" in each for each in found)


def test_a_directory_in_the_directory_is_no_server(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    assert problems(tmp_path, once()) == ["more: not a file"]


def test_a_malformed_set_has_file_and_line(tmp_path: Path) -> None:
    files = once(Retrieved_Gtid_Set="1-9")
    [problem] = problems(tmp_path, files)
    file, line, reason = problem.split(":", 2)
    lines = files["db2.txt"].splitlines()
    assert (file, lines[int(line)].split()[0]) == ("db2.txt", "Replica_IO_State:")
    assert reason.startswith(" channels: expected a UUID")


def test_two_files_of_one_server(tmp_path: Path) -> None:
    text = whole(A, name="db1", server_id=1)
    [problem] = problems(tmp_path, {"db1.txt": text, "db3.txt": text})
    assert problem.startswith(f"db3.txt: server_uuid {A} is also in ")
    [problem] = problems(tmp_path / ".", {"db1.log": text})[:1]
    assert problem.startswith("db1.txt: ")
    assert problem.endswith("is also the output of db1")


def test_a_copied_auto_cnf_is_no_second_file_of_one_server(tmp_path: Path) -> None:
    files = {f"{name}.txt": whole(A, name=name, server_id=1) for name in ("db1", "db3")}
    assert "C1" in {each.code for each in audited(tmp_path, files).findings}


def test_readings_that_do_not_belong_together(tmp_path: Path) -> None:
    files = twice()
    del files["db1.first.txt"]
    assert problems(tmp_path, files) == [
        f"{tmp_path}/db1.second.txt: there is no first reading, db1.first".replace(
            f"{tmp_path}/", ""
        )
    ]
    [problem] = problems(tmp_path, {"db1.txt": pair()["db1"]})
    assert "name them db1.first and db1.second" in problem


def test_a_second_reading_must_be_later(tmp_path: Path) -> None:
    files = twice()
    files["db2.second.txt"] = files["db2.first.txt"]
    found = problems(tmp_path, files)
    assert found[0] == (
        f"db2.second.txt: the server's clock shows no later time than in {tmp_path}/db2.first.txt"
    ).replace(f"{tmp_path}/", "")
    files["db2.second.txt"] = vertical({"@@server_uuid": B})
    assert any("nothing shows that it is later" in each for each in problems(tmp_path, files))
    files["db2.second.txt"] = whole(A, name="db2", server_id=2, at=LATER)
    assert any(f"server_uuid {A}; " in each for each in problems(tmp_path, files))


def test_all_first_readings_are_before_all_second_ones(tmp_path: Path) -> None:
    files = twice()
    files["db2.first.txt"] = whole(B, name="db2", server_id=2, channels=[status()], at="12:06:00")
    files["db2.second.txt"] = whole(B, name="db2", server_id=2, channels=[status()], at="12:07:00")
    assert problems(tmp_path, files) == [
        (
            "db1.second.txt: taken at 2026-01-02 12:05:00 UTC, before db2.first.txt"
            " (2026-01-02 12:06:00 UTC); take all first readings, then all second ones"
        )
    ]


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pasted_files, "FILE_BYTES_MAX", 100)
    found = problems(tmp_path, once())
    assert found == ["db1.txt: larger than 100 bytes", "db2.txt: larger than 100 bytes"]
    monkeypatch.setattr(pasted_files, "FILES_MAX", 1)
    assert problems(tmp_path, {})[0].endswith("2 files; the maximum is 1")


def test_a_file_that_cannot_be_read_is_a_problem_with_its_name(tmp_path: Path) -> None:
    folder = saved(tmp_path, once())
    (folder / "db1.txt").unlink()
    (folder / "db1.txt").symlink_to(folder / "db1.txt")  # which root cannot read either
    assert "db1.txt: not a file" in problems(folder, {})[0]
