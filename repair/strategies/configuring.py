"""What the operator changes in a configuration, by finding code, and what stays missing.

A corrected setting restores nothing: what was dropped, not logged or not applied before is still
missing. Where no GTID set shows it, the instruction states what does.
"""

from collections.abc import Mapping
from typing import Final

from repair.strategies.held_channels import (
    before_auto_position,
    restarting,
    while_appliers_stand,
    while_channel_stands,
)
from repair.strategies.instruction_context import Situation, Text, always, in_order
from topology.readings.dialect import settings_due
from topology.readings.vendors import LOG_RETENTION_HOURS, row_of

# In the evidence of P3 (topology/facts/runway.py), with the value that the server has.
RETENTION_SETTINGS: Final = (
    "binlog_expire_logs_seconds",
    "expire_logs_days",
    LOG_RETENTION_HOURS,
)
_HOURS: Final = "CALL mysql.rds_set_configuration('binlog retention hours', {})"
_HOURS_MAX: Final = 168  # of RDS; Aurora allows more


def configure(situation: Situation) -> str:
    """Return what to change for a finding."""
    finding = situation.finding
    ignores = any(each.fact == "IGNORE_SERVER_IDS" for each in finding.evidence)
    if finding.code == "H8" or ignores:
        return _ignoring_none(situation)
    if of_service := _of_service(situation):
        return of_service
    return SETTINGS[finding.code](situation) + _by_service(situation)


def _of_service(situation: Situation) -> str:
    """Return how a service keeps its logs for longer (C8); "" if the finding is about another."""
    finding = situation.finding
    if finding.code != "C8" or finding.evidence[0].fact != LOG_RETENTION_HOURS:
        return ""
    return (
        f"on {finding.replica} run {in_order(_HOURS.format('(hours)'))}, with at least"
        " outage_seconds_max of the policy; first look at its disk space"
    )


def _by_service(situation: Situation) -> str:
    """Return how the service of a server changes what mysqld refuses to its accounts."""
    finding, servers = situation.finding, situation.model.servers
    vendors = {
        server.vendor
        for name in (finding.source, finding.replica)
        if (server := servers.get(name or "")) is not None and server.vendor is not None
    }
    notes = [
        f"{each.value} {row_of(each).configuration}"
        for each in vendors
        if row_of(each).configuration
    ]
    return "".join(f". {each}" for each in sorted(notes))


def _ignoring_none(situation: Situation) -> str:
    change = f"{situation.dialect.change_source} IGNORE_SERVER_IDS = (){situation.channel}"
    statements = while_channel_stands(situation, change)
    return (
        "find out why these servers are ignored; if their transactions are wanted, on"
        f" {situation.finding.replica} run {statements}"
    )


def raise_retention(situation: Situation) -> str:
    """Return how a server keeps its binary logs until a repair is done, and how it was before."""
    finding = situation.finding
    found = [
        (each.fact, each.value) for each in finding.evidence if each.fact in RETENTION_SETTINGS
    ]
    if not found:
        return "this does not help: the binary logs that are needed were deleted"
    [(name, value)] = found
    if name == LOG_RETENTION_HOURS:
        return (
            f"on {finding.source} run {in_order(_HOURS.format(_HOURS_MAX))}, the longest time that"
            f" RDS accepts. When the repair is done, run {in_order(_HOURS.format(value))}"
        )
    holder = situation.model.servers.get(finding.source or "")
    if holder is not None and name in row_of(holder.vendor).log_settings:
        return (
            f"on {finding.source} raise {name} ({value} now) until the repair is done. Do not set"
            f" it to 0: {row_of(holder.vendor).log_deletion}{_by_service(situation)}"
        )
    is_kept = name == "binlog_expire_logs_seconds"  # 8.0 and later also has SET PERSIST
    word = "SET PERSIST" if is_kept else "SET GLOBAL"
    file = "" if is_kept else ", and set it to 0 in the configuration file before any restart"
    return (
        f"on {finding.source} run {in_order(f'{word} {name} = 0')}{file}: it then deletes no log by"
        f" itself. When the repair is done, run {in_order(f'{word} {name} = {value}')}"
        f"{_by_service(situation)}"
    )


def _another_server_id(situation: Situation) -> str:
    change = "SET GLOBAL server_id = (a number that no other server has)"
    then = ", and change it in the configuration file of that server"
    return f"on {situation.finding.replica} run {while_channel_stands(situation, change, then)}"


def _logging_updates(situation: Situation) -> str:
    finding = situation.finding
    return (
        f"{restarting(finding.source, situation.model)}"
        "set log_replica_updates (log_slave_updates before 8.0.26) in the configuration file of"
        f" {finding.source}, and restart it. From then on it logs what it receives. Its binary"
        f" logs never contain what it received before: if it refuses {finding.replica} (P1),"
        " another server that has these transactions must send them"
    )


def _with_a_log(situation: Situation) -> str:
    finding = situation.finding
    return (
        f"{restarting(finding.source, situation.model)}"
        f"remove skip_log_bin (disable_log_bin) from the configuration file of {finding.source},"
        " and restart it. What it has committed without its binary log has no GTID and is sent to"
        f" no replica: compare the rows, or replace {finding.replica} with a copy of"
        f" {finding.source}"
    )


def _with_its_log_again(situation: Situation) -> str:
    name = situation.finding.replica
    return (
        f"{restarting(name, situation.model)}"
        f"stop the clients of {name}, remove the cause that its error log shows, and restart it"
        " with binlog_error_action = ABORT_SERVER (5.7.7 and later). Then start the receivers that"
        " stopped meanwhile (START REPLICA IO_THREAD on its replicas). What it has committed"
        " without its binary log has no GTID and is sent to no replica: compare the rows with those"
        f" of its replicas, or replace the replicas with copies of {name}"
    )


def _logging_all(situation: Situation) -> str:
    options = ", ".join(each.fact for each in situation.finding.evidence if each.fact != "replicas")
    source = situation.finding.source
    return (
        f"{restarting(source, situation.model)}"
        f"remove {options} from the configuration file of {source}, and restart it. Its replicas"
        " have received transactions without the changes that it did not log: compare the rows of"
        " these schemas with those of its replicas"
    )


def _gtid_mode_on(situation: Situation) -> str:
    finding = situation.finding
    mode = next((each.value for each in finding.evidence if each.fact == "gtid_mode"), "")
    steps = ("ON",) if mode == "ON_PERMISSIVE" else ("ON_PERMISSIVE", "ON")
    return (
        f"wait until Ongoing_anonymous_transaction_count is 0 on {finding.source} and its replicas"
        f" have applied all transactions that it had committed; then on {finding.source} run"
        f" {in_order(*(f'SET GLOBAL gtid_mode = {each}' for each in steps))}, and change it in the"
        " configuration file of that server"
    )


def _strict(situation: Situation) -> str:
    """Return how to make an applier stop at errors again, and what shows what it has skipped."""
    finding, words = situation.finding, situation.dialect
    prefix = words.replica_variable_prefix
    changes = {
        "replica_exec_mode": (f"SET GLOBAL {prefix}exec_mode = 'STRICT'",),
        "replica_type_conversions": (f"SET GLOBAL {prefix}type_conversions = ''",),
    }
    names = [each.fact for each in finding.evidence]
    statements = [each for name in names for each in changes.get(name, ())]
    options = ", ".join(
        each.replace("replica_", prefix) for each in names if each.startswith("replica_")
    )
    ways = [f"on {finding.replica} run {in_order(*statements)}"] if statements else []
    if "sql_replica_skip_counter" in names:
        # A running applier has copied the counter, and forgets it when it stops (seen on 9.7.4).
        taken_back = while_appliers_stand(situation, f"SET GLOBAL sql_{prefix}skip_counter = 0")
        ways.append(f"on {finding.replica} run {taken_back}")
    if options:
        ways.append(f"remove {options} from the configuration file of {finding.replica}")
    if "replica_skip_errors" in names:
        ways.append("restart it")
    text = ", then ".join(ways)
    if "replica_skip_errors" in names:
        text = restarting(finding.replica, situation.model) + text
    if "sql_replica_skip_counter" in names:
        text += (
            ". The applier then applies the next transaction. An audit reports what it has skipped"
            " as H8"
        )
    if options:
        text += (
            ". The applier then stops at the next change that does not match its rows (A2). What"
            " it has left out stays missing, and equal sets hide it: `gtid-audit binlog compare"
            " SOURCE REPLICA --everywhere` shows it (SOURCE and REPLICA are the DSNs of its source"
            f" and of {finding.replica})"
        )
    return text


def _changed(name: str | None, *statements: str) -> str:
    """Return statements to run on a server, whose settings a restart must not lose."""
    return f"on {name} run {in_order(*statements)}, and change it in its configuration file"


def _durable(situation: Situation) -> str:
    finding = situation.finding
    return _changed(finding.replica, *(f"SET GLOBAL {each.fact} = 1" for each in finding.evidence))


def _in_order_of_commit(situation: Situation) -> str:
    words = situation.dialect
    prefix = words.replica_variable_prefix
    # Before 5.7.5 only one thread commits in order.
    setting = "preserve_commit_order = ON" if words.has_commit_order else "parallel_workers = 0"
    statements = while_appliers_stand(
        situation, f"SET GLOBAL {prefix}{setting}", ", and change it in its configuration file"
    )
    return f"on {situation.finding.replica} run {statements}"


def _kept_for_longer(situation: Situation) -> str:
    [kept] = situation.finding.evidence
    return (
        f"set {kept.fact} of {situation.finding.replica} to at least outage_seconds_max of the"
        " policy, with SET GLOBAL and in its configuration file; first look at its disk space"
    )


def _read_only(situation: Situation) -> str:
    replica = situation.model.servers.get(situation.finding.replica or "")
    has_super = replica is None or "super_read_only" in settings_due(replica.version)
    name = "super_read_only" if has_super else "read_only"
    return _changed(situation.finding.replica, f"SET GLOBAL {name} = ON")


def _recovered(situation: Situation) -> str:
    name, first = situation.finding.replica, before_auto_position(situation)
    text = (
        f"switch {name} to auto-position (C3), which needs no file positions after a crash, once it"
        " has applied what it received: the switch deletes the relay log. Without GTIDs: set"
        f" relay_log_recovery = ON in the configuration file of {name}, and restart it"
    )
    text = restarting(name, situation.model) + text
    if not first:
        return text
    return f"do NOT switch {name} to auto-position yet: {first}. Repair that first. Then {text}"


def _different_keys(situation: Situation) -> str:
    finding = situation.finding
    changes = "; ".join(
        _changed(
            name,
            "SET GLOBAL auto_increment_increment = 2",
            f"SET GLOBAL auto_increment_offset = {offset}",
        )
        for offset, name in enumerate((finding.source, finding.replica), start=1)
    )
    return (
        f"with two writable servers: {changes}. With more, their number is the increment. Sessions"
        " that are open keep the values that they have"
    )


# The meaning of `configure` for each code that it answers.
SETTINGS: Mapping[str, Text] = {
    "C2": _another_server_id,
    "C5": _durable,
    "C7": _in_order_of_commit,
    "C8": _kept_for_longer,
    "C9": _read_only,
    "C10": _recovered,
    "C12": _different_keys,
    "C13": always("synchronize the clocks of the servers (NTP), then audit again"),
    "C14": always(
        "put a server of a version between the two in the middle, or upgrade the older one; until"
        " then do not rely on this channel"
    ),
    "C4": _gtid_mode_on,
    "C6": _logging_updates,
    "H3": _logging_updates,
    "H4": _logging_updates,
    "P1": _logging_updates,
    "C11": _logging_all,
    "A4": _with_a_log,
    "A9": _with_its_log_again,
    "C15": _strict,
    "U1": always("change the setting that the finding lists, also in the configuration file"),
}
