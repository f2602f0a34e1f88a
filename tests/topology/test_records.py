"""Records: what is written is read back equal; what is not ours is refused by the field's name."""

import dataclasses
import json
import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GNO_END, GtidSet, Tsid
from spark_audit.result_columns import AUDIT_SCHEMA, FINDING_SCHEMA
from tests.hypothesis_profiles import laws
from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA, records_of_table, table_of_records
from topology.catalogue import findings
from topology.catalogue.findings import (
    ClusterAudit,
    Evidence,
    Finding,
    Grade,
    Severity,
    Unknown,
    Verdict,
)
from topology.catalogue.strategy_table import STRATEGIES
from topology.documents import records
from topology.documents.records import (
    MalformedRecord,
    Record,
    audit_from_record,
    audit_to_record,
    cluster_from_servers,
    finding_from_record,
    finding_to_record,
    snapshot_from_record,
    snapshot_to_record,
    time_from_text,
    time_to_text,
    unknown_from_record,
    unknown_to_record,
)
from topology.readings import snapshot
from topology.readings.group_view import GroupSnapshot
from topology.readings.history_evidence import (
    CommitRecord,
    HistoryEvidence,
    LogSearch,
    LogStart,
    PurgedChange,
)
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot

LAWS = laws(40)

NOON = datetime(2026, 1, 2, 12, 0, 0, 7, tzinfo=UTC)
UUIDS = [UUID(int=number << 120) for number in (1, 0xAB, 0xFF)]

texts = st.text(max_size=20)
int32s = st.integers(0, 2**31 - 1)
int64s = st.integers(0, 2**63 - 1)
first_day, last_day = datetime(1971, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001  (st adds the zone)
times = st.datetimes(first_day, last_day, timezones=st.just(UTC)).map(
    lambda time: time.replace(fold=0)  # UTC repeats no hour
)
tsids = st.builds(Tsid, st.sampled_from(UUIDS), st.sampled_from(["", "dba", "z_9"]))
intervals = st.tuples(tsids, st.integers(1, GNO_END - 1), st.integers(0, 100)).map(
    lambda one: (one[0], one[1], min(one[1] + one[2], GNO_END))
)
gtid_sets = st.lists(intervals, max_size=6).map(GtidSet.from_intervals)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples_of(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=3).map(tuple)


positions = st.builds(
    lambda number, position: LogPosition.of(file=f"binlog.{number:06}", position=position),
    st.integers(1, 2_000_000),
    int64s,
)
workers = st.builds(
    WorkerSnapshot,
    int64s,
    gtid_sets,
    int32s,
    texts,
    state=texts,
    applying_seconds=maybe(int64s),
    last_applied=gtid_sets,
)
channels = st.builds(
    ChannelSnapshot,
    name=texts,
    source_host=texts,
    source_port=int32s,
    source_uuid=maybe(st.sampled_from(UUIDS)),
    auto_position=st.booleans(),
    gtid_retrieved=gtid_sets,
    receiver=st.sampled_from(ThreadState),
    receiver_errno=int32s,
    receiver_error=texts,
    receiver_error_at=texts,
    applier=st.sampled_from(ThreadState),
    applier_errno=int32s,
    applier_error=texts,
    applier_error_at=texts,
    received_to=maybe(positions),
    applied_to=maybe(positions),
    lag_seconds=maybe(int64s),
    filters=tuples_of(texts),
    workers=tuples_of(workers),
    applier_state=texts,
    receiver_state=texts,
    relay_applied_to=maybe(positions),
    delay_seconds=int64s,
    delay_remaining_seconds=maybe(int64s),
    source_server_id=maybe(int64s),
    ignored_server_ids=tuples_of(int64s),
    until=texts,
    skip_counter=int64s,
    last_queued=gtid_sets,
    last_queued_committed_at=maybe(times),
    last_applied=gtid_sets,
    last_applied_at=maybe(times),
)
groups = st.builds(GroupSnapshot, texts, texts, texts, gtid_sets)


evidences = st.builds(
    HistoryEvidence,
    maybe(st.builds(LogStart, texts, times, gtid_sets)),
    tuples_of(st.builds(CommitRecord, gtid_sets, int64s, times, st.booleans(), maybe(times))),
    texts,
    tuples_of(st.builds(LogSearch, texts, texts, texts, gtid_sets, gtid_sets)),
    maybe(tuples_of(st.builds(PurgedChange, times, gtid_sets))),
    maybe(int64s),
)


@st.composite
def servers(draw: st.DrawFn) -> ServerSnapshot:
    started = draw(times)
    return ServerSnapshot(
        cluster=draw(texts),
        name=draw(texts),
        host=draw(texts),
        port=draw(int32s),
        phase=draw(st.sampled_from([1, 2])),
        read_started=started,
        read_ended=started + timedelta(microseconds=draw(st.integers(0, 10**9))),
        server_clock=draw(maybe(times)),
        server_uuid=draw(maybe(st.sampled_from(UUIDS))),
        server_id=draw(maybe(int64s)),
        version=draw(maybe(st.builds(ServerVersion, int32s, int32s, int32s))),
        version_text=draw(maybe(texts)),
        vendor=draw(maybe(st.sampled_from(Vendor))),
        uptime_seconds=draw(maybe(int64s)),
        gtid_executed=draw(maybe(gtid_sets)),
        gtid_purged=draw(maybe(gtid_sets)),
        gtid_owned=draw(maybe(gtid_sets)),
        log_end=draw(maybe(positions)),
        channels=draw(maybe(tuples_of(channels))),
        binary_logs=draw(
            maybe(tuples_of(st.builds(BinaryLog, texts, int64s, maybe(st.booleans()))))
        ),
        settings=draw(maybe(tuples_of(st.tuples(texts, texts)))),
        group=draw(maybe(groups)),
        history_evidence=draw(maybe(evidences)),
        unread=draw(tuples_of(st.builds(UnreadFact, texts, st.sampled_from(UnreadReason), texts))),
    )


found = st.builds(
    Finding,
    code=texts,
    name=texts,
    severity=st.sampled_from(Severity),
    grade=st.sampled_from(Grade),
    cluster=texts,
    source=maybe(texts),
    replica=maybe(texts),
    channel=maybe(texts),
    gtid_set=gtid_sets,
    first_seen=times,
    last_seen=times,
    evidence=st.lists(st.builds(Evidence, texts, texts, texts, times), min_size=1, max_size=3).map(
        tuple
    ),
    explanation=texts,
    strategies=tuples_of(st.sampled_from(sorted(STRATEGIES.values(), key=str))),
    deadline=maybe(times),
)
unknowns = st.builds(Unknown, texts, texts, texts, texts)
audits = st.builds(
    ClusterAudit,
    cluster=texts,
    verdict=st.sampled_from(Verdict),
    servers=tuples_of(texts),
    findings=tuples_of(found),
    unknown=tuples_of(unknowns),
    read_at=maybe(times),
)


def through_json(record: Record) -> Any:
    return json.loads(json.dumps(record))


def through_columns(record: Record, schema: pa.Schema) -> Record:
    (back,) = records_of_table(table_of_records([record], schema))
    return back


def a_server(**changes: Any) -> ServerSnapshot:
    base = ServerSnapshot(
        "c",
        "db1",
        "db1.example",
        3306,
        1,
        NOON,
        NOON + timedelta(seconds=1),
        gtid_executed=GtidSet(),
    )
    return dataclasses.replace(base, **changes)


def a_finding(gtid_set: GtidSet | None = None) -> Finding:
    return Finding(
        code="H1",
        name="bypassed by file position",
        severity=Severity.CRITICAL,
        grade=Grade.PROVED,
        cluster="c",
        source="db1",
        replica="db2",
        channel="",
        gtid_set=GtidSet.parse(f"{UUIDS[0]}:4") if gtid_set is None else gtid_set,
        first_seen=NOON,
        last_seen=NOON,
        evidence=(Evidence("gtid_executed", "…", "db2", NOON),),
        explanation="db2 lacks what db1 has.",
        strategies=(STRATEGIES["refetch"], STRATEGIES["inject_empty"]),
    )


# -- what is written is read back -----------------------------------------------------------------


@pytest.mark.long
@LAWS
@given(servers())
def test_a_snapshot_survives_json(server: ServerSnapshot) -> None:
    back = snapshot_from_record(through_json(snapshot_to_record(server)))
    assert back == server
    assert repr(back) == repr(server)  # some fields take no part in ==


@pytest.mark.long
@LAWS
@given(servers())
def test_a_snapshot_survives_its_columns(server: ServerSnapshot) -> None:
    record = snapshot_to_record(server)
    assert through_columns(record, SNAPSHOT_SCHEMA) == record


@LAWS
@given(found)
def test_a_finding_survives_json_and_columns(finding: Finding) -> None:
    record = finding_to_record(finding)
    assert finding_from_record(through_json(record)) == finding
    assert through_columns(record, FINDING_SCHEMA) == record


@LAWS
@given(audits)
def test_an_audit_survives_json_and_columns(audit: ClusterAudit) -> None:
    record = audit_to_record(audit)
    assert audit_from_record(through_json(record)) == audit
    assert through_columns(record, AUDIT_SCHEMA) == record


@LAWS
@given(unknowns)
def test_an_unknown_survives_json(unknown: Unknown) -> None:
    assert unknown_from_record(through_json(unknown_to_record(unknown))) == unknown


def test_a_count_beyond_what_a_machine_word_holds_stays_exact() -> None:
    everything = GtidSet.from_intervals((Tsid(uuid), 1, GNO_END) for uuid in UUIDS)
    record = finding_to_record(a_finding(everything))
    assert record["gtid_count"] == 3 * (2**63 - 2)
    assert through_columns(record, FINDING_SCHEMA)["gtid_count"] == 3 * (2**63 - 2)


def test_none_and_nothing_stay_apart() -> None:
    unread, empty = a_server(channels=None), a_server(channels=())
    for server in (unread, empty):
        columns = through_columns(snapshot_to_record(server), SNAPSHOT_SCHEMA)
        assert snapshot_from_record(columns).channels == server.channels


def test_a_finding_has_the_fields_of_its_contract_in_order() -> None:
    record = finding_to_record(a_finding())
    assert list(record) == [
        *("id", "code", "name", "severity", "grade", "cluster", "source", "replica", "channel"),
        *("gtid_set", "gtid_count", "first_seen", "last_seen", "deadline"),
        *("evidence", "explanation", "strategies"),
    ]
    assert record["evidence"] == [
        {
            "fact": "gtid_executed",
            "value": "…",
            "read_from": "db2",
            "read_at": "2026-01-02T12:00:00.000007Z",
        }
    ]
    assert record["strategies"] == [
        {
            "name": name,
            "automatic": STRATEGIES[name].automatic,
            "risk": STRATEGIES[name].risk,
            "why": STRATEGIES[name].why,
        }
        for name in ("refetch", "inject_empty")
    ]


@pytest.mark.parametrize(
    "shape",
    [
        (snapshot.ServerSnapshot, records.SNAPSHOT.fields, SNAPSHOT_SCHEMA.names),
        (findings.ClusterAudit, records.AUDIT.fields, AUDIT_SCHEMA.names),
        (findings.Finding, records.FINDING.fields, FINDING_SCHEMA.names),
    ],
    ids=lambda shape: shape[0].__name__,
)
def test_no_field_is_forgotten(shape: tuple[type[Any], dict[str, Any], list[str]]) -> None:
    kind, written, columns = shape
    fields = {one.name for one in dataclasses.fields(kind)}
    assert set(written) - fields <= {"gtid_count"}
    assert fields <= set(written)
    assert list(written) == columns


# -- times ----------------------------------------------------------------------------------------


@LAWS
@given(times)
def test_times_are_utc_with_microseconds_wherever_they_were_taken(time: datetime) -> None:
    text = time_to_text(time.astimezone(timezone(timedelta(hours=5, minutes=30))))
    assert time_from_text(text) == time
    assert len(text) == len("2026-01-02T03:04:05.000006Z")
    assert text.endswith("Z")


def test_a_time_without_a_zone_is_not_written() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        time_to_text(NOON.replace(tzinfo=None))


# -- what is not ours is refused ------------------------------------------------------------------


def changed(record: Record, path: str, value: object) -> Record:
    """Copy a record with the value at a path like `channels.0.name` replaced, or dropped if `...`."""
    copy: Any = through_json(record)
    *parents, last = path.split(".")
    place = copy
    for parent in parents:
        place = place[int(parent) if parent.isdigit() else parent]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return copy  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("gtid_executed", "not a set", "gtid_executed: expected a UUID"),
        ("gtid_executed", ..., "gtid_executed: the field is missing"),
        ("port", "3306", "port: expected a whole number, found '3306'"),
        ("port", True, "port: expected a whole number, found True"),
        ("cluster", None, "cluster: expected a text, found null"),
        ("vendor", "Oracle", "vendor: expected one of 'MySQL', 'Percona'"),
        ("read_ended", "2026-01-02 12:00:01", "read_ended: expected a UTC time like"),
        ("read_ended", "2026-01-02T12:00:01.000000+00:00", "read_ended: expected a UTC time like"),
        ("read_ended", "2026-01-02T11:00:00.000000Z", "record: db1: a reading cannot end before"),
        ("phase", 3, "record: db1: phase 3 is neither"),
        ("server_uuid", "DB1", "server_uuid: expected a UUID in lower case"),
        ("version", "nine", "version: expected a release like 9.7.4, found 'nine'"),
        ("colour", "red", "colour: no such field is known"),
        ("log_end", {"file": "relay", "position": 4}, "log_end: expected a file name that ends"),
        ("unread", {}, "unread: expected a list, found {}"),
        ("unread", ["gtid_executed"], "unread[0]: expected a record, found 'gtid_executed'"),
        ("settings.0.value", 1, "settings[0].value: expected a text, found 1"),
        ("settings.0.value", ..., "settings[0].value: the field is missing"),
    ],
)
def test_a_foreign_snapshot_is_refused_by_the_name_of_the_field(
    path: str, value: object, message: str
) -> None:
    record = snapshot_to_record(a_server(settings=(("gtid_mode", "ON"),)))
    with pytest.raises(MalformedRecord) as refused:
        snapshot_from_record(changed(record, path, value))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("id", "0" * 16, "id: expected"),
        ("gtid_count", 2, "gtid_count: expected 1, which follows from the other fields, found 2"),
        ("evidence", [], "record: a finding H1 without evidence"),
        ("evidence.0.read_at", "now", "evidence[0].read_at: expected a UTC time"),
        ("gtid_set", f"{UUIDS[0]}:4-4", "gtid_set: expected a canonical GTID set"),
    ],
)
def test_a_finding_that_contradicts_itself_is_refused(
    path: str, value: object, message: str
) -> None:
    with pytest.raises(MalformedRecord) as refused:
        finding_from_record(changed(finding_to_record(a_finding()), path, value))
    assert str(refused.value).startswith(message)


@pytest.mark.long
@LAWS
@given(servers(), st.data())
def test_a_truncated_record_names_the_missing_field(
    server: ServerSnapshot, data: st.DataObject
) -> None:
    record = snapshot_to_record(server)
    dropped = data.draw(st.sampled_from(sorted(record)))
    del record[dropped]
    with pytest.raises(MalformedRecord) as refused:
        snapshot_from_record(record)
    assert refused.value.place == dropped


@pytest.mark.parametrize("read", [snapshot_from_record, finding_from_record, audit_from_record])
@pytest.mark.parametrize("foreign", [[], "text", None, 7])
def test_what_is_no_record_at_all_is_refused(
    read: Callable[[Any], object], foreign: object
) -> None:
    with pytest.raises(MalformedRecord, match="record: expected a record, found"):
        read(foreign)


def test_a_refusal_crosses_processes() -> None:
    refused = MalformedRecord("channels[0].name", "expected a text, found 7")
    back = pickle.loads(pickle.dumps(refused))
    assert (str(back), back.place) == (str(refused), "channels[0].name")


# -- readings of one cluster ----------------------------------------------------------------------


def test_readings_are_put_together_from_any_order() -> None:
    readings = [
        a_server(name=name, phase=phase, read_started=at, read_ended=at)
        for phase, at in ((2, NOON + timedelta(seconds=5)), (1, NOON))
        for name in ("db2", "db1")
    ]
    cluster = cluster_from_servers("c", readings)
    assert [server.name for server in cluster.first] == ["db1", "db2"]
    assert {server.phase for server in cluster.last} == {2}
    with pytest.raises(ValueError, match="not of the same servers"):
        cluster_from_servers("c", readings[1:])
    with pytest.raises(ValueError, match="a reading of cluster c among"):
        cluster_from_servers("d", readings)
