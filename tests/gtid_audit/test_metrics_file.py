"""`audit --write-metrics`: the file is what `serve` would answer, and is never half of it."""

import os
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gtid_audit.cli import run
from gtid_audit.tasks import fleet_reading
from tests.gtid_audit.build import half_read, holed
from tests.gtid_audit.test_labels import FLEET

SNAPSHOTS = (holed("hole"), half_read("plain"))


@pytest.fixture(autouse=True)
def _read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_reading, "collect_fleet", lambda *_a, **_k: iter(SNAPSHOTS))


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    return str(path)


def test_the_file_has_the_series_without_a_schedule(fleet: str, tmp_path: Path) -> None:
    file = tmp_path / "gtid.prom"
    file.write_text("from before")
    assert run(("audit", "--fleet", fleet, "--write-metrics", str(file), "--json")) == 2
    families = {each.name: each for each in text_string_to_metric_families(file.read_text())}
    verdicts = {
        (sample.labels["cluster"], sample.labels["verdict"]): sample.labels.get("team")
        for sample in families["gtid_audit_verdict"].samples
        if sample.value
    }
    assert verdicts == {("hole", "CRITICAL"): "pay ä", ("plain", "UNKNOWN"): ""}
    assert "gtid_audit_last_audit_timestamp_seconds" in families
    seconds = [each.value for each in families["gtid_audit_audit_duration_seconds"].samples]
    assert seconds == [1.04, 1.04], "from the first reading to the end of the last one"
    for absent in ("audits", "audit_failures", "interval_seconds"):
        assert f"gtid_audit_{absent}" not in families
    assert file.stat().st_mode & 0o777 == 0o644
    assert {each.name for each in tmp_path.iterdir()} == {"fleet.yaml", "gtid.prom"}


def test_a_file_that_cannot_be_replaced_stays(
    fleet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gtid.prom"
    file.write_text("from before")

    def full(_number: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", full)
    assert run(("audit", "--fleet", fleet, "--write-metrics", str(file))) == 64
    assert "No space left on device" in capsys.readouterr().err
    assert file.read_text() == "from before"
    assert {each.name for each in tmp_path.iterdir()} == {"fleet.yaml", "gtid.prom"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--fleet", "{fleet}", "--write-metrics", "{folder}/x/y"), "no such directory"),
        (("--fleet", "{fleet}", "--write-metrics", "{folder}"), "not a regular file"),
        (("--fleet", "{fleet}", "--write-metrics", "/dev/null"), "not a regular file"),
        (("--fleet", "{fleet}", "--engine", "spark", "--write-metrics", "n"), "--engine local"),
        (("--snapshots", "{folder}", "--write-metrics", "n"), "not for --snapshots"),
        (("mysql://u@127.0.0.1:1", "--write-metrics", "n"), "is for fleets"),
    ],
)
def test_where_it_is_refused(
    fleet: str,
    tmp_path: Path,
    arguments: tuple[str, ...],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [each.format(fleet=fleet, folder=tmp_path) for each in arguments]
    assert run(("audit", *given)) == 64
    assert said in capsys.readouterr().err
