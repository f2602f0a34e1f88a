"""Output of the mysql client as a person pastes it: one healthy server, in any form."""

from collections.abc import Iterable, Mapping, Sequence

A, B = (letter * 8 + "-0000-0000-0000-000000000000" for letter in "ab")
NEW, OLD = "9.7.4", "5.6.24-log"

# SHOW GLOBAL VARIABLES of a server on which no rule remarks anything, under the newest names.
SETTINGS: Mapping[str, str] = {
    "auto_increment_increment": "1",
    "auto_increment_offset": "1",
    "binlog_expire_logs_auto_purge": "ON",
    "binlog_expire_logs_seconds": "2592000",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_value_options": "",
    "datadir": "/var/lib/mysql/",
    "enforce_gtid_consistency": "ON",
    "gtid_mode": "ON",
    "innodb_flush_log_at_trx_commit": "1",
    "log_bin": "ON",
    "log_replica_updates": "ON",
    "lower_case_table_names": "0",
    "max_binlog_size": "1073741824",
    "pid_file": "/var/run/mysqld/mysqld.pid",
    "port": "3306",
    "read_only": "OFF",
    "relay_log_recovery": "ON",
    "replica_exec_mode": "STRICT",
    "replica_parallel_workers": "4",
    "replica_preserve_commit_order": "ON",
    "replica_skip_errors": "OFF",
    "replica_type_conversions": "",
    "sql_replica_skip_counter": "0",
    "super_read_only": "OFF",
    "sync_binlog": "1",
}

_STATUS: Mapping[str, str] = {
    "Replica_IO_State": "Waiting for source to send event",
    "Source_Host": "db1",
    "Source_User": "replication",
    "Source_Port": "3306",
    "Connect_Retry": "60",
    "Source_Log_File": "binlog.000003",
    "Read_Source_Log_Pos": "4711",
    "Relay_Log_File": "relay.000002",
    "Relay_Log_Pos": "412",
    "Relay_Source_Log_File": "binlog.000003",
    "Replica_IO_Running": "Yes",
    "Replica_SQL_Running": "Yes",
    "Replicate_Do_DB": "",
    "Replicate_Ignore_DB": "",
    "Replicate_Do_Table": "",
    "Replicate_Ignore_Table": "",
    "Replicate_Wild_Do_Table": "",
    "Replicate_Wild_Ignore_Table": "",
    "Last_Errno": "0",
    "Last_Error": "",
    "Skip_Counter": "0",
    "Exec_Source_Log_Pos": "4711",
    "Relay_Log_Space": "612",
    "Until_Condition": "None",
    "Until_Log_File": "",
    "Until_Log_Pos": "0",
    "Seconds_Behind_Source": "0",
    "Last_IO_Errno": "0",
    "Last_IO_Error": "",
    "Last_SQL_Errno": "0",
    "Last_SQL_Error": "",
    "Replicate_Ignore_Server_Ids": "",
    "Source_Server_Id": "1",
    "Source_UUID": A,
    "Source_Info_File": "mysql.slave_master_info",
    "SQL_Delay": "0",
    "SQL_Remaining_Delay": "NULL",
    "Replica_SQL_Running_State": "Replica has read all relay log; waiting for more updates",
    "Source_Retry_Count": "86400",
    "Last_IO_Error_Timestamp": "",
    "Last_SQL_Error_Timestamp": "",
    "Retrieved_Gtid_Set": f"{A}:1-9",
    "Executed_Gtid_Set": f"{A}:1-9",
    "Auto_Position": "1",
    "Replicate_Rewrite_DB": "",
    "Channel_Name": "",
    "Source_TLS_Version": "",
}
WORKER: Mapping[str, str] = {
    "channel": "",
    "worker_id": "1",
    "errno": "0",
    "error": "",
    "state": "Waiting for an event from Coordinator",
    "is_hidden": "0",
    "applying": "",
    "applying_seconds": "NULL",
    "awaits": "0",
    "applied": f"{A}:9",
    "applied_at": "1764245000.123456",
    "queued": f"{A}:9",
    "queued_committed_at": "1764244999.000000",
    "waits_for_row": "0",
    "retries_for_row": "0",
}


def status(**changed: str) -> dict[str, str]:
    """Return one row of SHOW REPLICA STATUS of a healthy replica of db1."""
    return {**_STATUS, **changed}


def old_status(**changed: str) -> dict[str, str]:
    """Return the same row as 5.6 prints it: the old words, and no channels."""
    row = {
        name.replace("Source", "Master").replace("Replica_", "Slave_"): value
        for name, value in _STATUS.items()
        if name not in ("Channel_Name", "Replicate_Rewrite_DB", "Source_TLS_Version")
    }
    row["Slave_SQL_Running_State"] = (
        "Slave has read all relay log; waiting for the slave I/O thread"
    )
    return {**row, **changed}


def vertical(*rows: Mapping[str, str]) -> str:
    r"""Return rows as the client prints them with \G."""
    lines = []
    for number, row in enumerate(rows, start=1):
        lines.append(f"{'*' * 27} {number}. row {'*' * 27}")
        width = max(map(len, row))
        lines.extend(f"{name:>{width}}: {value}" for name, value in row.items())
    return "".join(f"{line}\n" for line in lines)


def boxed(columns: Sequence[str], *rows: Sequence[str]) -> str:
    """Return rows in a box. The client counts a line end as one character."""
    widths = [max(len(row[at]) for row in (columns, *rows)) for at in range(len(columns))]
    border = f"+{'+'.join('-' * (width + 2) for width in widths)}+\n"
    lines = [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |\n"
        for row in (columns, *rows)
    ]
    return f"{border}{lines[0]}{border}{''.join(lines[1:])}{border}"


def variables(settings: Mapping[str, str]) -> str:
    return boxed(("Variable_name", "Value"), *settings.items())


def asked(statement: str, result: str) -> str:
    return f"{vertical({'statement': statement})}{result}"


def whole(
    uuid: str,
    *,
    name: str,
    server_id: int,
    executed: str = f"{A}:1-9",
    purged: str = "",
    owned: str = "",
    channels: Iterable[Mapping[str, str]] = (),
    at: str = "12:00:00",
    uptime: str = "8640000",
) -> str:
    """Return the output of --questions 9.7.4 on one server."""
    rows = list(channels)
    writable = {"read_only": "ON", "super_read_only": "ON"} if rows else {}
    identity = {
        "gtid_owned": owned,
        "gtid_purged": purged,
        "gtid_executed": executed,
        "server_uuid": uuid,
        "server_id": str(server_id),
        "gtid_mode": "ON",
        "server_clock": f"2026-01-02 {at}.500000",
    }
    log_end = {
        "File": "binlog.000003",
        "Position": "4711",
        "Binlog_Do_DB": "",
        "Binlog_Ignore_DB": "",
        "Executed_Gtid_Set": executed,
    }
    log = {"Log_name": "binlog.000003", "File_size": "4711", "Encrypted": "No"}
    sources = ({"name": "server_id", "source": "GLOBAL"}, {"name": "gtid_mode", "source": "GLOBAL"})
    settings = [
        {"Variable_name": each, "Value": value}
        for each, value in {**SETTINGS, **writable, "hostname": name}.items()
    ]
    parts = (
        f"2026-01-02T{at}Z\n",
        asked("values", vertical({"version": NEW, "version_comment": "MySQL Community Server"})),
        asked("values", vertical(identity)),
        asked("uptime", vertical({"Variable_name": "Uptime", "Value": uptime})),
        asked("channels", vertical(*rows)),
        asked("workers", vertical(*(WORKER for _ in rows))),
        asked("log_end", vertical(log_end)),
        asked("binary_logs", vertical(log)),
        asked("variables", vertical(*settings)),
        asked("sources_of_values", vertical(*sources)),
        asked("group", ""),
        asked("end", ""),
        f"2026-01-02T{at}Z\n",
    )
    return "".join(parts)


def pair(*, at: str = "12:00:00", **changed: str) -> dict[str, str]:
    """Return a healthy source and its replica, by name; `changed` is the replica's status."""
    return {
        "db1": whole(A, name="db1", server_id=1, at=at),
        "db2": whole(B, name="db2", server_id=2, channels=[status(**changed)], at=at),
    }
