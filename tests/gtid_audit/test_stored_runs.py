"""Stored runs as a person uses them: no OK about what is old, absent, selected or damaged."""

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from gtid_audit import clock
from gtid_audit.cli import run
from gtid_audit.tasks import fleet_reading
from gtid_audit.tasks.compared_restarts import LOOKS, DirectoryMemory
from tests.contents import differing
from tests.gtid_audit.build import healthy, holed
from tests.snapshots import A
from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.adapters.parquet import write_snapshots
from topology.adapters.run_directory import COMPLETE
from topology.adapters.stored_contents import CONTENTS, kept_beside
from topology.adapters.stored_runs import RECORD
from topology.policy import Policy
from topology.questions.contents_to_compare import Remembered
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason
from topology.readings.target import ServerTarget

READ = datetime(2026, 1, 2, 12, 0, 1, 40_000, tzinfo=UTC)  # when the runs below were read
HOUR = timedelta(hours=1)


@pytest.fixture(autouse=True)
def an_hour_later(monkeypatch: pytest.MonkeyPatch) -> None:
    at(monkeypatch, READ + HOUR)


def at(monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
    monkeypatch.setattr(clock, "now", lambda: now)


def fleet_file(path: Path, *clusters: str, names: str = "ab", host: str = "{}.example") -> str:
    """Write a fleet file of pairs. Its password is nowhere: no stored audit needs it."""
    lines = ["defaults: {user: u, password: {env: NOT_SET}}", "clusters:"]
    for number, cluster in enumerate(clusters):
        lines.append(f"  - name: {cluster}\n    servers:")
        for name in names:
            # Every cluster of these tests has the same two hosts; a file has them once.
            address = host.format(name) if number == 0 else f"{cluster}-{host.format(name)}"
            lines.append(f"      - {{name: {name}, host: {address}}}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def audited(
    capsys: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, dict[str, str], list[dict[str, str]]]:
    """Return the status, the verdicts by cluster and what is unknown."""
    status = run(("audit", *arguments, "--json"))
    document = json.loads(capsys.readouterr().out)
    verdicts = {each["cluster"]: each["verdict"] for each in document["clusters"]}
    return status, verdicts, document["unknown"]


def later(snapshot: ClusterSnapshot, span: timedelta) -> ClusterSnapshot:
    def moved(servers: tuple[ServerSnapshot, ...]) -> tuple[ServerSnapshot, ...]:
        return tuple(
            replace(one, read_started=one.read_started + span, read_ended=one.read_ended + span)
            for one in servers
        )

    return ClusterSnapshot(snapshot.cluster, moved(snapshot.first), moved(snapshot.last))


# -- the clusters and servers of the fleet file -----------------------------------------------------


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_cluster_of_the_fleet_file_that_the_run_does_not_have_is_unknown(
    engine: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    write_snapshots(tmp_path / "runs", [healthy("well")])
    file = fleet_file(tmp_path / "fleet.yaml", "well", "absent")
    arguments = ("--snapshots", str(tmp_path / "runs"), "--engine", engine)
    status, verdicts, unknown = audited(capsys, *arguments)
    assert (status, verdicts) == (0, {"well": "OK"})
    status, verdicts, unknown = audited(capsys, *arguments, "--fleet", file)
    assert (status, verdicts) == (3, {"absent": "UNKNOWN", "well": "OK"})
    assert {(one["cluster"], one["server"], one["fact"]) for one in unknown} == {
        ("absent", "a", "readings"),
        ("absent", "b", "readings"),
    }
    assert unknown[0]["reason"] == "run=20260102T120001.040000Z does not contain this cluster"


MOVED = "the stored run has a reading of a.example:3306, but the fleet file has new-a.example:3306"


# With Spark, the cluster that the run does not have goes the same way.
@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=(pytest.mark.spark, pytest.mark.slow))]
)
@pytest.mark.parametrize(
    ("servers", "unknown_server", "reason"),
    [
        (("abc", "{}.example"), "c", "the stored run has no reading of this server"),
        (("ab", "new-{}.example"), "a", MOVED),
    ],
)
def test_a_server_of_the_fleet_file_that_was_not_read_is_unknown(
    engine: str,
    servers: tuple[str, str],
    unknown_server: str,
    reason: str,
    *,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    names, host = servers
    write_snapshots(tmp_path / "runs", [healthy("well"), healthy("zebra")])
    file = fleet_file(tmp_path / "fleet.yaml", "well", names=names, host=host)
    arguments = ("--snapshots", str(tmp_path / "runs"), "--engine", engine, "--fleet", file)
    status, verdicts, unknown = audited(capsys, *arguments)
    assert (status, verdicts) == (3, {"well": "UNKNOWN", "zebra": "OK"})
    assert (unknown_server, "readings", reason) in {
        (one["server"], one["fact"], one["reason"]) for one in unknown
    }


# -- selected clusters ------------------------------------------------------------------------------

PAIR = tuple(ServerTarget(name, f"{name}.example", 3306, user="u") for name in "ab")
LIVE = Fleet(
    (Cluster("broken", PAIR), Cluster("well", PAIR)),
    CollectLimits(),
    4,
    Policy(),
)


@pytest.fixture
def read_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = {"broken": holed("broken"), "well": healthy("well")}
    monkeypatch.setattr(
        fleet_reading,
        "collect_fleet",
        lambda fleet, **_say: (snapshots[each.name] for each in fleet.clusters),
    )
    monkeypatch.setattr(
        "gtid_audit.operands.load_fleet.load", lambda _file, cluster: LIVE.only(cluster)
    )


@pytest.mark.long
@pytest.mark.usefixtures("read_from_memory")
def test_a_run_of_selected_clusters_is_never_the_latest_run_of_the_fleet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(tmp_path / "runs")
    file = fleet_file(tmp_path / "fleet.yaml", "broken")
    assert run(("snapshot", "--fleet", file, "--out", runs, "--cluster", "well")) == 0
    selected = capsys.readouterr().out.strip()
    assert Path(selected).is_relative_to(tmp_path / "runs" / "partial")
    assert run(("audit", "--snapshots", runs)) == 64
    assert "no stored snapshots" in capsys.readouterr().err
    # Named itself it is taken; beside the fleet file it is still no statement about the others.
    assert audited(capsys, "--snapshots", selected)[:2] == (0, {"well": "OK"})
    status, verdicts, unknown = audited(capsys, "--snapshots", selected, "--fleet", file)
    assert (status, verdicts) == (3, {"broken": "UNKNOWN", "well": "OK"})
    assert "it was taken with `--cluster well`" in unknown[0]["reason"]
    for out in (tmp_path / "runs", tmp_path / "runs" / "partial"):
        assert audited(capsys, "--snapshots", selected, "--out", str(out))[0] == 0
    places = {str(each.relative_to(runs)) for each in Path(runs).rglob("audits")}
    assert places == {"partial/audits"}, "its results are not the latest of the fleet either"
    # The whole fleet: its run is the latest, now and after another selected run.
    assert run(("snapshot", "--fleet", file, "--out", runs)) == 0
    assert run(("snapshot", "--fleet", file, "--out", runs, "--cluster", "well")) == 0
    capsys.readouterr()
    both = {"broken": "CRITICAL", "well": "OK"}
    assert audited(capsys, "--snapshots", runs)[:2] == (2, both)
    assert (tmp_path / "runs" / LOOKS).exists(), "the fleet's memory of contents is its own"


@pytest.mark.usefixtures("read_from_memory")
def test_a_run_of_selected_clusters_is_passed_over_wherever_it_lies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = write_snapshots(tmp_path, [holed("broken"), healthy("well")])
    write_snapshots(tmp_path, [later(healthy("well"), HOUR / 2)], partial=["well"])
    assert audited(capsys, "--snapshots", str(tmp_path))[0] == 2
    shutil.rmtree(whole)
    assert run(("audit", "--snapshots", str(tmp_path))) == 64
    assert "every complete run has only selected clusters" in capsys.readouterr().err


# -- time -------------------------------------------------------------------------------------------


def renamed(run_at: Path, moment: datetime) -> Path:
    """Return a run another name, below the day of that name."""
    new = run_at.parents[1] / f"day={moment:%Y-%m-%d}" / f"run={moment:%Y%m%dT%H%M%S.%fZ}"
    new.parent.mkdir(exist_ok=True)
    run_at.rename(new)
    return new


@pytest.mark.parametrize(
    ("age", "max_age", "status"),
    [
        (timedelta(hours=23), None, 0),
        (timedelta(hours=25), None, 3),
        (timedelta(hours=25), "26h", 0),
        (timedelta(minutes=11), "10m", 3),
        (timedelta(days=400), "none", 0),
    ],
)
def test_a_run_older_than_the_limit_is_unknown_and_says_its_age(
    age: timedelta,
    max_age: str | None,
    status: int,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_snapshots(tmp_path, [healthy("well")])
    at(monkeypatch, READ + age)
    limit = () if max_age is None else ("--max-age", max_age)
    found, verdicts, unknown = audited(capsys, "--snapshots", str(tmp_path), *limit)
    assert found == status
    assert verdicts == {"well": "OK" if status == 0 else "UNKNOWN"}
    assert run(("audit", "--snapshots", str(tmp_path), *limit)) == status
    page = " ".join(capsys.readouterr().out.split())
    if status:
        assert [one["fact"] for one in unknown] == ["stored run"]
        assert "is too old: its oldest reading is " in unknown[0]["reason"]
        assert "Not evaluated: run=20260102T120001.040000Z is too old" in page
        assert ("1 day 1 hour old" in page) is (age > timedelta(days=1))


def test_the_oldest_reading_of_a_run_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_snapshots(tmp_path, [later(healthy("old"), -30 * HOUR), healthy("new")])
    status, verdicts, unknown = audited(capsys, "--snapshots", str(tmp_path))
    assert (status, verdicts) == (3, {"new": "UNKNOWN", "old": "UNKNOWN"})
    assert "is 1 day 7 hours old, and the limit is 1 day. Take a new" in unknown[0]["reason"]


def test_with_a_fleet_file_an_old_run_makes_all_of_its_clusters_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_snapshots(tmp_path / "runs", [healthy("well")])
    at(monkeypatch, READ + 48 * HOUR)
    file = fleet_file(tmp_path / "fleet.yaml", "well", "absent")
    status, verdicts, _ = audited(capsys, "--snapshots", str(tmp_path / "runs"), "--fleet", file)
    assert (status, verdicts) == (3, {"well": "UNKNOWN", "absent": "UNKNOWN"})


def test_a_run_from_the_future_is_refused_by_name_and_hides_no_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_snapshots(tmp_path, [healthy("well")])
    write_snapshots(tmp_path, [later(healthy("well"), timedelta(days=9000))])
    status, verdicts, unknown = audited(capsys, "--snapshots", str(tmp_path))
    assert (status, verdicts) == (3, {"well": "UNKNOWN"})
    assert unknown[0]["reason"].startswith("run=20500824T120001.040000Z is from the future")


def test_a_run_with_another_name_than_its_content_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Last week's readings under tonight's name."""
    now = READ + timedelta(days=7)
    renamed(write_snapshots(tmp_path, [healthy("well")]), now - HOUR)
    at(monkeypatch, now)
    status, _, unknown = audited(capsys, "--snapshots", str(tmp_path))
    assert status == 3
    assert "has a name that does not match its content" in unknown[0]["reason"]
    assert "2026-01-02 12:00:01 UTC" in unknown[0]["reason"]


@pytest.mark.parametrize("text", ["", "24", "h", "-1h", "0h", "1.5h", "24H", "99999999d", "²h"])
def test_a_limit_that_is_no_time_span_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("audit", "--snapshots", str(tmp_path), f"--max-age={text}")) == 64
    assert "--max-age: expected" in capsys.readouterr().err


# -- what is not a run ------------------------------------------------------------------------------


def newer(run_at: Path) -> None:
    (run_at / RECORD).write_text('{"schema_version": 99, "else": 1}')


def without_a_file(run_at: Path) -> None:
    (run_at / "part-00000.parquet").rename(run_at / "_part")
    shutil.copy(run_at / "_part", run_at / "part-00001.parquet")


def without_contents(run_at: Path) -> None:
    """What differs is kept there: without it, such a run would be OK."""
    (run_at / CONTENTS).unlink()


def spoiled(run_at: Path) -> None:
    (run_at / RECORD).write_text("[" * 100_000)


def of_another_day(run_at: Path) -> None:
    run_at.parent.rename(run_at.parents[1] / "day=2026-01-03")


def a_file(run_at: Path) -> None:
    shutil.rmtree(run_at)
    run_at.write_text("no directory")


def unmarked(run_at: Path) -> None:
    (run_at / COMPLETE).unlink()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (newer, "schema version 99, and this gtid-audit reads versions up to 1. Audit it with"),
        (without_a_file, "the file part-00000.parquet is missing. The run is damaged"),
        (without_contents, f"the file {CONTENTS} is missing. The run is damaged"),
        (spoiled, f"{RECORD}: not JSON"),
        (of_another_day, "the run is in the directory of another day"),
        (a_file, "no stored snapshots"),
        (unmarked, "no complete run"),
    ],
)
def test_what_is_no_sound_run_is_named_and_nothing_is_said_of_the_fleet(
    spoil: Callable[[Path], None], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = kept_beside({"well": differing(7)})
    spoil(write_snapshots(tmp_path, [healthy("well")], beside=beside))
    assert run(("audit", "--snapshots", str(tmp_path))) == 64
    answer = capsys.readouterr()
    assert said in answer.err
    assert answer.out == ""


def test_a_run_without_a_record_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (write_snapshots(tmp_path, [healthy("well")]) / RECORD).unlink()
    status, verdicts, unknown = audited(capsys, "--snapshots", str(tmp_path))
    assert (status, verdicts) == (3, {"well": "UNKNOWN"})
    assert "has no record of the clusters that it should contain" in unknown[0]["reason"]


# -- writing ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("read_from_memory")
def test_a_server_whose_answer_cannot_be_stored_is_unknown_and_the_others_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = healthy("odd")
    spoiled = tuple(
        replace(one, uptime_seconds=10**30) if one.name == "b" else one for one in odd.last
    )
    snapshots = [ClusterSnapshot("odd", odd.first, spoiled), healthy("well")]
    monkeypatch.setattr(fleet_reading, "collect_fleet", lambda _fleet, **_say: iter(snapshots))
    file = fleet_file(tmp_path / "fleet.yaml", "well")
    assert run(("snapshot", "--fleet", file, "--out", str(tmp_path / "runs"))) == 3
    capsys.readouterr()
    status, verdicts, unknown = audited(capsys, "--snapshots", str(tmp_path / "runs"))
    assert (status, verdicts) == (3, {"odd": "UNKNOWN", "well": "OK"})
    assert {(one["cluster"], one["server"]) for one in unknown} == {("odd", "b")}
    assert "the server's answer cannot be stored: OverflowError" in unknown[0]["reason"]


def test_a_server_that_was_unread_is_unknown_in_the_stored_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fact = UnreadFact("reading", UnreadReason.ERROR, "KeyError: 'File'")
    well = healthy("odd")
    first, last = (
        tuple(
            ServerSnapshot(
                one.cluster,
                one.name,
                one.host,
                one.port,
                one.phase,
                one.read_started,
                one.read_ended,
                unread=(fact,),
            )
            if one.name == "b"
            else one
            for one in servers
        )
        for servers in (well.first, well.last)
    )
    write_snapshots(tmp_path, [ClusterSnapshot("odd", first, last), healthy("well")])
    status, verdicts, unknown = audited(capsys, "--snapshots", str(tmp_path))
    assert (status, verdicts) == (3, {"odd": "UNKNOWN", "well": "OK"})
    assert {one["reason"] for one in unknown} == {"error: KeyError: 'File'"}


@pytest.mark.long
def test_two_snapshots_at_once_leave_two_whole_runs_and_one_whole_memory(tmp_path: Path) -> None:
    memory = DirectoryMemory(tmp_path)

    def take(number: int) -> None:
        write_snapshots(tmp_path, [later(healthy("well"), number * HOUR / 1000)])
        memory.write(Remembered({A: READ + number * HOUR}, {}))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take, range(40)))
    assert len(list(tmp_path.glob("day=*/run=*/_SUCCESS"))) == 40
    assert set(memory.read().looks) == {A}
    left = [each.name for each in tmp_path.iterdir() if not each.name.startswith("day=")]
    assert sorted(left) == [LOOKS, f"{LOOKS}.lock"]
