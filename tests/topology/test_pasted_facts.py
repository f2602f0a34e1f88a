"""The reading that pasted output makes: nothing is assumed, and the order of the values counts."""

from datetime import UTC, datetime

import pytest

from gtid import GtidSet
from tests.topology.pasted_texts import (
    NEW,
    OLD,
    SETTINGS,
    WORKER,
    A,
    B,
    asked,
    boxed,
    old_status,
    pair,
    status,
    variables,
    vertical,
    whole,
)
from topology.adapters.offline.facts_of_file import PastedFile
from topology.adapters.offline.pasted_facts import reading_of
from topology.adapters.offline.pasted_output import parse_output
from topology.adapters.offline.pasted_sets import PastedSetProblem
from topology.readings.snapshot import (
    ReadServer,
    ServerSnapshot,
    ThreadState,
    UnreadReason,
    as_read,
)
from topology.readings.vendors import Vendor

SAVED = datetime(2026, 1, 2, 13, tzinfo=UTC)
FILE = PastedFile("db1.txt", "db1", "offline", SAVED)


def read(text: str) -> ServerSnapshot:
    return reading_of(parse_output(text), FILE, phase=1)


def unread(reading: ServerSnapshot) -> dict[str, str]:
    return {each.fact: each.detail for each in reading.unread}


def a_set(text: str) -> GtidSet:
    return GtidSet.parse(text)


# -- a complete reading ---------------------------------------------------------------------------


def test_the_statements_of_questions_make_a_complete_reading() -> None:
    reading = read(pair()["db2"])
    assert reading.unread == ()
    assert isinstance(as_read(reading), ReadServer)
    assert (str(reading.server_uuid), reading.server_id, reading.vendor) == (B, 2, Vendor.MYSQL)
    assert reading.gtid_executed == a_set(f"{A}:1-9")
    assert (reading.host, reading.port, reading.uptime_seconds) == ("db2", 3306, 8640000)
    [channel] = reading.channels or ()
    assert (channel.source_host, channel.receiver) == ("db1", ThreadState.RUNNING)
    assert [worker.worker_id for worker in channel.workers] == [1]
    assert channel.last_applied == a_set(f"{A}:9")
    assert dict(reading.settings or ()) == {
        **SETTINGS,
        "read_only": "ON",
        "super_read_only": "ON",
        "hostname": "db2",
        "server_id_source": "GLOBAL",
        "gtid_mode_source": "GLOBAL",
    }
    assert str(reading.log_end) == "binlog.000003:4711"
    assert reading.read_ended == datetime(2026, 1, 2, 12, tzinfo=UTC)
    assert reading.clock_ahead is not None


def test_of_nothing_nothing_is_assumed() -> None:
    reading = read(vertical({"@@version": NEW}))
    assert reading.gtid_executed is None
    assert reading.channels is None
    assert reading.settings is None
    assert unread(reading).keys() == {
        *("vendor", "server_uuid", "server_id", "server_clock", "gtid_mode", "gtid_executed"),
        *("gtid_purged", "gtid_owned", "uptime_seconds", "channels", "log_end", "binary_logs"),
        *("settings", "sources of settings"),
    }
    for fact in reading.unread:
        assert fact.reason is UnreadReason.NOT_PASTED
        assert fact.detail.startswith(("run S", "run the statement", "`date -u")), fact
    assert unread(reading)["channels"] == "run SHOW REPLICA STATUS"
    assert unread(read(vertical({"@@version": OLD})))["channels"] == "run SHOW SLAVE STATUS"


@pytest.mark.parametrize(
    ("mark", "fact"),
    [
        ("channels", "channels"),
        ("workers", "workers"),
        ("log_end", "log_end"),
        ("binary_logs", "binary_logs"),
        ("variables", "settings"),
        ("sources_of_values", "sources of settings"),
        ("uptime", "uptime_seconds"),
    ],
)
def test_each_statement_that_is_missing_is_named(mark: str, fact: str) -> None:
    parts = pair()["db2"].split(vertical({"statement": "x"}).partition("x")[0])
    kept = [part for part in parts if not part.startswith(f"{mark}\n")]
    assert len(kept) == len(parts) - 1
    reading = read(vertical({"statement": "x"}).partition("x")[0].join(kept))
    assert unread(reading).keys() == {fact}
    assert "run " in unread(reading)[fact]


def test_a_statement_that_was_refused_is_named_with_its_error() -> None:
    text = pair()["db2"]
    refused = "ERROR 1142 (42000) at line 15: SELECT command denied to user 'x'@'%' for 'threads'\n"
    reading = read(text.replace(vertical(WORKER), refused))
    [fact] = reading.unread
    assert (fact.fact, fact.reason) == ("workers", UnreadReason.PRIVILEGE)
    assert fact.detail.startswith("1142: SELECT command denied to user 'x'@'%' for 'threads' (line")


def test_a_result_that_is_cut_is_named_with_its_line() -> None:
    text = vertical({"@@version": NEW}) + boxed(("File", "Position"), ("binlog.000001", "4"))[:-20]
    fact = next(each for each in read(text).unread if each.fact == "log_end")
    assert fact.reason is UnreadReason.UNPARSEABLE
    assert fact.detail == "line 3: the result is not complete: the row of line 7 is not complete"
    cut = vertical(status(), status()).splitlines()[:-5]
    fact = next(each for each in read("\n".join(cut)).unread if each.fact == "channels")
    assert fact.reason is UnreadReason.UNPARSEABLE
    assert (
        fact.detail == "line 1: the result is not complete: its rows do not have the same columns"
    )


def test_a_status_without_a_column_is_not_parsed() -> None:
    row = status()
    del row["Auto_Position"]
    reading = read(whole(B, name="db2", server_id=2, channels=[row]))
    [fact] = reading.unread
    assert (fact.fact, fact.reason) == ("channels", UnreadReason.UNPARSEABLE)
    assert "has none of Auto_Position" in fact.detail


# -- no channels ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "mysql> SHOW REPLICA STATUS\\G\nEmpty set (0.00 sec)\n",
        "mysql> show slave status;\nEmpty set, 1 warning (0.00 sec)\n",
        asked("channels", asked("end", "")),
    ],
)
def test_no_channels_is_a_fact_where_it_was_shown(text: str) -> None:
    assert read(text).channels == ()


@pytest.mark.parametrize(
    "text",
    [
        "mysql> SHOW REPLICA STATUS FOR CHANNEL 'x'\\G\nEmpty set (0.00 sec)\n",
        "mysql> SHOW REPLICA STATUS\\G\nERROR 1227 (42000): Access denied; you need SUPER\n",
        "mysql> SELECT 1 FROM DUAL WHERE 0;\nEmpty set (0.00 sec)\n",
        asked("channels", ""),
    ],
)
def test_no_channels_is_not_assumed(text: str) -> None:
    assert read(text).channels is None


# -- sets -----------------------------------------------------------------------------------------

OWNED, PURGED, EXECUTED = (f"@@GLOBAL.gtid_{name}" for name in ("owned", "purged", "executed"))


def sets(*values: tuple[str, str]) -> ServerSnapshot:
    """Read sets that were selected one after the other."""
    return read("".join(vertical({name: value}) for name, value in values))


def test_the_newest_executed_set_counts() -> None:
    first = (OWNED, ""), (PURGED, f"{A}:1"), (EXECUTED, f"{A}:1-5")
    assert sets(*first).gtid_executed == a_set(f"{A}:1-5")
    text = "".join(vertical({name: value}) for name, value in first)
    later = read(text + vertical(status()))
    assert later.gtid_executed == a_set(f"{A}:1-9"), "of Executed_Gtid_Set"
    assert later.gtid_purged == a_set(f"{A}:1")


def test_a_set_that_shrinks_is_an_error_with_its_line() -> None:
    with pytest.raises(
        PastedSetProblem, match=r"does not contain .*:4-5, and did on line 1"
    ) as found:
        sets((EXECUTED, f"{A}:1-5"), (EXECUTED, f"{A}:1-3"))
    assert found.value.line == 3


@pytest.mark.parametrize("text", [f"{A}:1-3,", f"{A}:3-x", "1-3", f"{A}:1-3 and more"])
def test_a_malformed_set_is_an_error_with_its_line(text: str) -> None:
    for name in (EXECUTED, PURGED):
        with pytest.raises(PastedSetProblem) as found:
            sets((OWNED, ""), (name, text))
        assert found.value.line == 3
    with pytest.raises(PastedSetProblem):
        read(vertical(status(Retrieved_Gtid_Set=text)))


def test_owned_counts_only_before_executed() -> None:
    """A transaction that committed between the two statements would be in neither."""
    assert sets((OWNED, f"{A}:6#9"), (EXECUTED, f"{A}:1-5")).gtid_owned == a_set(f"{A}:6")
    late = sets((EXECUTED, f"{A}:1-5"), (OWNED, ""))
    assert late.gtid_owned is None
    assert "in this order" in unread(late)["gtid_owned"]
    in_one = read(vertical({EXECUTED: f"{A}:1-5", OWNED: ""}))
    assert in_one.gtid_owned is None
    assert read(vertical({OWNED: "", EXECUTED: f"{A}:1-5"})).gtid_owned == GtidSet()
    # SHOW GLOBAL VARIABLES lists gtid_executed first; what follows it is later.
    listed = "mysql> SHOW GLOBAL VARIABLES LIKE 'gtid%';\n" + variables(
        {"gtid_executed": f"{A}:1-5", "gtid_owned": "", "gtid_purged": ""}
    )
    assert read(listed).gtid_owned is None
    assert read(listed + vertical(status())).gtid_owned == GtidSet()


def test_a_session_has_values_of_its_own() -> None:
    """5.6: SELECT @@gtid_executed is empty in a session, whatever the server has executed."""
    text = vertical({"@@gtid_owned": "", "@@gtid_executed": ""})
    old = read(vertical({"@@version": OLD}) + text)
    assert (old.gtid_executed, old.gtid_owned) == (None, None)
    assert read(text).gtid_executed is None, "a server of an unknown version may be an old one"
    new = read(vertical({"@@version": NEW}) + text)
    assert (new.gtid_executed, new.gtid_owned) == (GtidSet(), None)
    session = "mysql> SHOW VARIABLES LIKE 'gtid%';\n" + variables(
        {"gtid_owned": "", "gtid_purged": ""}
    )
    assert read(session + vertical(status())).gtid_owned is None


def test_the_end_of_the_log_is_before_what_was_executed_later() -> None:
    end = vertical(
        {
            "File": "binlog.000001",
            "Position": "4",
            "Executed_Gtid_Set": f"{A}:1-5",
        }
    )
    assert read(vertical({EXECUTED: f"{A}:1-5"}) + end).log_end is not None
    assert read(end + vertical({EXECUTED: f"{A}:1-5"})).log_end is not None, "nothing was added"
    late = read(end + vertical({EXECUTED: f"{A}:1-6"}))
    assert late.log_end is None
    assert "after gtid_executed" in unread(late)["log_end"]


def test_the_header_of_a_dump_shows_what_was_executed() -> None:
    text = f"-- Server version\t9.7.4\nSET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '{A}:1-5';\n"
    reading = read(text)
    assert reading.gtid_executed == a_set(f"{A}:1-5")
    assert reading.gtid_purged is None, "the set of a dump is not what its server has purged"
    assert read(text + vertical({EXECUTED: f"{A}:1-9"})).gtid_executed == a_set(f"{A}:1-9")


# -- settings -------------------------------------------------------------------------------------


def test_some_settings_are_not_all() -> None:
    some = {"sync_binlog": "1", "gtid_mode": "ON"}
    reading = read(vertical({"@@version": NEW}) + variables(some))
    assert reading.settings is not None
    assert "not shown: " in unread(reading)["settings"]
    assert "innodb_flush_log_at_trx_commit" in unread(reading)["settings"]
    assert "expire_logs_days" not in unread(reading)["settings"], "9.7 has no such setting"
    old = read(vertical({"@@version": OLD}) + variables(some))
    assert "expire_logs_days" in unread(old)["settings"]
    assert "super_read_only" not in unread(old)["settings"]


def test_all_settings_were_shown_where_the_statement_shows_it() -> None:
    for before in ("mysql> SHOW GLOBAL VARIABLES;\n", vertical({"statement": "variables"})):
        reading = read(vertical({"@@version": OLD}) + before + variables({"sync_binlog": "1"}))
        assert "settings" not in unread(reading)


def test_a_malformed_setting_is_unread() -> None:
    reading = read(variables({**SETTINGS, "binlog_expire_logs_seconds": "many"}))
    assert reading.settings is None
    assert any("'many'" in fact.detail for fact in reading.unread if fact.fact == "settings")


def test_a_closed_log() -> None:
    text = whole(A, name="db1", server_id=1)
    start = text.index(vertical({"statement": "log_end"}))
    end = text.index(vertical({"statement": "variables"}))
    closed = text[:start] + asked("log_end", "") + asked("binary_logs", "") + text[end:]
    reading = read(closed)
    assert (reading.log_end, reading.binary_logs, reading.unread) == (None, (), ())
    assert dict(reading.settings or ())["binary_log"] == "CLOSED"


# -- other servers and other facts ----------------------------------------------------------------


def test_a_member_of_a_group_sees_the_others() -> None:
    """Their rows have a server_uuid as well, and it is not this server's."""
    name = "cccccccc-0000-0000-0000-000000000000"
    member = {
        "member_role": "SECONDARY",
        "is_this": "0",
        "server_uuid": B,
        "host": "db2",
        "port": "3306",
        "member_state": "ONLINE",
        "received": f"{name}:1-5",
        "recovery_errno": "0",
        "recovery_error": "",
        "view_id": "17642450001234567:3",
    }
    own = {**member, "is_this": "1", "server_uuid": A, "member_role": "PRIMARY"}
    text = whole(A, name="db1", server_id=1)
    settings = vertical({"Variable_name": "group_replication_group_name", "Value": name})
    text = text.replace(asked("group", ""), settings + asked("group", vertical(member, own)))
    reading = read(text)
    assert (str(reading.server_uuid), reading.unread) == (A, ())
    assert reading.group is not None
    assert (reading.group.group_name, reading.group.member_role) == (name, "PRIMARY")
    assert [str(each.server_uuid) for each in reading.group.members] == [A, B]
    cut = read(text.replace(vertical(member, own), "ERROR 1142 (42000): denied\n"))
    assert cut.group is None
    assert unread(cut).keys() == {"group"}


def test_what_gtid_audit_does_not_evaluate() -> None:
    version = {"@@version": "10.11.6-MariaDB", "@@version_comment": "MariaDB Server"}
    maria = read(vertical(version))
    assert (maria.vendor, maria.channels) == (Vendor.MARIADB, None)
    assert "has no MySQL GTIDs" in unread(maria)["gtid_executed"]
    off = read(vertical({"@@version": NEW, "@@GLOBAL.gtid_mode": "OFF"}))
    assert "new transactions get no GTID" in unread(off)["gtid_executed"]


def test_a_server_of_rds_and_an_aurora_reader_are_recognised() -> None:
    text = {"@@version": "8.0.35", "@@version_comment": "Source distribution"}
    rds = read(vertical({**text, "@@GLOBAL.basedir": "/rdsdbbin/mysql-8.0.35.R4/"}))
    assert rds.vendor is Vendor.RDS
    off = read(vertical({**text, "@@basedir": "/rdsdbbin/mysql/", "@@GLOBAL.gtid_mode": "OFF"}))
    assert unread(off)["gtid_executed"].endswith("(gtid-mode))")
    whole_pair = pair()["db2"]
    shown = "".join(
        vertical({"Variable_name": name, "Value": value})
        for name, value in (("aurora_version", "3.05.2"), ("innodb_read_only", "ON"))
    )
    reader = read(whole_pair + shown)
    assert (reader.vendor, reader.gtid_executed) == (Vendor.AURORA, None)
    assert "an Aurora reader" in unread(reader)["gtid_executed"]
    assert read(whole_pair + shown.replace("ON", "OFF")).gtid_executed == a_set(f"{A}:1-9")


def test_an_old_server_with_its_log() -> None:
    """5.6 shows only 1756 for an error of a worker; a line of its log has the error itself."""
    row = old_status(Slave_SQL_Running="No", Last_SQL_Errno="1756", Last_SQL_Error="stopped")
    log = (
        "2026-01-02 12:00:00 4711 [ERROR] Slave SQL: Worker 3 failed executing transaction 'x';"
        " Duplicate entry '1' for key 'PRIMARY', Error_code: 1062\n"
        "2026-01-02 12:00:00 4711 [ERROR] Slave SQL: ... The slave coordinator and worker threads"
        " are stopped, Error_code: 1756\n"
    )
    processes = vertical({"workers": "4", "thread": "NULL", "seconds": "NULL", "state": "NULL"})
    reading = read(vertical({"@@version": OLD}) + vertical(row) + processes + log)
    [channel] = reading.channels or ()
    [worker] = channel.workers
    assert (worker.worker_id, worker.errno) == (3, 1062)
    assert "Duplicate entry" in worker.error


def test_a_log_without_a_status_is_quoted() -> None:
    log = (
        "2026-11-27T12:00:00.1Z 12 [ERROR] [MY-010584] [Repl] Replica SQL for channel 'west': x,"
        " Error_code: MY-001062\n"
    )
    assert unread(read(log))["channels"].endswith(
        "; line 1 of the file: the applier of channel 'west' stopped at 2026-11-27T12:00:00.1Z with"
        " error 1062 (gtid-audit explain 1062)"
    )


def test_workers_of_an_old_server_need_the_process_list() -> None:
    text = vertical({"@@version": OLD}) + vertical(old_status())
    assert "`processes`" in unread(read(text))["workers"]
    hidden = vertical({"workers": "4", "thread": "NULL", "seconds": "NULL", "state": "NULL"})
    assert "privilege PROCESS" in unread(read(text + hidden))["workers"]
    busy = vertical({"workers": "4", "thread": "7", "seconds": "30", "state": "System lock"})
    assert "`row_locks`" in unread(read(text + busy))["workers"]
    [channel] = read(text + busy + vertical({"thread": "7"})).channels or ()
    assert [worker.state for worker in channel.workers] == ["System lock (waiting for a row lock)"]


def test_without_times_the_clock_cannot_be_compared() -> None:
    text = vertical({"server_clock": "2026-01-02 11:59:00.250000"})
    reading = read(text)
    assert (reading.server_clock, reading.clock_ahead) == (None, None)
    assert "date -u" in unread(reading)["server_clock"]
    assert reading.read_ended == datetime(2026, 1, 2, 11, 59, 0, 250000, tzinfo=UTC)
    assert read(vertical({"@@version": NEW})).read_ended == SAVED
    with pytest.raises(PastedSetProblem, match="before the first one"):
        read(f"2026-01-02T12:00:01Z\n{text}2026-01-02T12:00:00Z\n")


def test_seconds_since_1970_are_a_clock() -> None:
    reading = read(
        f"2026-01-02T12:00:00Z\n{vertical({'@@timestamp': '1767355200.5'})}2026-01-02T12:00:00Z\n"
    )
    assert reading.server_clock == datetime(2026, 1, 2, 12, 0, 0, 500000, tzinfo=UTC)
