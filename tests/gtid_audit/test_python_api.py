"""The Python interface without a server: arguments, errors, missing packages, warnings."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from gtid_audit import api, optional_packages
from tests.gtid_audit.build import holed
from topology.adapters.parquet import write_snapshots

DSN = "mysql://root@127.0.0.1:1/"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (api.audit, "expected one of dsns, fleet, stored, found none"),
        (lambda: api.audit(DSN, fleet="x"), "found dsns and fleet"),
        (lambda: api.audit("mysql://u:secret@h/"), "password"),
        (lambda: api.audit("not a dsn"), "DSN"),
        (lambda: api.audit(DSN, DSN), "the same server"),
        (lambda: api.audit(DSN, cluster="x"), "cluster is for a fleet file"),
        (lambda: api.audit(fleet="x", password="p"), "password is for DSNs"),
        (lambda: api.audit(fleet="none.yaml"), "none.yaml"),
        (lambda: api.audit(stored="x", content=True), "content is for live servers"),
        (lambda: api.audit(DSN, timeout_seconds=0), "timeout_seconds"),
        (lambda: api.audit(DSN, timeout_seconds=float("nan")), "timeout_seconds"),
        (lambda: api.audit(DSN, allowed_uuids=["x"]), "allowed_uuids"),
        (api.read_snapshot, "found none"),
        (lambda: api.ledger("none.000001"), "no such file"),
        (lambda: api.ledger(DSN, "none.000001"), "of one server, or of files"),
        (api.ledger, "expected a file"),
    ],
)
def test_wrong_arguments_are_an_error_that_names_them(call: Any, words: str) -> None:
    with pytest.raises(api.InvalidRequest, match=words) as raised:
        call()
    assert isinstance(raised.value, ValueError)
    assert "secret" not in str(raised.value)


def test_every_problem_of_a_fleet_file_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "fleet.yaml"
    file.write_text("defaults: {prot: 1}\nclusters: [{name: a, servers: [{nome: x}]}]\n")
    with pytest.raises(api.InvalidRequest) as raised:
        api.audit(fleet=file)
    assert len(raised.value.problems) == 3
    assert raised.value.problems[0].startswith(f"{file}, line 1: defaults.prot: unknown key")


def test_a_stored_run_is_read_or_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(api.UnreadableSource, match="no stored snapshots"):
        api.read_snapshot(stored=tmp_path)
    with pytest.raises(api.UnreadableSource, match="no stored snapshots"):
        api.audit(stored=tmp_path)
    run = write_snapshots(tmp_path, [holed("y")])
    assert api.read_snapshot(stored=tmp_path).clusters == (holed("y"),)
    old = api.audit(stored=tmp_path)
    assert old.verdict is api.Verdict.UNKNOWN
    assert "is too old" in old.unknown[0].reason
    anew = api.audit(stored=tmp_path, max_age=None)
    assert anew.findings
    assert anew.document()["findings"][0]["code"] == anew.findings[0].code
    assert api.audit(stored=tmp_path, max_age=timedelta(days=36500)).findings == anew.findings
    (run / "part-00000.parquet").write_bytes(b"not parquet")
    for call in (api.audit, api.read_snapshot):
        with pytest.raises(api.UnreadableSource):
            call(stored=tmp_path)


@pytest.mark.parametrize("missing", ["pyarrow", "pandas", "numba"])
def test_a_missing_package_names_the_smallest_extra(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_snapshots(tmp_path, [holed("y")])
    result = api.audit(stored=tmp_path, max_age=None)
    monkeypatch.setattr(
        optional_packages, "find_spec", lambda name: None if name == missing else find_spec(name)
    )
    calls: dict[str, Any] = {
        "pyarrow": result.to_arrow,
        "pandas": result.to_pandas,
        "numba": lambda: api.ledger("x"),
    }
    with pytest.raises(api.MissingPackage) as raised:
        calls[missing]()
    extra = "pandas" if missing == "pandas" else "columns"
    assert f"pip install 'gtid-audit[{extra}]'" in str(raised.value)
    assert isinstance(raised.value, ImportError)


@pytest.mark.long
def test_importing_the_interface_imports_no_large_package() -> None:
    code = "import sys, gtid_audit.api; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    large = {"pyarrow", "pandas", "numpy", "pyspark", "typer", "rich", "pydantic", "yaml"}
    assert large.isdisjoint(done.stdout.split())


def test_a_warning_is_a_warning_and_not_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.cnf"
    file.write_text("[client]\nuser=root\npassword=unseen\n")
    file.chmod(0o644)
    with pytest.warns(
        api.GtidAuditWarning, match="every user of this machine can read it"
    ) as caught:
        api.read_snapshot(f"mysql://127.0.0.1:1/?option_file={file}", timeout_seconds=1)
    assert "unseen" not in str(caught[0].message)
    assert capsys.readouterr() == ("", "")


def test_a_result_shows_itself_shortly(tmp_path: Path) -> None:
    write_snapshots(tmp_path, [holed("y")])
    result = api.audit(stored=tmp_path, max_age=None)
    assert repr(result) == f"<AuditResult {result.verdict.value}: 1 cluster, 1 finding>"
    assert repr(api.read_snapshot(stored=tmp_path)) == "<SnapshotResult 1 cluster, 4 readings>"
    with pytest.raises(api.InvalidRequest, match="findings, clusters or unknown"):
        result.to_arrow("servers")  # type: ignore[arg-type]
