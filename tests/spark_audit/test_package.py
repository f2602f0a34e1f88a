"""What is sent to a cluster is all that is needed of us, the same every time, and leads nowhere."""

import subprocess
import sys
import zipfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import grimp
import pytest

import gtid
from gtid_audit import exits
from spark_audit.adapters import package, submit
from spark_audit.adapters.fleet_archive import sent_fleet, write_fleet_archive
from spark_audit.adapters.package import PACKAGES, PROGRAM, REQUIREMENTS, UnfitName, write_package
from spark_audit.summary import FleetSummary
from tests.spark_audit.audits import a_summary
from tests.spark_audit.test_expected_fleet import SENT
from topology.adapters.stored_runs import NoSnapshots
from topology.catalogue.findings import Verdict
from topology.policy import Policy

ROOT = Path(gtid.__file__).resolve().parents[1]
# Brought by what we import, or by the cluster.
INDIRECT = {"cryptography": "pymysql", "pandas": "pyspark", "zstandard": "binlog"}
OF_THE_CLUSTER = {"py4j", "pyspark"}
INSTALLED_AS = {
    "yaml": "pyyaml",
    "llvmlite": "numba",
    "pydantic_core": "pydantic",
    "pymysqlreplication": "mysql-replication",
}


def test_the_package_holds_all_that_its_modules_import() -> None:
    ours = ("binlog", "gtid", "gtid_audit", "repair", "spark_audit", "topology")
    graph = grimp.build_graph(*ours, include_external_packages=True)
    inside = {name for name in graph.modules if name.split(".")[0] in PACKAGES}
    imported = {
        other.split(".")[0]
        for name in inside
        for other in graph.find_modules_directly_imported_by(name)
    }
    foreign = imported - set(PACKAGES) - set(sys.stdlib_module_names) - OF_THE_CLUSTER
    assert {INSTALLED_AS.get(name, name) for name in foreign} | set(INDIRECT) == set(REQUIREMENTS)


@pytest.mark.long
def test_the_same_sources_give_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    first = write_package(tmp_path / "gtid-audit.zip")
    second = write_package(tmp_path / "other" / "gtid-audit.zip")
    assert first.archive.read_bytes() == second.archive.read_bytes()
    assert first.program.read_text() == second.program.read_text() == PROGRAM
    assert write_package(first.archive) == first  # what is there is replaced
    names = [each.name for each in (tmp_path / "other").iterdir()]
    assert sorted(names) == ["gtid-audit.py", "gtid-audit.zip"]


def test_the_archive_holds_sources_and_no_place_of_this_machine(tmp_path: Path) -> None:
    with zipfile.ZipFile(write_package(tmp_path / "code.zip").archive) as packed:
        assert packed.testzip() is None
        for entry in packed.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            folder, _, name = entry.filename.rpartition("/")
            assert folder.split("/")[0] in PACKAGES
            assert name == "py.typed" or name.endswith(".py")
            assert str(ROOT).encode() not in packed.read(entry)
        names = {entry.filename for entry in packed.infolist()}
    for top in PACKAGES:
        ours = {str(file.relative_to(ROOT)) for file in (ROOT / top).rglob("*.py")}
        assert ours <= names


def test_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnfitName, match=r"ends in \.zip"):
        write_package(tmp_path / "code.tar")
    assert list(tmp_path.iterdir()) == []


def test_what_could_not_be_written_whole_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(PermissionError):
        write_package(tmp_path / "code.zip")
    assert list(tmp_path.iterdir()) == []


def test_a_python_that_lacks_something_ends_as_a_defect_not_as_a_verdict(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(package.PROGRAM)
    ran = subprocess.run(
        [sys.executable, "-I", "-S", str(program)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == exits.DEFECT
    assert ran.stderr.endswith("No module named 'spark_audit'\n")


# -- the program ----------------------------------------------------------------------------------

PLACES = ["--snapshots", "hdfs://here/snapshots", "--out", "hdfs://here/results"]


@pytest.mark.parametrize("verdict", list(Verdict))
def test_it_prints_the_summary_and_ends_in_the_status_of_the_verdict(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    def answer(*question: object) -> FleetSummary:
        asked.append(question)
        return a_summary(verdict)

    monkeypatch.setattr(submit, "_summary_of", answer)
    uuid = "aaaaaaaa-0000-0000-0000-000000000001"
    monkeypatch.setattr(submit, "sent_fleet", lambda: SENT)
    assert submit.main([*PLACES, "--allow-uuid", uuid, "--fleet"]) == exits.status_of(verdict)
    assert FleetSummary.from_text(capsys.readouterr().out) == a_summary(verdict)
    ((snapshots, out, policy, limit, fleet),) = asked
    assert limit.max_age == timedelta(hours=24)  # type: ignore[attr-defined]
    assert [snapshots, out] == PLACES[1::2]
    assert fleet is SENT
    allowed = {UUID(uuid), *SENT.policy.allowed_uuids}
    assert policy == replace(SENT.policy, allowed_uuids=frozenset(allowed))
    assert submit.main([*PLACES, "--exit", "done"]) == 0
    assert asked[-1][2] == Policy()
    assert asked[-1][4] is None


@pytest.mark.parametrize(("more", "status"), [((), 3), (("--exit", "done"), exits.USAGE)])
def test_a_run_that_is_refused_has_no_summary_and_is_never_done(
    more: tuple[str, ...],
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_question: object) -> FleetSummary:
        raise submit.RunRefused("run=x is too old")

    monkeypatch.setattr(submit, "_summary_of", refuse)
    assert submit.main([*PLACES, *more]) == status
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err == "gtid-audit: not evaluated: run=x is too old\n"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        PLACES[:2],
        [*PLACES, "--allow-uuid", "1-2-3"],
        [*PLACES, "--exit", "0"],
        [*PLACES, "--max-age", "1"],
        ["--nothing"],
    ],
)
def test_wrong_usage_is_no_verdict(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        submit.main(arguments)
    assert ended.value.code == exits.USAGE
    assert capsys.readouterr().err.startswith("usage: gtid-audit")


@pytest.mark.parametrize("fleet", ["absent", "of another version"])
def test_a_fleet_that_did_not_arrive_is_wrong_usage(
    fleet: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without this, the clusters of the fleet file could be missing silently."""
    said = "no gtid_audit_fleet in --py-files"
    if fleet != "absent":
        archive = tmp_path / "code-fleet.zip"
        write_fleet_archive(archive, SENT)
        newer = tmp_path / "newer.zip"
        with zipfile.ZipFile(archive) as packed, zipfile.ZipFile(newer, "w") as made:
            for name in packed.namelist():
                made.writestr(name, packed.read(name).replace(b'"layout": 1', b'"layout": 2'))
        monkeypatch.syspath_prepend(newer)
        said = "fleet.json: layout: expected a fleet of layout 1. Write it with the gtid-audit of"
    monkeypatch.delitem(sys.modules, "gtid_audit_fleet", raising=False)
    assert submit.main([*PLACES, "--fleet"]) == exits.USAGE
    answer = capsys.readouterr()
    assert answer.out == ""
    assert answer.err.startswith("gtid-audit: --fleet: ")
    assert said in answer.err
    sys.modules.pop("gtid_audit_fleet", None)


def test_a_fleet_arrives_as_it_was_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_fleet_archive(tmp_path / "one.zip", SENT)
    write_fleet_archive(tmp_path / "two.zip", SENT)
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    monkeypatch.syspath_prepend(tmp_path / "one.zip")
    monkeypatch.delitem(sys.modules, "gtid_audit_fleet", raising=False)
    assert sent_fleet() == SENT
    sys.modules.pop("gtid_audit_fleet", None)


@pytest.mark.parametrize(
    ("thrown", "status"),
    [(NoSnapshots("there: none"), exits.USAGE), (RuntimeError("there"), exits.DEFECT)],
)
def test_an_audit_that_fails_is_no_verdict(
    thrown: Exception,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> FleetSummary:
        raise thrown

    monkeypatch.setattr(submit, "_summary_of", fail)
    assert submit.main(PLACES) == status
    said = capsys.readouterr()
    assert said.out == ""
    assert str(thrown) in said.err


def test_the_statuses_are_those_of_the_command_line() -> None:
    assert {each: exits.status_of(each) for each in Verdict} == submit.STATUS
    assert (submit.USAGE, submit.DEFECT) == (exits.USAGE, exits.DEFECT)
