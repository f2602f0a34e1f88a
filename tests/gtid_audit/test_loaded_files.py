"""Files that are loaded again: what is kept if one has an error, and what is logged."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from gtid_audit import clock
from gtid_audit.exits import UsageProblem
from gtid_audit.service.finding_changes import ChangeKind, FindingChange
from gtid_audit.service.loaded_files import FileToLoad, LoadedFiles
from gtid_audit.service.log_watcher import LogWatcher
from gtid_audit.service.log_words import LogFormat, LogLevel
from gtid_audit.service.procedure_metrics import ServiceCollector
from gtid_audit.service.procedure_source import ProceduresRead
from gtid_audit.service.readiness import readiness_of
from gtid_audit.service.repeated_audit import AuditService
from gtid_audit.service.service_log import ServiceLog
from gtid_audit.views.audited_now import AuditedNow
from tests.gtid_audit.build import holed
from tests.gtid_audit.served import a_cluster_to_read, a_fleet, all_healthy, audit_all, audited
from tests.snapshots import NOON
from topology.adapters.inventory.fleet import Cluster, Fleet
from topology.adapters.inventory.problem import InventoryProblem


@pytest.fixture(autouse=True)
def _noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON)


class Files:
    """A fleet file and a certificate whose loading a test decides."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.fleet: Fleet | Exception = a_fleet()
        self.certificate: Exception | None = None
        self.capsys = capsys
        log = ServiceLog(LogFormat.JSON)
        self.service = AuditService(a_fleet(), all_healthy, interval_seconds=60)
        self.loaded = LoadedFiles(
            self._load,
            [FileToLoad("the certificate", self._certificate)],
            self.service,
            log,
            interval_seconds=60,
            is_listed=False,
        )

    def _load(self) -> Fleet:
        if isinstance(self.fleet, Exception):
            raise self.fleet
        return self.fleet

    def _certificate(self) -> None:
        if self.certificate is not None:
            raise self.certificate

    def reload(self, *, everything: bool = True) -> list[tuple[str, str]]:
        self.loaded.reload(everything=everything)
        lines = map(json.loads, self.capsys.readouterr().err.splitlines())
        return [(each["event"], each["message"]) for each in lines]

    @property
    def problem(self) -> str | None:
        return self.service.results().configuration.problem

    @property
    def clusters(self) -> list[str]:
        return [each.cluster for each in self.service.results().clusters]


@pytest.fixture
def files(capsys: pytest.CaptureFixture[str]) -> Files:
    return Files(capsys)


def test_a_new_fleet_is_used(files: Files) -> None:
    files.fleet = a_fleet(a_cluster_to_read("x"), a_cluster_to_read("y"))
    assert files.reload() == [("loaded", "the fleet file was loaded: 2 clusters")]
    assert (files.clusters, files.problem) == (["x", "y"], None)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (InventoryProblem("line 3: bad", "line 4: worse"), "line 3: bad; line 4: worse"),
        (RuntimeError("boom"), "RuntimeError: boom"),
    ],
)
def test_a_bad_fleet_file_changes_nothing_and_is_shown(
    files: Files, error: Exception, shown: str
) -> None:
    files.fleet = error
    text = f"the fleet file could not be loaded; the one before stays in use: {shown}"
    assert files.reload() == [("not_loaded", text)]
    assert (files.clusters, files.problem) == (["pair"], f"the fleet file: {shown}")
    audit_all(files.service)
    ready = readiness_of(files.service.results(), journal_problem=None)
    assert ready.is_ready
    assert ready.lines == ("ready: 1 cluster", f"could not be loaded again: {files.problem}")
    assert files.reload(everything=False) == [], "the same reason is logged once"
    assert files.reload() == [("not_loaded", text)], "a request gets the reason each time"
    files.fleet = a_fleet()
    assert files.reload(everything=False)[0][0] == "loaded"
    assert files.problem is None


def test_one_bad_file_does_not_keep_others_from_being_loaded(files: Files) -> None:
    files.certificate = UsageProblem("cert.pem: no certificate")
    files.fleet = a_fleet(a_cluster_to_read("x"))
    events = files.reload()
    assert [event for event, _ in events] == ["not_loaded", "loaded"]
    assert files.clusters == ["x"]
    assert files.problem == "the certificate: cert.pem: no certificate"
    assert files.reload(everything=False) == []
    assert files.problem is not None, "it was not tried again"
    files.certificate = None
    files.reload()
    assert files.problem is None


def test_the_metrics_of_the_service(files: Files) -> None:
    read = ProceduresRead()
    collector = ServiceCollector(lambda: read, lambda: files.service.results().configuration)

    def values(name: str) -> list[float]:
        [found] = [each for each in collector.collect() if each.name == name]
        return [sample.value for sample in found.samples]

    assert set(values("gtid_audit_procedures")) == {0.0}
    assert values("gtid_audit_configuration_loaded") == [1.0]
    assert values("gtid_audit_fleet_loaded_timestamp_seconds") == [NOON.timestamp()]
    read = ProceduresRead(problem="locked")
    files.fleet = InventoryProblem("bad")
    files.reload()
    assert all(value != value for value in values("gtid_audit_procedures"))  # noqa: PLR0124 - NaN
    assert values("gtid_audit_configuration_loaded") == [0.0]


def lines_of(
    write: Callable[[ServiceLog], None],
    capsys: pytest.CaptureFixture[str],
    *,
    form: LogFormat = LogFormat.JSON,
    least: LogLevel = LogLevel.INFO,
) -> list[str]:
    write(ServiceLog(form, least=least))
    texts = capsys.readouterr()
    assert texts.out == ""
    return texts.err.splitlines()


def a_hole() -> FindingChange:
    [hole] = [each for each in audited(holed()).audit.findings if each.code == "H1"]
    return FindingChange(ChangeKind.CAME, hole)


def test_a_finding_as_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    came = a_hole()
    [line] = lines_of(lambda log: log.change(came), capsys)
    found = json.loads(line)
    assert (found["event"], found["level"], found["code"]) == ("finding_came", "critical", "H1")
    assert found["message"] == "new finding H1 bypassed by file position, pair: a → b"
    assert (found["gtid_count"], "gtid_set" in found) == (3, False)
    assert found["time"] == "2026-01-02T12:00:00.000000Z"
    changed = replace(came, kind=ChangeKind.CHANGED, fields=("gtid_set",))
    [line] = lines_of(lambda log: log.change(changed), capsys)
    assert json.loads(line)["changed"] == ["gtid_set"]
    gone = replace(came, kind=ChangeKind.GONE)
    [line] = lines_of(lambda log: log.change(gone), capsys)
    assert json.loads(line)["event"] == "finding_gone"
    assert "explanation" not in json.loads(line)


def test_levels_and_forms(capsys: pytest.CaptureFixture[str]) -> None:
    def write(log: ServiceLog) -> None:
        log.change(a_hole())
        log.write(LogLevel.INFO, "loaded", "a\nforged\x1b[2J line of mysql://u:pw@host/\u2028")

    critical, info = lines_of(write, capsys, form=LogFormat.TEXT)
    assert critical.startswith("2026-01-02T12:00:00.000000Z critical finding_came new finding H1")
    assert info == (
        "2026-01-02T12:00:00.000000Z info loaded a forged\\x1b[2J line of mysql://…@host/"
    )
    assert len(lines_of(write, capsys, least=LogLevel.WARNING)) == 1
    [_, info] = lines_of(write, capsys)
    assert "pw" not in info
    assert "\x1b" not in info


def test_failures_are_logged_until_the_audit_works_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fails = True

    def audit(_fleet: Fleet, _cluster: Cluster) -> AuditedNow:
        if fails:
            raise RuntimeError("boom")
        return audited(holed())

    watcher = LogWatcher(ServiceLog(LogFormat.JSON, least=LogLevel.INFO))
    service = AuditService(a_fleet(), audit, interval_seconds=0.001, watcher=watcher)
    assert service.audit_next()
    fails = False
    while not service.audit_next():
        pass
    service.use_fleet(a_fleet(a_cluster_to_read("other")))
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events[:2] == ["audit_failed", "audit_works"]
    assert set(events[2:-1]) == {"finding_came"}
    assert events[-1] == "cluster_left"
