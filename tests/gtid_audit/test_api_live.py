"""The Python interface against a pair with a fault: docs/python-api.md, tables, types and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from compose import faults
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit import api
from gtid_audit.cli import run
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python-api.md"
ZONED = pa.timestamp("us", tz="UTC")


@pytest.fixture(scope="module")
def broken(installation97: Installation) -> Iterator[Pair]:
    with shapes.pair(installation97) as pair:
        faults.position_bypass(pair)
        yield pair


@pytest.fixture(scope="module")
def runs(broken: Pair, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stored")
    fleet = write_fleet(folder / "fleet.yaml", broken)
    assert run(("snapshot", "--fleet", str(fleet), "--out", str(folder / "runs"))) == 0
    return folder / "runs"


def write_fleet(path: Path, pair: Pair) -> Path:
    servers = "".join(
        f"      - {{name: {one.name}, host: 127.0.0.1, port: {one.port}}}\n"
        for one in pair.servers.values()
    )
    path.write_text(
        f"defaults: {{user: root}}\nclusters:\n  - name: orders\n    servers:\n{servers}"
    )
    return path


def test_the_cells_of_the_page_run(
    broken: Pair,
    runs: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_fleet(tmp_path / "fleet.yaml", broken)
    names: dict[str, Any] = {}
    real = {
        "mysql://audit@db1/?ssl=required": broken.a.dsn,
        "mysql://audit@db2/?ssl=required": broken.b.dsn,
        "/var/lib/gtid-audit/runs": str(runs),
        "/var/lib/mysql": str(broken.a.value("@@log_bin_index")),
    }
    cells = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(cells) == 5
    for cell in cells:
        assert len(cell.splitlines()) <= 10, "an example has ten lines"
        for written, meant in real.items():
            cell = cell.replace(written, meant)  # noqa: PLW2901 - the cell, against real servers
        exec(compile(cell, str(PAGE), "exec"), names)
    out = capsys.readouterr().out
    assert "<AuditResult CRITICAL: 1 cluster, 2 findings>" in out
    assert re.search(r"^H1 critical 127\.0\.0\.1:\d+ [0-9a-f-]{36}:\d", out, re.MULTILINE)
    assert re.search(r"^only on the first: .*only on the second: ", out, re.MULTILINE)
    assert "timestamp[us, tz=UTC]" in out
    assert re.search(r"^missing\.yaml: ", out, re.MULTILINE)
    assert names["by_code"].loc["H1", "critical"] == 1
    assert set(names["servers"]["servers"]) == {one.dsn[13:-1] for one in broken.servers.values()}
    assert len(names["ddl"]) > 0
    assert names["ledger"].gtids == GtidSet.parse(broken.a.value("@@GLOBAL.gtid_executed"))


def test_findings_are_those_of_the_command_in_every_form(
    broken: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    result = api.audit(broken.a.dsn, broken.b.dsn)
    assert run(("pair", broken.a.dsn, broken.b.dsn, "--json")) == 2
    command = json.loads(capsys.readouterr().out)
    assert result.document().keys() == command.keys()
    ours, theirs = (each["findings"][0] for each in (result.document(), command))
    assert ours.keys() == theirs.keys()
    assert ours["id"] == theirs["id"] == result.findings[0].id
    table, frame = result.to_arrow(), result.to_pandas()
    assert table.column_names == list(frame.columns) == list(theirs)
    row = table.to_pylist()[0]
    assert {name for name, value in row.items() if value is None} == {
        name for name, value in theirs.items() if value is None
    }
    assert frame.loc[0, "gtid_count"] == theirs["gtid_count"] == int(row["gtid_count"])
    assert type(frame.loc[0, "gtid_count"]) is int
    read_at: Any = frame["evidence"].tolist()[0][0]["read_at"]
    assert (read_at.utcoffset(), read_at.tzinfo is not None) == (timedelta(0), True)


def test_times_have_a_zone_and_microseconds_live_and_stored(broken: Pair, runs: Path) -> None:
    live = api.read_snapshot(broken.a.dsn, broken.b.dsn)
    stored = api.read_snapshot(stored=runs)
    assert live.to_arrow().schema == stored.to_arrow().schema == SNAPSHOT_SCHEMA
    for result in (live, stored):
        assert [str(kind) for kind in result.to_pandas().dtypes if "datetime" in str(kind)] == [
            "datetime64[us, UTC]"
        ] * 3
        assert len(result.readings) == 4
        assert not result.unread
    results = (live.to_arrow(), api.audit(stored=runs).to_arrow(), api.ledger(_index(broken)))
    for table in (*results[:2], results[2].to_arrow()):
        for kind in _types_within(table.schema):
            assert not pa.types.is_temporal(kind) or kind == ZONED


def _index(pair: Pair) -> str:
    return str(pair.a.value("@@log_bin_index"))


def _types_within(schema: pa.Schema) -> Iterator[pa.DataType]:
    waiting = [column.type for column in schema]
    while waiting:
        kind = waiting.pop()
        yield kind
        if pa.types.is_list(kind):
            waiting.append(kind.value_type)
        elif pa.types.is_struct(kind):
            waiting += [part.type for part in kind.fields]


def test_a_ledger_of_a_live_server_is_that_of_its_files(broken: Pair) -> None:
    files, live = api.ledger(_index(broken)), api.ledger(broken.a.dsn)
    assert files.to_arrow().to_pylist() == live.to_arrow().to_pylist()
    assert (files.gtids, files.is_complete) == (live.gtids, True)
    with pytest.raises(api.InvalidRequest, match="more than 2 transactions"):
        api.ledger(broken.a.dsn, rows_max=2)


def test_servers_are_discovered(broken: Pair) -> None:
    found = api.audit(broken.a.dsn, discover=True)
    assert len(found.clusters[0].servers) == 2
    assert found.findings[0].code == "H1"


def test_an_unreachable_server_is_unknown_and_its_logs_are_an_error(broken: Pair) -> None:
    with shapes_free_port() as port:
        dead = f"mysql://root@127.0.0.1:{port}/"
        result = api.audit(broken.a.dsn, dead, timeout_seconds=2)
        assert result.verdict is api.Verdict.UNKNOWN
        assert f"127.0.0.1:{port}" in {each.server for each in result.unknown}
        assert api.read_snapshot(dead, timeout_seconds=2).unread
        with pytest.raises(api.UnreadableSource, match="Can't connect to MySQL server"):
            api.ledger(dead, timeout_seconds=2)


def shapes_free_port() -> Any:
    """Return a bound port on which no server listens."""
    import socket
    from contextlib import contextmanager

    @contextmanager
    def bound() -> Iterator[int]:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            yield taken.getsockname()[1]

    return bound()


def test_a_password_is_in_no_result_and_no_error(broken: Pair) -> None:
    secret = "ks8-Wq0-unseen"
    broken.a.execute(f"CREATE USER api_audit@'%' IDENTIFIED BY '{secret}'")
    broken.a.execute("GRANT REPLICATION CLIENT, REPLICATION SLAVE ON *.* TO api_audit@'%'")
    dsn = broken.a.dsn.replace("root@", "api_audit@") + "?get_server_public_key=1"
    well, refused = (
        api.read_snapshot(dsn, password=word) for word in (secret, f"{secret}-not-this")
    )
    assert well.readings[0].gtid_executed is not None
    assert refused.readings[0].gtid_executed is None
    shown = f"{well!r}{well.clusters!r}{refused.unread!r}{refused.to_pandas().to_dict()}"
    assert secret not in shown
    with pytest.raises(api.UnreadableSource) as raised:
        api.ledger(dsn, password=f"{secret}-not-this")
    assert secret not in f"{raised.value!r}{raised.getrepr(style='short')}"
