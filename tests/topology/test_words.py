"""What servers call themselves and their columns, and what must never be shown."""

import copy
import dataclasses
import logging
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet, MalformedGtid, MalformedGtidSet, MalformedText, Tsid
from tests.hypothesis_profiles import laws
from topology.adapters.status import (
    channel_from_row,
    hides_workers,
    parse_owned,
    workers_by_channel,
    workers_of_processlist,
)
from topology.readings.dialect import (
    FILTER_COLUMNS,
    SETTINGS,
    STATUS_COLUMNS,
    Dialect,
    dialect_of,
)
from topology.readings.snapshot import LogPosition, ThreadState
from topology.readings.target import NO_PASSWORD, Secret, ServerTarget
from topology.readings.vendors import Vendor, vendor_of
from topology.readings.version import ServerVersion, UnreadableVersion
from topology.readings.worker import ROW_LOCK_RETRY, ROW_LOCK_WAIT

LAWS = laws()
UUIDS = [UUID(int=number) for number in (0x1, 0x12345678 << 96, 0xABCDEF12 << 96, (1 << 128) - 1)]
versions = st.builds(ServerVersion, st.integers(5, 30), st.integers(0, 9), st.integers(0, 60))

# -- versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5.6.24-log", (5, 6, 24)),
        ("8.0.36-28", (8, 0, 36)),
        (" 9.7.4\n", (9, 7, 4)),
        ("26.7.0-commercial", (26, 7, 0)),
        ("8.4", (8, 4, 0)),
        ("10.11.6-MariaDB-1:10.11.6+maria~deb12", (10, 11, 6)),
    ],
)
def test_a_version_is_read_as_numbers(text: str, expected: tuple[int, int, int]) -> None:
    version = ServerVersion.parse(text)
    assert (version.major, version.minor, version.patch) == expected
    assert str(version) == ".".join(map(str, expected))


@pytest.mark.parametrize("text", ["", "nine", "v8.0.1", "8", "8.", "\u0668.0.1"])
def test_a_text_without_a_release_number_is_refused(text: str) -> None:
    with pytest.raises(UnreadableVersion, match="expected a release number, found"):
        ServerVersion.parse(text)


@LAWS
@given(versions, versions)
def test_versions_compare_as_numbers(left: ServerVersion, right: ServerVersion) -> None:
    key = dataclasses.astuple
    assert (left < right) == (key(left) < key(right))
    assert ServerVersion.parse(str(left)) == left


def test_no_version_is_compared_as_text() -> None:
    assert ServerVersion(8, 0, 9) < ServerVersion(8, 0, 22) < ServerVersion(26, 7, 0)


@pytest.mark.parametrize(
    ("version", "comment", "expected"),
    [
        ("8.0.36", "MySQL Community Server - GPL", Vendor.MYSQL),
        ("9.7.4", "(Debian)", Vendor.MYSQL),
        ("8.0.36-28", "Percona Server (GPL), Release 28", Vendor.PERCONA),
        ("8.0.mysql_aurora.3.05.2", "Source distribution aurora", Vendor.AURORA),
        ("10.11.6-MariaDB", "Debian 12", Vendor.MARIADB),
    ],
)
def test_the_vendor_is_what_the_server_says(version: str, comment: str, expected: Vendor) -> None:
    assert vendor_of(version_text=version, version_comment=comment) is expected


# -- dialect --------------------------------------------------------------------------------------

STATEMENTS = {
    # version: replica status, change source, log status, prefix of variables
    (5, 6, 24): ("SHOW SLAVE STATUS", "CHANGE MASTER TO", "SHOW MASTER STATUS", "slave_"),
    (5, 7, 44): ("SHOW SLAVE STATUS", "CHANGE MASTER TO", "SHOW MASTER STATUS", "slave_"),
    (8, 0, 21): ("SHOW SLAVE STATUS", "CHANGE MASTER TO", "SHOW MASTER STATUS", "slave_"),
    (8, 0, 22): ("SHOW REPLICA STATUS", "CHANGE MASTER TO", "SHOW MASTER STATUS", "slave_"),
    (8, 0, 25): (
        "SHOW REPLICA STATUS",
        "CHANGE REPLICATION SOURCE TO",
        "SHOW MASTER STATUS",
        "slave_",
    ),
    (8, 1, 0): (
        "SHOW REPLICA STATUS",
        "CHANGE REPLICATION SOURCE TO",
        "SHOW MASTER STATUS",
        "replica_",
    ),
    (8, 4, 0): (
        "SHOW REPLICA STATUS",
        "CHANGE REPLICATION SOURCE TO",
        "SHOW BINARY LOG STATUS",
        "replica_",
    ),
    (26, 7, 0): (
        "SHOW REPLICA STATUS",
        "CHANGE REPLICATION SOURCE TO",
        "SHOW BINARY LOG STATUS",
        "replica_",
    ),
}


@pytest.mark.parametrize("version", STATEMENTS)
def test_each_version_is_spoken_to_in_its_words(version: tuple[int, int, int]) -> None:
    dialect = dialect_of(ServerVersion(*version))
    words = (
        dialect.show_replica_status,
        dialect.change_source,
        dialect.show_binary_log_status,
        dialect.replica_variable_prefix,
    )
    assert words == STATEMENTS[version]
    noun = words[0].split()[1]
    assert dialect.start_replica == f"START {noun}"
    assert dialect.stop_replica == f"STOP {noun}"
    assert dialect.reset_replica == f"RESET {noun}"


def rank(dialect: Dialect) -> list[int]:
    """Number every field's values by age."""
    oldest = dialect_of(ServerVersion(5, 6, 0))
    return [
        int(getattr(dialect, one.name) != getattr(oldest, one.name))
        for one in dataclasses.fields(Dialect)
    ]


@LAWS
@given(versions, versions)
def test_no_word_comes_back(left: ServerVersion, right: ServerVersion) -> None:
    """Each row has one change, and what a version has brought the later ones have."""
    earlier, later = sorted([left, right])
    assert all(
        before <= after
        for before, after in zip(rank(dialect_of(earlier)), rank(dialect_of(later)), strict=True)
    )


def test_every_field_changes_once() -> None:
    for one in dataclasses.fields(Dialect):
        values = [
            getattr(dialect_of(ServerVersion(*numbers)), one.name)
            for numbers in (
                *((5, 6, 0), (5, 7, 0), (5, 7, 5), (8, 0, 0), (8, 0, 3), (8, 0, 4)),
                *((8, 0, 22), (8, 0, 23), (8, 0, 26), (8, 2, 0), (8, 3, 0), (99, 0, 0)),
            )
        ]
        changes = [before for before, after in pairwise(values) if before != after]
        assert len(changes) == 1, one.name


def test_a_channel_is_named_only_where_there_are_channels() -> None:
    new, old = dialect_of(ServerVersion(9, 7, 4)), dialect_of(ServerVersion(5, 6, 24))
    assert new.for_channel("'from_b'") == " FOR CHANNEL 'from_b'"
    assert new.for_channel("''") == new.for_channel(None) == old.for_channel("''") == ""
    with pytest.raises(AssertionError, match="only the default one"):
        old.for_channel("'from_b'")


def test_settings_and_columns_name_nothing_twice() -> None:
    for table in (SETTINGS, STATUS_COLUMNS):
        names = [name for names in table.values() for name in names]
        assert len(set(names)) == len(names)


# -- rows of status -------------------------------------------------------------------------------

UUID_B = "bbbbbbbb-0000-0000-0000-000000000000"
NEW_ROW: dict[str, Any] = {
    "Source_Host": "db2",
    "Source_Port": 3306,
    "Source_UUID": UUID_B,
    "Auto_Position": 1,
    "Retrieved_Gtid_Set": f"{UUID_B}:1-9",
    "Replica_IO_Running": "Yes",
    "Replica_SQL_Running": "No",
    "Last_IO_Errno": 0,
    "Last_IO_Error": "",
    "Last_IO_Error_Timestamp": "",
    "Last_SQL_Errno": 1062,
    "Last_SQL_Error": "Duplicate entry",
    "Last_SQL_Error_Timestamp": "260102 12:00:00",
    "Source_Log_File": "binlog.000007",
    "Read_Source_Log_Pos": 500,
    "Relay_Source_Log_File": "binlog.000007",
    "Exec_Source_Log_Pos": 400,
    "Seconds_Behind_Source": None,
    "Replica_SQL_Running_State": "",
    "Replica_IO_State": "Waiting for source to send event",
    "Relay_Log_File": "relay.000002",
    "Relay_Log_Pos": 1019,
    "SQL_Delay": 3600,
    "SQL_Remaining_Delay": 7,
    "Source_Server_Id": 2,
    "Replicate_Ignore_Server_Ids": "5, 77",
    "Skip_Counter": 3,
    "Until_Condition": "SQL_BEFORE_GTIDS",
    "Until_Log_File": "binlog.000009",
    "Until_Log_Pos": 4,
    "Channel_Name": "from_b",
    **dict.fromkeys(FILTER_COLUMNS, ""),
    "Replicate_Do_DB": "shop",
    "Replicate_Wild_Ignore_Table": "shop.tmp%",
}
OLD_NAMES = {name: names[-1] for names in STATUS_COLUMNS.values() for name in names}


def test_both_ages_of_words_say_the_same() -> None:
    old_row = {OLD_NAMES.get(name, name): value for name, value in NEW_ROW.items()}
    assert "Master_UUID" in old_row
    assert channel_from_row(NEW_ROW, {}) == channel_from_row(old_row, {})


def test_a_row_becomes_a_channel() -> None:
    workers = workers_by_channel(
        [
            {"channel": "from_b", "worker_id": 2, "applying": "ANONYMOUS", "errno": 0, "error": ""},
            {
                "channel": "from_b",
                "worker_id": 1,
                "applying": f"{UUID_B}:8",
                "errno": 5,
                "error": "e",
            },
            {"channel": "other", "worker_id": 1, "applying": "", "errno": 0, "error": ""},
        ]
    )
    channel = channel_from_row(NEW_ROW, workers)
    assert (channel.name, channel.source_host, channel.source_port) == ("from_b", "db2", 3306)
    assert channel.source_uuid == UUID(UUID_B)
    assert channel.auto_position is True
    assert channel.gtid_retrieved == GtidSet.parse(f"{UUID_B}:1-9")
    assert (channel.receiver, channel.applier) == (ThreadState.RUNNING, ThreadState.STOPPED)
    assert (channel.applier_errno, channel.applier_error) == (1062, "Duplicate entry")
    assert channel.has_error
    assert channel.received_to == LogPosition.of(file="binlog.000007", position=500)
    assert channel.applied_to == LogPosition.of(file="binlog.000007", position=400)
    assert channel.lag_seconds is None
    assert channel.filters == ("Replicate_Do_DB=shop", "Replicate_Wild_Ignore_Table=shop.tmp%")
    assert [worker.worker_id for worker in channel.workers] == [1, 2]
    assert channel.gtid_applying == GtidSet.parse(f"{UUID_B}:8")
    assert (channel.applier_state, channel.receiver_state) == ("", NEW_ROW["Replica_IO_State"])
    assert channel.relay_applied_to == LogPosition.of(file="relay.000002", position=1019)
    assert (channel.delay_seconds, channel.delay_remaining_seconds) == (3600, 7)
    assert channel.source_server_id == 2
    assert (channel.ignored_server_ids, channel.until) == ((5, 77), "SQL_BEFORE_GTIDS")
    assert channel.skip_counter == 3


@pytest.mark.parametrize(
    ("kind", "until"),
    [
        ("None", ""),
        ("Master", "SOURCE_LOG_POS binlog.000009:4"),
        ("Source", "SOURCE_LOG_POS binlog.000009:4"),
        ("Relay", "RELAY_LOG_POS binlog.000009:4"),
        ("SQL_AFTER_MTS_GAPS", "SQL_AFTER_MTS_GAPS"),
        ("DONE", "SQL_AFTER_MTS_GAPS"),  # the server's word once the gaps are filled
    ],
)
def test_the_condition_of_until_has_a_place_only_where_it_is_one(kind: str, until: str) -> None:
    assert channel_from_row({**NEW_ROW, "Until_Condition": kind}, {}).until == until


def test_what_authenticates_an_account_is_in_no_error_text() -> None:
    statement = "CREATE USER 'u'@'%' IDENTIFIED WITH 'caching_sha2_password' AS '$A$005$SaltHash'"
    error = f"Error 'Operation CREATE USER failed for 'u'@'%'' on query. Query: '{statement}'"
    worker = {"channel": "from_b", "worker_id": 1, "applying": "", "errno": 1396, "error": error}
    row = {**NEW_ROW, "Last_SQL_Error": error}
    channel = channel_from_row(row, workers_by_channel([worker]))
    for text in (channel.applier_error, channel.workers[0].error):
        assert text.endswith("Query: 'CREATE USER 'u'@'%' IDENTIFIED (hidden)")


def test_workers_carry_the_times_of_their_transactions() -> None:
    queued = {"queued": f"{UUID_B}:9", "queued_committed_at": "1767355200.000007"}
    idle = {"errno": 0, "error": "", "applying": "", "applying_seconds": None}
    waiting = {"errno": 0, "error": "", "applying": f"{UUID_B}:8", "applying_seconds": 61}
    rows = [
        {"channel": "from_b", "worker_id": 1, **waiting, **queued, "waits_for_row": 1}
        | {"state": "Applying batch of row changes (update)", "applied": "", "applied_at": "0"},
        {"channel": "from_b", "worker_id": 2, **idle, **queued, "state": None}
        | {"applied": f"{UUID_B}:6", "applied_at": "1767355199.5"},
        {"channel": "from_b", "worker_id": 3, **idle, **queued, "state": "Waiting for an event"}
        | {"applied": f"{UUID_B}:7", "applied_at": "1767355199.25"},
        {"channel": "from_b", "worker_id": 4, **waiting, **queued, "retries_for_row": 1}
        | {"state": "Applying batch of row changes (update)", "waits_for_row": 0},
    ]
    channel = channel_from_row(NEW_ROW, workers_by_channel(rows))
    assert [worker.applying_seconds for worker in channel.workers] == [61, None, None, 61]
    assert [worker.state for worker in channel.workers] == [
        f"Applying batch of row changes (update) ({ROW_LOCK_WAIT})",
        "",
        "Waiting for an event",
        f"Applying batch of row changes (update) ({ROW_LOCK_RETRY})",
    ]
    assert channel.last_queued == GtidSet.parse(f"{UUID_B}:9")
    noon = datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert channel.last_queued_committed_at == noon + timedelta(microseconds=7)
    assert channel.last_applied == GtidSet.parse(f"{UUID_B}:6-7")
    assert channel.last_applied_at == noon - timedelta(seconds=0.5)


OLD_STATUS = {
    "Slave_SQL_Running": "Yes",
    "Slave_SQL_Running_State": "Slave has read all relay log; waiting for the slave I/O thread to"
    " update it",
    "Slave_IO_State": "Waiting for master to send event",
}


def a_thread(number: int | None, state: str | None, seconds: int = 0) -> dict[str, Any]:
    return {"workers": 2, "thread": number, "seconds": seconds, "state": state}


def test_the_workers_of_5_6_are_the_threads_that_are_neither_receiver_nor_applier() -> None:
    states = [state[:64] for name, state in OLD_STATUS.items() if name.endswith("State")]
    rows = [a_thread(number, state) for number, state in enumerate(states, start=11)]
    rows += [a_thread(13, "Waiting for an event from Coordinator", 7)]
    rows += [a_thread(14, "Waiting for table level lock", 12)]
    workers = workers_of_processlist(rows, [OLD_STATUS])[""]
    assert [(row["worker_id"], row["applying_seconds"]) for row in workers] == [
        (13, None),
        (14, 12),
    ]
    assert not hides_workers(rows, [OLD_STATUS])


def test_an_event_of_5_6_that_is_dated_in_the_future_makes_the_lag_negative() -> None:
    rows = [a_thread(11, "Waiting for table metadata lock", -863_951), a_thread(12, "", 40)]
    status = OLD_STATUS | {"Slave_SQL_Running_State": "Waiting for table metadata lock"}
    [row] = workers_of_processlist([rows[0]], [status])[""]
    assert (row["worker_id"], row["event_seconds"]) == (None, -863_951)
    assert (
        min(each.get("event_seconds", 0) for each in workers_of_processlist(rows, [status])[""]) < 0
    )


def test_workers_that_an_account_may_not_see_are_noticed() -> None:
    nothing = [a_thread(None, None)]
    assert workers_of_processlist(nothing, [OLD_STATUS]) == {}
    assert hides_workers(nothing, [OLD_STATUS])
    assert not hides_workers(nothing, [OLD_STATUS | {"Slave_SQL_Running": "No"}])
    assert not hides_workers([nothing[0] | {"workers": 0}], [OLD_STATUS])


def test_a_channel_without_workers_keeps_what_its_receiver_queued() -> None:
    row = {"channel": "from_b", "worker_id": None, "queued": f"{UUID_B}:9", "errno": None}
    channel = channel_from_row(NEW_ROW, workers_by_channel([row]))
    assert (channel.workers, channel.last_queued) == ((), GtidSet.parse(f"{UUID_B}:9"))


def test_a_channel_that_never_connected_and_a_server_without_channels_by_name() -> None:
    row = NEW_ROW | {"Source_UUID": "", "Source_Log_File": "", "Read_Source_Log_Pos": 4}
    del row["Channel_Name"]
    channel = channel_from_row(row | {"Seconds_Behind_Source": 7}, {})
    assert (channel.name, channel.source_uuid, channel.received_to) == ("", None, None)
    assert channel.lag_seconds == 7


@pytest.mark.parametrize("state", ["Yes", "No", "Connecting"])
def test_every_state_of_the_receiver_is_known(state: str) -> None:
    assert channel_from_row(NEW_ROW | {"Replica_IO_Running": state}, {}).receiver.value == state


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Source_Host": ...}, "has none of Source_Host, Master_Host"),
        ({"Replica_IO_Running": "Preparing"}, "'Preparing' is not a valid ThreadState"),
        ({"Source_UUID": "b"}, "badly formed"),
        ({"Source_Port": "port"}, "invalid literal"),
    ],
)
def test_a_row_that_is_none_is_refused(change: dict[str, Any], message: str) -> None:
    row = {name: value for name, value in (NEW_ROW | change).items() if value is not ...}
    with pytest.raises(ValueError, match=message):
        channel_from_row(row, {})


@pytest.mark.parametrize("column", [name for name in NEW_ROW if name != "Channel_Name"])
def test_a_column_that_is_missing_is_no_value(column: str) -> None:
    """A version that renames a column must not hide a filter, a delay or a condition."""
    row = {name: value for name, value in NEW_ROW.items() if name != column}
    if column.startswith("Until_Log_"):
        row["Until_Condition"] = "Source"
    with pytest.raises(ValueError, match=f"SHOW REPLICA STATUS has no.*{column}"):
        channel_from_row(row, {})


def test_only_5_6_shows_no_rewritten_databases() -> None:
    row = {**NEW_ROW}
    del row["Channel_Name"], row["Replicate_Rewrite_DB"]
    assert channel_from_row(row, {}).filters == channel_from_row(NEW_ROW, {}).filters


def test_a_set_or_a_gtid_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(MalformedGtidSet):
        channel_from_row(NEW_ROW | {"Retrieved_Gtid_Set": "b:1"}, {})
    worker = {"channel": "from_b", "worker_id": 1, "applying": "b:1", "errno": 0, "error": ""}
    with pytest.raises(MalformedGtid):
        channel_from_row(NEW_ROW, workers_by_channel([worker]))


# -- gtid_owned -----------------------------------------------------------------------------------

owned_ones = st.dictionaries(
    st.builds(Tsid, st.sampled_from(UUIDS), st.sampled_from(["", "dba", "z9"])),
    st.lists(st.tuples(st.integers(1, 10**6), st.integers(1, 10**9)), min_size=1, max_size=4),
    max_size=6,
)


@LAWS
@given(owned_ones)
def test_owned_is_read_as_a_server_writes_it(owned: dict[Tsid, list[tuple[int, int]]]) -> None:
    """Seen on 5.6.24 and 9.7.4: nothing between a thread and the next UUID, each TSID in full."""
    text = "".join(
        str(tsid) + "".join(f":{gno}#{thread}" for gno, thread in numbers)
        for tsid, numbers in owned.items()
    )
    expected = GtidSet.from_intervals(
        (tsid, gno, gno + 1) for tsid, numbers in owned.items() for gno, _ in numbers
    )
    assert parse_owned(text) == expected


def test_owned_with_a_comma_is_read_as_well() -> None:
    text = f"{UUIDS[1]}:5#1,{UUIDS[2]}:7#2"
    assert parse_owned(text) == GtidSet.parse(f"{UUIDS[1]}:5,{UUIDS[2]}:7")


@pytest.mark.parametrize(
    "text", ["5#1", f"{UUIDS[1]}:5#", f"{UUIDS[1]}:5#x", f"{UUIDS[1]}:5#1;", f"{UUIDS[1]}:#1"]
)
def test_owned_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(MalformedText, match="expected"):
        parse_owned(text)


# -- addresses and secrets ------------------------------------------------------------------------


def test_a_secret_shows_itself_to_nobody(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("hunter2")
    target = ServerTarget(name="a", host="h", port=3306, user="u", password=secret)
    caplog.set_level(logging.INFO)
    logging.getLogger("t").info("%s %r %s", secret, secret, target)
    shown = (
        *(repr(secret), str(secret), f"{secret}", f"{secret:>20}", format(secret, "s")),
        *(f"{secret!r}", repr(target), str(target), repr(dataclasses.asdict(target)), caplog.text),
        *(repr([secret]), repr(copy.deepcopy(target)), str(ValueError(target))),
    )
    assert [text for text in shown if "hunter2" in text] == []
    assert secret.reveal() == "hunter2"
    assert copy.deepcopy(secret).reveal() == "hunter2"


def test_secrets_compare_by_what_they_hold() -> None:
    assert Secret("x") == Secret("x")
    assert hash(Secret("x")) == hash(Secret("x"))
    assert Secret("x") != Secret("y")
    assert Secret("x") != "x"
    assert NO_PASSWORD.reveal() == ""


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_target_has_a_name_and_a_port(port: int) -> None:
    with pytest.raises(ValueError, match=f"a: port {port} is not a TCP port"):
        ServerTarget(name="a", host="h", port=port, user="u")
    with pytest.raises(ValueError, match="a server needs a name"):
        ServerTarget(name="", host="h", port=3306, user="u")
