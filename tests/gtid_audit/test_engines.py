import json
import subprocess
import sys
from pathlib import Path

import pytest

from gtid_audit import optional_packages
from gtid_audit.cli import run
from gtid_audit.commands.audit_fleets import SPARK_CLUSTERS_MIN, engine_of
from gtid_audit.commands.options import EngineChoice
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks import fleet_contents as content_fleet
from gtid_audit.tasks import fleet_reading, written_run
from gtid_audit.tasks.fleet_audit import answer_of_fleet, audit_fleet
from gtid_audit.tasks.stored_audit import answer_of_stored, count_stored
from gtid_audit.tasks.stored_run import StoredQuestion
from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.report import Engine
from tests.contents import alike, differing, unread
from tests.gtid_audit.build import half_read, healthy, holed
from tests.snapshots import NOON, A
from topology import audit_cluster as evaluating
from topology.adapters.collect import CollectLimits
from topology.adapters.collect_fleet import unread_by_defect
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.catalogue.findings import CONTENT, Verdict
from topology.documents.run_record import AgeLimit
from topology.policy import Policy
from topology.questions.contents_to_compare import Looked
from topology.readings.target import ServerTarget


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    written_run.store(tmp_path / "history", (half_read("c"), healthy("a"), holed("b")), None)
    return tmp_path / "history"


def test_auto_is_local_until_spark_is_worth_its_start() -> None:
    few, many = SPARK_CLUSTERS_MIN - 1, SPARK_CLUSTERS_MIN
    assert engine_of(EngineChoice.AUTO, lambda: few) is Engine.LOCAL
    assert engine_of(EngineChoice.AUTO, lambda: many) is Engine.SPARK
    assert engine_of(EngineChoice.LOCAL, lambda: many) is Engine.LOCAL
    assert engine_of(EngineChoice.SPARK, lambda: few) is Engine.SPARK


def test_stored_snapshots_give_the_same_bytes_each_time(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert count_stored(stored) == 3
    answers = []
    for engine in ("auto", "local"):
        assert (
            run(
                (
                    "audit",
                    "--max-age",
                    "none",
                    "--snapshots",
                    str(stored),
                    "--engine",
                    engine,
                    "--json",
                )
            )
            == 2
        )
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]
    found = json.loads(answers[0])
    assert found["audited_at"] == "2026-01-02T12:00:01.040000Z"
    assert [each["verdict"] for each in found["clusters"]] == ["OK", "CRITICAL", "UNKNOWN"]


def test_text_of_stored_snapshots(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("audit", "--max-age", "none", "--snapshots", str(stored))) == 2
    assert "CRITICAL   3 clusters" in capsys.readouterr().out


def test_the_policy_of_the_fleet_file_counts(
    stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Policy] = []

    def evaluate(_directory: Path, *, policy: Policy, gaps: object) -> tuple[()]:
        assert gaps == {}
        seen.append(policy)
        return ()

    monkeypatch.setattr("spark_audit.adapters.local.audit_snapshots_locally", evaluate)
    (tmp_path / "fleet.yaml").write_text(
        f"policy: {{allowed_uuids: [{A}]}}\n"
        "clusters: [{name: x, servers: [{name: y, host: h, user: u}]}]\n"
    )
    arguments = (
        "audit",
        "--max-age",
        "none",
        "--snapshots",
        str(stored),
        "--fleet",
        str(tmp_path / "fleet.yaml"),
    )
    assert run((*arguments, "--engine", "local")) == 3
    assert seen == [Policy(allowed_uuids=frozenset({A}))]


@pytest.mark.long
def test_the_local_engine_needs_no_pyspark() -> None:
    script = (
        "import sys\n"
        "sys.modules['pyspark'] = None\n"  # as if it were not installed
        "import spark_audit.adapters.local, spark_audit.result_records\n"
        "assert 'numba' not in sys.modules, 'few clusters need no kernels'\n"
        "import spark_audit.adapters.stored_pieces\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_is_missing_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message has the smallest extra that helps."""
    monkeypatch.setattr(optional_packages, "find_spec", lambda _name: None)
    for require, extra in (
        (optional_packages.require_parquet, "columns"),
        (optional_packages.require_columns, "columns"),
        (optional_packages.require_spark, "spark"),
        (optional_packages.require_serve, "serve"),
    ):
        with pytest.raises(UsageProblem, match=rf"pip install 'gtid-audit\[{extra}\]'"):
            require()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_gives_the_same_findings(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = []
    for engine in ("local", "spark"):
        assert (
            run(
                (
                    "audit",
                    "--max-age",
                    "none",
                    "--snapshots",
                    str(stored),
                    "--engine",
                    engine,
                    "--json",
                )
            )
            == 2
        )
        document = json.loads(capsys.readouterr().out)
        assert document.pop("engine") == engine
        documents.append(json.dumps(document))
    assert documents[0] == documents[1]


LIVE = Fleet((), CollectLimits(), 1, Policy())


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a live fleet be read from memory."""
    snapshots = [holed("b"), half_read("c"), healthy("a")]
    monkeypatch.setattr(fleet_reading, "collect_fleet", lambda _fleet, **_say: iter(snapshots))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.usefixtures("spark", "collected")
@pytest.mark.parametrize("keeps", [True, False])
def test_spark_evaluates_a_live_fleet(tmp_path: Path, *, keeps: bool) -> None:
    directory = tmp_path / "kept" if keeps else None
    with answer_of_fleet(LIVE, engine=Engine.SPARK, out=directory) as answer:
        on_spark = "".join(answer.document())
    here = "".join(audit_fleet(LIVE).document())
    assert on_spark == here.replace('"engine": "local"', '"engine": "spark"')
    assert (tmp_path / "kept").exists() is keeps
    assert len(list((tmp_path / "kept").glob("audits/day=*/run=*/_SUCCESS"))) == keeps


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let contents differ in a cluster whose readings are clean, and be unread in another."""
    found = {"a": differing(7, 12), "b": unread(), "c": alike()}
    monkeypatch.setattr(
        content_fleet, "_look", lambda snapshot, *_more, **_named: Looked(found[snapshot.cluster])
    )


@pytest.mark.spark
@pytest.mark.usefixtures("spark", "collected", "compared")
def test_spark_evaluates_contents_as_the_local_engine_does_now_and_from_what_is_stored(
    tmp_path: Path,
) -> None:
    with answer_of_fleet(LIVE, engine=Engine.SPARK, out=tmp_path) as answer:
        on_spark = "".join(answer.document())
    here = "".join(audit_fleet(LIVE).document())
    assert on_spark == here.replace('"engine": "local"', '"engine": "spark"')
    found = json.loads(here)
    assert [one["code"] for one in found["findings"] if one["cluster"] == "a"] == ["E4"]
    assert [one["fact"] for one in found["unknown"] if one["cluster"] == "b"] == [CONTENT]
    assert [one["cluster"] for one in found["contents"]] == ["a", "b", "c"]
    for engine, out in ((Engine.LOCAL, None), (Engine.SPARK, tmp_path)):
        asked = StoredQuestion(tmp_path, AgeLimit(NOON, None), Policy())
        with answer_of_stored(asked, engine=engine, out=out) as answer:
            again = "".join(answer.document())
        assert again == here.replace('"engine": "local"', f'"engine": "{engine.value}"')
    (summary,) = tmp_path.glob("audits/day=*/run=*/_summary.json")
    assert json.loads(summary.read_text())["contents_compared"] == 3


@pytest.mark.usefixtures("collected", "compared")
def test_contents_are_not_compared_where_nobody_is_to_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with answer_of_fleet(LIVE, engine=Engine.LOCAL, out=tmp_path, content=False) as answer:
        assert json.loads("".join(answer.document()))["contents"] is None
    assert run(("audit", "--max-age", "none", "--snapshots", str(tmp_path))) == 2
    said = " ".join(capsys.readouterr().out.split())
    assert "Content not compared when these servers were read" in said


@pytest.mark.usefixtures("collected")
def test_a_defect_in_comparing_is_unknown_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object, **_more: object) -> None:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr("topology.adapters.compare_contents.read_contents", fail)
    audited = audit_fleet(LIVE, content=True)
    unknown = [one for one in audited.report.unknown if one.fact == CONTENT]
    assert {one.cluster for one in unknown} == {"a", "b", "c"}
    assert {one.reason for one in unknown} == {"defect of the auditor: ZeroDivisionError: odd"}


@pytest.mark.usefixtures("collected")
def test_the_pictures_snapshots_are_in_order() -> None:
    audited = audit_fleet(LIVE)
    assert [snapshot.cluster for snapshot in audited.snapshots] == ["a", "b", "c"]
    assert [audit.cluster for audit in audited.report.audits] == ["a", "b", "c"]


def test_a_defect_in_reading_is_unknown_and_named_now_and_in_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster("b", (ServerTarget("b1", "b1", 3306, user="u"),))
    failed = unread_by_defect(cluster, RuntimeError("boom"), at=NOON)
    monkeypatch.setattr(
        fleet_reading, "collect_fleet", lambda _fleet, **_say: iter((failed, healthy()))
    )
    with answer_of_fleet(LIVE, engine=Engine.LOCAL, out=tmp_path, content=False) as audited:
        assert isinstance(audited, InMemory)
    assert [audit.cluster for audit in audited.report.audits] == ["b", "pair"]
    assert [audit.verdict for audit in audited.report.audits] == [Verdict.UNKNOWN, Verdict.OK]
    assert {one.reason for one in audited.report.unknown} == {
        "error: defect of the auditor: RuntimeError: boom"
    }
    asked = StoredQuestion(tmp_path, AgeLimit(NOON, None), Policy())
    with answer_of_stored(asked, engine=Engine.LOCAL) as answer:
        assert "".join(answer.document()) == "".join(audited.document())


def test_a_defect_in_evaluating_is_unknown_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_given: object) -> None:
        raise ZeroDivisionError("odd")

    monkeypatch.setattr(evaluating, "audit_cluster", fail)
    audit = evaluating.audit_or_unknown(healthy(), Policy())
    assert audit.verdict is Verdict.UNKNOWN
    assert audit.servers == ("a", "b")
    assert audit.unknown[0].reason == "defect of the auditor: ZeroDivisionError: odd"


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageProblem, match="file"):
        written_run.store(tmp_path / "file" / "x", (healthy(),), None)
