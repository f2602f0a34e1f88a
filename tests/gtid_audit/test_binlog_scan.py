"""`binlog scan`: sums are held to the rows, rows to the ledger, and files to servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlog.adapters.heads_server import ServerLogFacts
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.stream_ledger import LedgerBatch
from binlog.errors import DumpBroken
from binlog.event_types import EventType
from binlog.ledger import ledger_summary
from binlog.ledger.ledger_columns import DETAIL_FIELDS, LEDGER_SCHEMA, FileLedger, LedgerRequest
from binlog.ledger.ledger_summary import LedgerSummary, Timeline
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.server import Server
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit import clock
from gtid_audit.cli import run
from gtid_audit.output import Progress
from gtid_audit.tasks import ledger_scan
from gtid_audit.tasks.ledger_scan import scan
from gtid_audit.views.ledger_text import bars, show_summary, size_of
from tests.binlog.builders import UUID_A, Log

A = str(UUID_A)
Said: TypeAlias = pytest.CaptureFixture[str]
Patch: TypeAlias = pytest.MonkeyPatch
AT = datetime.fromtimestamp(1_700_000_000, UTC)  # what the builders put into every header


def _log(*gnos: int) -> Log:
    log = Log()
    log.add(EventType.PREVIOUS_GTIDS, encode(GtidSet()))
    for gno in gnos:
        log.gtid(gno)
        log.query("CREATE TABLE t (a INT)" if gno % 2 else "BEGIN")
        if gno % 2 == 0:
            log.query("INSERT INTO t VALUES (1)")
            log.xid()
    return log


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number, gnos in enumerate(((1, 2, 3), (4, 5)), start=1):
        (tmp_path / f"binlog.{number:06}").write_bytes(bytes(_log(*gnos)))
    return tmp_path


def _json(capsys: Said) -> Any:
    return json.loads(capsys.readouterr().out)


def test_a_summary_counts_what_the_rows_hold(logs: Path, capsys: Said) -> None:
    assert run(("binlog", "scan", str(logs), "--json")) == 0
    found = _json(capsys)
    rows = [row for path in sorted(logs.iterdir()) for row in ledger_of_file(path).rows.to_pylist()]
    assert found["verdict"] == "OK"
    assert (found["transactions"], found["bytes"]) == (5, sum(row["bytes"] for row in rows))
    assert (found["gtid_set"], found["gtid_count"]) == (f"{A}:1-5", 5)
    assert {kind: each["transactions"] for kind, each in found["kinds"].items()} == {
        "ddl": 3,
        "dml": 2,
    }
    assert sum(each["bytes"] for each in found["kinds"].values()) == found["bytes"]
    assert [each["bytes"] for each in found["largest"]] == sorted(
        (row["bytes"] for row in rows), reverse=True
    )
    assert found["largest"][0]["gtid"] == f"{A}:2"
    assert found["first_at"] == found["last_at"] == "2023-11-14T22:13:20.000000Z"
    assert [each["gtid_set"] for each in found["files"]] == [f"{A}:1-3", f"{A}:4-5"]
    for each, path in zip(found["files"], sorted(logs.iterdir()), strict=True):
        assert (each["file"], each["end"]) == (str(path), path.stat().st_size)
        assert (each["server_version"], each["checksum"]) == ("9.7.4", "CRC32")
        assert (each["previous_gtids"], each["error"]) == ("", None)


def test_a_page_for_a_person(logs: Path, capsys: Said) -> None:
    assert run(("binlog", "scan", str(logs))) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.startswith(" OK ")
    words = " ".join(said.out.split())
    assert "2 files · 5 transactions" in words
    assert f"{A}:1-5" in words
    assert "ddl 3" in words
    assert "binlog.000002" in words
    assert str(logs) not in said.out.partition("\n\n")[2]  # names are enough within one folder


def test_lines_of_json_are_the_rows(logs: Path, capsys: Said) -> None:
    assert run(("binlog", "scan", str(logs), "--format", "jsonl")) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ledgers = [ledger_of_file(path).rows for path in sorted(logs.iterdir())]
    rows = [row for rows in ledgers for row in rows.to_pylist()]
    assert len(found) == len(rows) == 5
    for line, row in zip(found, rows, strict=True):
        assert list(line) == LEDGER_SCHEMA.names
        assert line["logged_at"] == "2023-11-14T22:13:20.000000Z"
        assert {**line, "logged_at": AT} == row


def test_parquet_is_the_rows(logs: Path, capsys: Said) -> None:
    out = logs / "ledger.parquet"
    paths = [str(logs / "binlog.000001"), str(logs / "binlog.000002")]
    assert run(("binlog", "scan", *paths, "--out", str(out))) == 0
    assert f"5 rows written to {out}" in " ".join(capsys.readouterr().out.split())
    written = pq.read_table(out)
    assert written.schema.names == LEDGER_SCHEMA.names
    ledgers = [ledger_of_file(Path(path)).rows for path in paths]
    assert written.to_pylist() == [row for rows in ledgers for row in rows.to_pylist()]
    assert [path.name for path in logs.glob("ledger*")] == ["ledger.parquet"]


def test_details_name_tables_and_statements(logs: Path, capsys: Said) -> None:
    assert run(("binlog", "scan", str(logs), "--details", "--format", "jsonl")) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["ddl"] for line in found] == [
        "CREATE TABLE t (a INT)" if gno % 2 else None for gno in range(1, 6)
    ]


def test_digests_are_in_rows_and_parquet(logs: Path, capsys: Said) -> None:
    out = logs / "ledger.parquet"
    both = ("--digests", "--out", str(out), "--format", "jsonl")
    assert run(("binlog", "scan", str(logs / "binlog.0*"), *both)) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    written = pq.read_table(out)["digest"].to_pylist()
    assert [line["digest"] for line in lines] == [f"{digest:016x}" for digest in written]
    # Those of the same statements are the same: what they did, not where they stand.
    assert written[0] == written[2] == written[4] != written[1] == written[3]


def test_damage_is_said_and_what_stood_before_it_is_given(logs: Path, capsys: Said) -> None:
    broken = logs / "binlog.000001"
    data = bytearray(broken.read_bytes())
    place = ledger_of_file(broken).rows["start"].to_pylist()[2]
    data[place : place + 4] = b"\xff\xff\xff\xff"
    data[place + 9 : place + 13] = b"\0\0\0\0"  # an event of no bytes
    broken.write_bytes(bytes(data))
    assert run(("binlog", "scan", str(logs), "--json")) == 3
    found = _json(capsys)
    assert (found["verdict"], found["gtid_set"]) == ("UNKNOWN", f"{A}:1-2:4-5")
    error = found["files"][0]["error"]
    assert (error["file"], error["position"]) == ("binlog.000001", place)
    assert found["files"][0]["end"] == place
    assert run(("binlog", "scan", str(logs))) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert f"stops at byte {place:,}" in said
    assert f"binlog.000001: at byte {place}: " in said
    assert run(("binlog", "scan", str(logs), "--format", "jsonl")) == 3
    lines = capsys.readouterr()
    assert [json.loads(line)["gno"] for line in lines.out.splitlines()] == [1, 2, 4, 5]
    assert f"binlog.000001: at byte {place}: " in lines.err


def test_verify_finds_what_hopping_does_not_look_at(logs: Path, capsys: Said) -> None:
    path = logs / "binlog.000002"
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # in the last event, before its checksum
    path.write_bytes(bytes(data))
    assert run(("binlog", "scan", str(logs), "--verify", "--json")) == 3
    [_, file] = _json(capsys)["files"]
    assert "checksum" in file["error"]["text"]


def test_a_file_that_cannot_be_read_is_one_error(
    logs: Path, capsys: Said, monkeypatch: Patch
) -> None:
    read = ledger_of_file

    def denied(path: Path, request: LedgerRequest) -> Any:
        if path.name == "binlog.000001":
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, request)

    monkeypatch.setattr(ledger_scan, "ledger_of_file", denied)
    assert run(("binlog", "scan", str(logs), "--json")) == 3
    found = _json(capsys)
    assert found["gtid_set"] == f"{A}:4-5"
    assert found["files"][0]["error"]["text"] == "binlog.000001: Permission denied"


def test_a_file_that_goes_meanwhile_is_one_error(logs: Path) -> None:
    paths = [*sorted(logs.iterdir()), logs / "binlog.000003"]
    summary = scan(paths, LedgerRequest(), rows=(), line=Progress(is_shown=False), seconds_max=1)
    assert summary.transactions == 5
    assert [str(error) for error in summary.errors] == ["binlog.000003: No such file or directory"]


def test_a_server_that_breaks_off_leaves_what_it_sent(
    logs: Path, capsys: Said, monkeypatch: Patch
) -> None:
    ledger = ledger_of_file(logs / "binlog.000002")
    facts = ServerLogFacts(GtidSet(), GtidSet(), ("binlog.000001", "binlog.000002"), (700, 500))

    def batches(*_: object, **__: object) -> Iterator[LedgerBatch]:
        yield LedgerBatch(ledger.rows, GtidSet(), "binlog.000002", ledger.end)
        raise DumpBroken("the connection broke: gone")

    monkeypatch.setattr(ledger_scan, "facts_of_server", lambda _: facts)
    monkeypatch.setattr(ledger_scan, "ledger_of_server", batches)
    assert run(("binlog", "scan", "mysql://root@127.0.0.1:1/", "--json")) == 3
    found = _json(capsys)
    assert (found["verdict"], found["gtid_set"]) == ("UNKNOWN", f"{A}:4-5")
    [file] = found["files"]
    assert (file["end"], file["error"]["error"]) == (ledger.end, "DumpBroken")
    assert run(("binlog", "scan", "mysql://root@127.0.0.1:1/")) == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "1 file not read to the end" in said
    assert "the connection broke: gone" in said


def test_a_page_draws_time_and_counts_rows_by_table(capsys: Said) -> None:
    summary = LedgerSummary()
    table = {"schema": "d", "rows_written": 1, "rows_updated": 0, "rows_deleted": 2}
    ledger = twelve_tables_over_an_hour(table)
    summary.add(ledger)
    show_summary(summary, source="binlog.000001", out=None)
    said = capsys.readouterr().out
    [line] = [line for line in said.splitlines() if line.lstrip().startswith("over time")]
    assert line.count("█") == 2  # half of all at each end
    assert "up to 6 transactions" in line
    assert "one column is 0:01:01" in said  # 3,601 seconds in at most 60 parts
    assert "d.t00" in said
    assert "… and 2 others" in said
    assert "12 transactions without GTID" in said
    assert "1 transaction with a statement that ended in an error on its source" in said
    assert "1 transaction whose end is not in the same file" in said


def twelve_tables_over_an_hour(change: dict[str, Any]) -> FileLedger:
    """Twelve transactions, six at each end of an hour, each of a table of its own."""
    schema = LedgerRequest(details=True).schema
    rows = [
        {
            "file": "binlog.000001",
            "kind": "dml",
            "start": 100 * number,
            "end": 100 * number + 100,
            "bytes": 100,
            "server_id": 1,
            "logged_at": AT + timedelta(hours=number // 6),
            "error_code": 1062 * (number == 3),
            "is_complete": number != 11,
            "tables": [{**change, "table": f"t{number:02}"}],
        }
        for number in range(12)
    ]
    whole = [{name: row.get(name) for name in schema.names} for row in rows]
    columns = [
        pa.array([row[name] for row in whole], schema.field(name).type) for name in schema.names
    ]
    return FileLedger("binlog.000001", None, pa.Table.from_arrays(columns, schema=schema), 1200)


def test_wrong_usage_is_said(logs: Path, capsys: Said) -> None:
    wrong = {
        ("--format", "xml"): "--format: expected one of text, json, jsonl",
        ("--json", "--format", "jsonl"): "--json means --format json",
        ("--out", "x.csv"): "ends in .parquet",
        ("--out", str(logs / "none" / "x.parquet")): "No such file or directory",
        ("--timeout", "0"): "--timeout",
    }
    for options, said in wrong.items():
        assert run(("binlog", "scan", str(logs), *options)) == 64, options
        assert said in capsys.readouterr().err
    assert run(("binlog", "scan")) == 64
    assert run(("binlog", "scan", str(logs), "mysql://root@127.0.0.1:1/")) == 64


def test_rows_of_two_files_of_one_name_are_refused(logs: Path, capsys: Said) -> None:
    (logs / "old").mkdir()
    (logs / "old" / "binlog.000001").write_bytes((logs / "binlog.000001").read_bytes())
    both = (str(logs / "old" / "binlog.000001"), str(logs / "binlog.000001"))
    assert run(("binlog", "scan", *both, "--format", "jsonl")) == 64
    assert "more than one file is named binlog.000001" in capsys.readouterr().err
    assert run(("binlog", "scan", *both, "--json")) == 0
    assert [each["file"] for each in _json(capsys)["files"]] == list(both)


def test_quiet_is_the_first_line(logs: Path, capsys: Said) -> None:
    assert run(("binlog", "scan", str(logs))) == 0
    whole = capsys.readouterr().out
    assert run(("binlog", "scan", str(logs), "--quiet")) == 0
    assert capsys.readouterr().out == whole.splitlines(keepends=True)[0]


def test_a_server_that_is_not_there_is_unknown(capsys: Said) -> None:
    assert run(("binlog", "scan", "mysql://root@127.0.0.1:1/")) == 3
    assert "Can't connect" in capsys.readouterr().err


def test_progress_is_a_bar_of_bytes(logs: Path, capsys: Said, monkeypatch: Patch) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: float(next(seconds)))
    paths = sorted(logs.iterdir())
    scan(paths, LedgerRequest(), rows=(), line=Progress(is_shown=True), seconds_max=1)
    said = capsys.readouterr().err
    total = size_of(sum(path.stat().st_size for path in paths))
    assert f"{'█' * 30} {total} of {total} · 5 transactions · binlog.000002" in said


# ---- summing up


_MICROSECONDS = st.integers(0, 10**12) | st.integers(0, 2**50)
_BATCHES = st.lists(
    st.lists(st.tuples(_MICROSECONDS, st.integers(1, 2**40)), min_size=1, max_size=30), max_size=4
)


@pytest.mark.long
@settings(deadline=None)
@given(batches=_BATCHES, slices_max=st.integers(1, 20), cells_max=st.integers(1, 70))
def test_a_timeline_loses_nothing_and_stays_small(
    batches: list[list[tuple[int, int]]], slices_max: int, cells_max: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger_summary, "SLICES_MAX", slices_max)
        timeline = Timeline()
        for batch in batches:
            moments, sizes = zip(*batch, strict=True)
            timeline.add(np.array(moments, np.int64), np.array(sizes, np.int64))
            assert len(timeline.slices) <= slices_max
    given_rows = [row for batch in batches for row in batch]
    expected: dict[int, tuple[int, int]] = {}
    for at, size in given_rows:
        number = at // 1_000_000 // timeline.seconds
        count, total = expected.get(number, (0, 0))
        expected[number] = (count + 1, total + size)
    assert timeline.slices == expected
    cells = timeline.cells(cells_max)
    assert len(cells) <= cells_max
    assert sum(count for count, _ in cells) == len(given_rows)
    assert sum(size for _, size in cells) == sum(size for _, size in given_rows)
    if len(cells) > 1:
        assert timeline.cell_seconds(cells_max) % timeline.seconds == 0
        first = min(timeline.slices) * timeline.seconds
        last = max(at for at, _ in given_rows) // 1_000_000
        assert (last - first) // timeline.cell_seconds(cells_max) == len(cells) - 1


def test_a_file_in_pieces_is_one_file(logs: Path) -> None:
    whole = ledger_of_file(logs / "binlog.000001")
    in_pieces = LedgerSummary()
    for number in range(whole.rows.num_rows):
        in_pieces.add(replace(whole, rows=whole.rows.slice(number, 1)))
    at_once = LedgerSummary()
    at_once.add(whole)
    assert in_pieces.files == at_once.files
    assert in_pieces.kinds == at_once.kinds
    assert in_pieces.timeline.slices == at_once.timeline.slices


@settings(deadline=None)
@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=40), data=st.data())
def test_the_largest_do_not_depend_on_pieces(sizes: list[int], data: st.DataObject) -> None:
    rows = pa.table(
        {
            "bytes": sizes,
            "start": range(len(sizes)),
            "kind": ["dml"] * len(sizes),
            "uuid": [None] * len(sizes),
            "tag": [None] * len(sizes),
            "gno": [None] * len(sizes),
        }
    )
    summary = LedgerSummary()
    at = 0
    while at < len(sizes):
        piece = rows.slice(at, data.draw(st.integers(1, len(sizes) - at)))
        summary._add_largest("f", piece, piece["bytes"].to_numpy())
        at += piece.num_rows
    expected = sorted(enumerate(sizes), key=lambda each: (-each[1], each[0]))[:5]
    assert [(each.start, each.bytes) for each in summary.largest] == expected


def test_rows_are_counted_by_table() -> None:
    changes = [
        [{"schema": "d", "table": "t", "rows_written": 2, "rows_updated": 0, "rows_deleted": 1}],
        None,
        [
            {"schema": "d", "table": "t", "rows_written": 1, "rows_updated": 5, "rows_deleted": 0},
            {"schema": "d", "table": "u", "rows_written": 1, "rows_updated": 0, "rows_deleted": 0},
        ],
    ]
    summary = LedgerSummary()
    summary._add_tables(pa.table({"tables": pa.array(changes, DETAIL_FIELDS[0].type)}))
    assert summary.rows_by_table() == [
        ("d", "t", {"rows_written": 3, "rows_updated": 5, "rows_deleted": 1}),
        ("d", "u", {"rows_written": 1, "rows_updated": 0, "rows_deleted": 0}),
    ]


def test_small_pictures_and_sizes() -> None:
    assert bars((0, 1, 8, 4)) == " ▁█▄"
    assert bars((0, 1, 1_000_000)) == " ▁█"
    assert bars((0, 0)) == "  "
    assert bars(()) == ""
    assert [size_of(n) for n in (1, 999, 1000, 999_960, 12_345_678, 10**18)] == [
        "1 byte",
        "999 bytes",
        "1.0 kB",
        "1.0 MB",
        "12.3 MB",
        "1000.0 PB",
    ]


# ---- live servers


@pytest.fixture(scope="module", params=["installation97", "installation56"])
def busy(request: pytest.FixtureRequest) -> Iterator[Server]:
    installation: Installation = request.getfixturevalue(request.param)
    with shapes.single(installation) as server:
        server.execute(
            "CREATE DATABASE d",
            "CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT) ENGINE=InnoDB",
            *(f"INSERT INTO d.t VALUES ({number}, REPEAT('b', {number}))" for number in range(20)),
            "FLUSH BINARY LOGS",
            "UPDATE d.t SET b = 'x'",
            "FLUSH BINARY LOGS",
            "DELETE FROM d.t",
        )
        yield server


def test_a_server_and_its_files_give_the_same_rows(busy: Server, capsys: Said) -> None:
    assert run(("binlog", "scan", busy.dsn, "--format", "jsonl")) == 0
    from_server = capsys.readouterr()
    files = str(busy.datadir / "binlog.0*")
    assert run(("binlog", "scan", files, "--format", "jsonl")) == 0
    assert from_server == capsys.readouterr()
    assert from_server.err == ""
    assert len(from_server.out.splitlines()) == 24
    assert run(("binlog", "scan", busy.dsn, "--format", "jsonl", "--digests", "--verify")) == 0
    with_digests = capsys.readouterr()
    assert run(("binlog", "scan", files, "--format", "jsonl", "--digests")) == 0
    assert with_digests == capsys.readouterr()
    digests = [json.loads(line)["digest"] for line in with_digests.out.splitlines()]
    assert all(len(digest) == 16 for digest in digests)
    assert len(set(digests)) == 24
    assert run(("binlog", "scan", busy.dsn, "--format", "jsonl", "--details")) == 0
    with_details = capsys.readouterr()
    assert run(("binlog", "scan", files, "--format", "jsonl", "--details")) == 0
    assert with_details == capsys.readouterr()
    lines = [json.loads(line) for line in with_details.out.splitlines()]
    assert [line["ddl"] for line in lines[:2]] == [
        "CREATE DATABASE d",
        "CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT) ENGINE=InnoDB",
    ]
    assert [line["tables"][0]["rows_deleted"] for line in lines[2:]] == [0] * 21 + [20]


def test_a_server_is_summed_up(busy: Server, capsys: Said) -> None:
    assert run(("binlog", "scan", busy.dsn, "--json")) == 0
    found = _json(capsys)
    assert found["verdict"] == "OK"
    assert found["gtid_set"] == str(GtidSet.parse(busy.value("@@GLOBAL.gtid_executed")))
    assert len(found["files"]) == 3
    assert found["kinds"]["dml"]["transactions"] == 22
    assert run(("binlog", "scan", busy.dsn)) == 0
    assert capsys.readouterr().out.startswith(" OK ")


def test_gtids_of_a_server_are_located(busy: Server, capsys: Said) -> None:
    executed = str(GtidSet.parse(busy.value("@@GLOBAL.gtid_executed")))
    assert run(("binlog", "locate", executed, busy.dsn, "--json")) == 0
    found = _json(capsys)
    assert (found["verdict"], found["absent"]) == ("OK", [])
    assert run(("binlog", "scan", busy.dsn, "--format", "jsonl")) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    places = [
        (each["file"], place["start"], place["end"])
        for each in found["files"]
        for place in each["transactions"]
    ]
    assert places == [(row["file"], row["start"], row["end"]) for row in rows]


def test_secrets_reach_no_output(busy: Server, capsys: Said, monkeypatch: Patch) -> None:
    """A password that is wrong, and one that is right."""
    busy.execute("CREATE USER reader@'%' IDENTIFIED BY 'hunter2SECRET'")
    busy.execute("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO reader@'%'")
    dsn = busy.dsn.replace("root", "reader")
    for password, status in (("hunter2WRONG", 3), ("hunter2SECRET", 0)):
        monkeypatch.setenv("GTID_AUDIT_PASSWORD", password)
        assert run(("binlog", "scan", dsn, "--json")) == status
        assert run(("binlog", "locate", f"{A}:1", dsn)) == (status or 1)
        assert "hunter2" not in "".join(capsys.readouterr())


def test_hashes_of_passwords_reach_no_output(busy: Server, capsys: Said) -> None:
    """A log has what CREATE USER stores; only --redo, which executes it again, needs it."""
    before = busy.value("@@GLOBAL.gtid_executed")
    busy.execute("CREATE USER hashed@'%' IDENTIFIED BY 'hunter2SECRET'")
    made = busy.value(f"GTID_SUBTRACT(@@GLOBAL.gtid_executed, '{before}')")
    for command in (
        ("binlog", "show", made, busy.dsn),
        ("binlog", "show", made, busy.dsn, "--json"),
        ("binlog", "scan", busy.dsn, "--details"),
        ("binlog", "scan", busy.dsn, "--details", "--json"),
    ):
        assert run(command) == 0
        printed = "".join(capsys.readouterr())
        assert "$A$005$" not in printed
        if command[1] == "show":
            assert "CREATE USER 'hashed'@'%' IDENTIFIED (hidden)" in printed
