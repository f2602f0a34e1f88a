"""`audit --out` and `spark trends` as a person uses them: several nights, one directory."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gtid import GtidSet
from gtid_audit.cli import run
from gtid_audit.tasks import written_run
from gtid_audit.views.trends_text import SPARKS_MAX, sparks
from repair.render import PLAN
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import A, commits_of
from tests.topology.test_accepted import written
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

# The engine takes the session that is there.
pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


def nights_later(snapshot: ClusterSnapshot, number: int) -> ClusterSnapshot:
    """Read the same a few nights later; b's hole has grown by a transaction each night."""
    span = timedelta(days=number)
    hole = GtidSet.parse(f"{A}:51-{53 + number}")

    def moved(server: ServerSnapshot) -> ServerSnapshot:
        later = replace(
            server, read_started=server.read_started + span, read_ended=server.read_ended + span
        )
        if snapshot.cluster != "holed" or later.gtid_executed is None:
            return later
        if later.name == "a":
            return replace(
                later, history_evidence=commits_of(f"{A}:1", f"{A}:51", f"{A}:{53 + number}")
            )
        [channel] = later.channels or ()
        received = replace(channel, gtid_retrieved=channel.gtid_retrieved - hole)
        return replace(later, gtid_executed=later.gtid_executed - hole, channels=(received,))

    first, last = (tuple(map(moved, each)) for each in (snapshot.first, snapshot.last))
    return ClusterSnapshot(snapshot.cluster, first, last)


@pytest.fixture(scope="module")
def stored(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three nights of three clusters, audited night by night."""
    directory = tmp_path_factory.mktemp("history")
    for number in range(3):
        fleet = (holed("holed"), healthy("well"), half_read("half-read"))
        written_run.store(directory, [nights_later(each, number) for each in fleet], None)
        assert (
            run(
                (
                    "audit",
                    "--max-age",
                    "none",
                    "--snapshots",
                    str(directory),
                    "--out",
                    str(directory),
                    "--json",
                )
            )
            == 2
        )
    return directory


@pytest.mark.slow
def test_the_document_has_the_history_that_was_kept(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = (
        "audit",
        "--max-age",
        "none",
        "--snapshots",
        str(stored),
        "--engine",
        "spark",
        "--json",
    )
    documents = []
    for more in ((), ("--out", str(stored)), ("--out", str(stored))):
        assert run((*arguments, *more)) == 2
        documents.append(capsys.readouterr().out)
    assert documents[1] == documents[2], "the run is there already, and is kept"
    alone, kept = (json.loads(document) for document in documents[:2])
    lists = ["clusters", "findings", "unknown", "contents", "definitions"]
    assert list(kept) == ["schema_version", "audited_at", "engine", "verdict", *lists]
    hole = next(each for each in kept["findings"] if each["code"] == "H1")
    assert hole["first_seen"][:10] == "2026-01-02"
    assert hole["last_seen"][:10] == "2026-01-04"
    assert hole["gtid_count"] == 5
    for each in (*alone["findings"], *kept["findings"]):
        each.pop("first_seen")
    assert alone == kept


def test_a_page_of_results_is_short_and_says_where_they_lie(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(("audit", "--max-age", "none", "--snapshots", str(stored), "--out", str(stored))) == 2
    )
    page = capsys.readouterr().out
    for said in (
        " CRITICAL   3 clusters · 6 servers · 1 critical",
        "the other 1 OK",
        "cluster holed · a → b",
        "since 2026-01-02 12:00:01 UTC",
        "half-read/b",
        "timeout: no answer",
        "day=2026-01-04/run=20260104T120001.040000Z",
    ):
        assert said in page
    assert run(("audit", "--max-age", "none", "--snapshots", str(stored), "--engine", "spark")) == 2
    assert "Results:" not in capsys.readouterr().out


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(("audit", "--max-age", "none", "--snapshots", *arguments)) == 2
    return capsys.readouterr().out


@pytest.mark.slow
def test_both_engines_show_the_same_page(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ((), ("--out", str(stored))):
        pages = [
            told(capsys, str(stored), "--engine", engine, *more) for engine in ("local", "spark")
        ]
        assert pages[0] == pages[1]
        assert ("Results: " in pages[0]) is bool(more)


def runs_of(directory: Path) -> list[str]:
    return [str(run_at) for run_at in sorted(directory.glob("day=*/run=*"))]


@pytest.mark.slow
def test_either_engine_goes_on_with_the_history_of_the_other(
    stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three nights by one engine, and in turn by one and the other: the same documents."""
    documents = {}
    for engines_of in (("local",) * 3, ("spark", "local", "spark")):
        out = tmp_path / "-".join(engines_of)
        for engine, snapshots in zip(engines_of, runs_of(stored), strict=True):
            said = told(capsys, snapshots, "--engine", engine, "--out", str(out), "--json")
            document = json.loads(said)
            assert document.pop("engine") == engine
            documents[out.name, snapshots] = document
    for snapshots in runs_of(stored):
        versions = [found for (_, of), found in documents.items() if of == snapshots]
        assert versions[0] == versions[1]
    last = documents["spark-local-spark", runs_of(stored)[-1]]
    hole = next(each for each in last["findings"] if each["code"] == "H1")
    assert (hole["first_seen"][:10], hole["last_seen"][:10]) == ("2026-01-02", "2026-01-04")
    # Evaluated again by the other engine, a run is the same run; by another policy it is not.
    out = tmp_path / "spark-local-spark"
    for engine in ("local", "spark"):
        again = told(capsys, runs_of(stored)[-1], "--engine", engine, "--out", str(out), "--json")
        assert json.loads(again)["findings"] == last["findings"]


@pytest.mark.parametrize(
    ("engine", "policy"),
    [
        ("local", f"allowed_uuids: [{A}]"),
        ("local", "accepted: [plan]"),
        pytest.param("spark", "accepted: [plan]", marks=pytest.mark.slow),
    ],
)
def test_another_policy_does_not_rewrite_what_was_found(
    engine: str, policy: str, *, stored: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan").mkdir()
    (tmp_path / "plan" / PLAN).write_text(written())
    (tmp_path / "fleet.yaml").write_text(
        f"policy: {{{policy}}}\nclusters: [{{name: x, servers: [{{name: y, host: h, user: u}}]}}]\n"
    )
    stored_run = ("--max-age", "none", "--snapshots", str(stored))
    fleet = ("--fleet", str(tmp_path / "fleet.yaml"))
    audit = ("audit", *stored_run, *fleet, "--engine", engine, "--out")
    assert run((*audit, str(stored))) == 64
    assert "move that directory away" in capsys.readouterr().err
    assert run((*audit, str(tmp_path / "new"))) == 2, "as without a former run"


@pytest.mark.slow
def test_trends_as_a_document(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("spark", "trends", str(stored), "--quiet-runs", "3", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    head = ["schema_version", "first_run", "last_run", "runs"]
    assert list(found) == [*head, "intervals", "retirable", "findings"]
    assert (found["runs"], found["first_run"]) == (3, "2026-01-02T12:00:01.040000Z")
    assert found["intervals"][0]["interval_count"] == 2
    assert found["retirable"] == []
    hole = next(each for each in found["findings"] if each["code"] == "H1")
    assert [point["count"] for point in hole["points"]] == [3, 4, 5]
    assert hole["gtids_per_hour"] == pytest.approx(1 / 24)


@pytest.mark.slow
def test_trends_as_a_page(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("spark", "trends", str(stored), "--intervals-max", "2")) == 0
    page = capsys.readouterr().out
    for said in ("3 runs: 2026-01-02", "2 !", "▁▄█", "fewer than 7 runs", "H1", "+0.0"):
        assert said in page
    assert run(("spark", "trends", str(stored), "--results", str(stored / "nowhere"))) == 0
    assert "no results here" in capsys.readouterr().out


def test_trends_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("spark", "trends", str(tmp_path))) == 64
    assert "no complete run" in capsys.readouterr().err


def test_sparks_show_the_newest() -> None:
    assert sparks([0] * 5 + list(range(SPARKS_MAX))) == sparks(range(SPARKS_MAX))
    assert len(sparks(range(100))) == SPARKS_MAX
