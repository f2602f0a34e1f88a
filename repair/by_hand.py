"""What the operator does where no script is written: one text for each such strategy.

1. An instruction is complete: run literally, it loses no transaction that it does not name first.
2. Where an instruction deletes data, the text is made from the servers' sets: it lists what would
   be lost, or refuses the direction in which it must not be run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gtid import GtidSet
from repair.model import Model
from topology.catalogue import UnknownCode
from topology.dialect import Dialect, dialect_of
from topology.explain import Unexplained, explain
from topology.findings import Finding
from topology.gtid_waits import waits_for_gtid
from topology.version import ServerVersion


@dataclass(frozen=True, slots=True)
class Situation:
    """One finding and the servers as the plan leaves them."""

    finding: Finding
    model: Model

    @property
    def dialect(self) -> Dialect:
        """Return the words of the finding's replica; today's where it was not read."""
        replica = self.model.servers.get(self.finding.replica or "")
        return dialect_of(replica.version if replica is not None else ServerVersion(9, 0, 0))

    @property
    def channel(self) -> str:
        """Return the FOR CHANNEL clause of the finding's channel, as words."""
        return f" FOR CHANNEL '{self.finding.channel}'" if self.finding.channel else ""


Text: TypeAlias = Callable[[Situation], str]


def by_hand(name: str, finding: Finding, model: Model) -> str:
    """Return what the operator does for a strategy that has no script."""
    return BY_HAND[name](Situation(finding, model))


def _reclone(situation: Situation) -> str:
    finding, servers = situation.finding, situation.model.servers
    source, replica = servers.get(finding.source or ""), servers.get(finding.replica or "")
    if source is None or replica is None:
        return (
            "replace the server's data by a backup or a clone of its source, but only after you"
            " have compared their GTID sets: what only this server has is lost by it"
        )
    here = replica.name
    attach = (
        f"restore {here} from a backup or clone of {source.name} taken from now on, keep its own"
        f" auto.cnf, and attach it with {situation.dialect.option_prefix}AUTO_POSITION = 1"
    )
    only_here = replica.executed - source.executed
    if not only_here:
        return f"{attach}. Nothing is lost: {source.name} has all transactions of {here}"
    if finding.code == "E6":
        return (
            f"compare the data first: {only_here.shortened()} is only in the list of {here} because"
            f" the history of {source.name} was reset, and the rows are probably on {source.name}."
            f" Do not redo them there. Where the rows are there, {attach}; nothing is lost"
        )
    kept = only_here - replica.purged
    saved = (
        f"save them first: `gtid-audit binlog show '{kept}' SERVER --redo` (SERVER is the DSN of"
        f" {here}), and decide whether to run that script on {source.name} before you clone. Do not"
        " run it if the rows are there already, as they are after RESET BINARY LOGS AND GTIDS on"
        f" {source.name}"
        if kept
        else f"{here} has purged them too: their rows exist only in its tables, so compare the"
        f" tables and copy what is wanted to {source.name} before you clone"
    )
    return (
        f"do NOT restore {here} from {source.name} as it is: {only_here.shortened()} is only on"
        f" {here}, and its data would be lost; {saved}. Keep a copy of {here}'s data directory."
        f" Never restore both servers: one of them must keep its data. Only then {attach}"
    )


def _donor_refetch(situation: Situation) -> str:
    finding, model = situation.finding, situation.model
    wanted, replica = finding.gtid_set, model.servers.get(finding.replica or "")
    donors = [
        each.name
        for each in model.servers.values()
        if each.name not in (finding.source, finding.replica) and wanted <= each.available
    ]
    words = situation.dialect
    host, port = f"{words.option_prefix}HOST", f"{words.option_prefix}PORT"
    position = f"{words.option_prefix}AUTO_POSITION"
    extra = GtidSet.union_of(
        replica.executed.from_uuid(model[name].server_uuid) - model[name].executed
        for name in donors
        if replica is not None
    )
    if not donors:
        return "no server of this snapshot still has them all in its binary logs"
    where = situation.channel
    return (
        f"on {finding.replica}: {words.stop_replica}{where}; {words.change_source} {host} ="
        f" (address of {' or '.join(donors)}), {port} = (its port), {position} = 1{where};"
        f" {words.start_replica}{where}; wait until gtid_executed contains"
        f" {wanted.shortened()}; then point the channel back to {finding.source} in the same way,"
        f" with {position} = 1"
        + (
            f". The donor refuses: {extra.shortened()} is of its own UUID and missing there"
            if extra
            else ""
        )
    )


def _until_after_gaps(situation: Situation) -> str:
    start, where = situation.dialect.start_replica, situation.channel
    stop = situation.dialect.stop_replica
    until = f"{start} UNTIL SQL_AFTER_MTS_GAPS{where}"
    return f"{stop}{where}; {until}; wait until the applier has stopped by itself; {start}{where}"


def _attach(situation: Situation) -> str:
    words, model = situation.dialect, situation.model
    source = model.servers.get(situation.finding.source or "")
    replica = model.servers.get(situation.finding.replica or "")
    extra = (
        replica.executed - source.executed
        if replica is not None and source is not None
        else GtidSet()
    )
    if extra:
        return (
            f"do NOT attach it yet: {extra.shortened()} is missing on the candidate; decide about"
            " these transactions first"
        )
    return (
        f"compare the data of the two servers first; then {words.change_source} the candidate with"
        f" {words.option_prefix}AUTO_POSITION = 1, {words.start_replica}, and audit again"
    )


def _rebuild_position(situation: Situation) -> str:
    words, where = situation.dialect, situation.channel
    return (
        "only if the data of both servers is equal and no client writes on the source: on"
        f" {situation.finding.replica} {words.stop_replica}{where};"
        f" {words.reset_binary_logs_and_gtids}, which deletes its binary logs; SET GLOBAL"
        " gtid_purged to the source's gtid_executed;"
        f" {words.start_replica}{where}; audit again. Servers that replicate from it need the same"
    )


def _explain(situation: Situation) -> str:
    otherwise = "read the error text; `gtid-audit explain TEXT` prints what it means and what to do"
    for fact in situation.finding.evidence:
        if fact.fact in ("applier errno", "receiver errno"):
            try:
                found = explain(fact.value)
            except (Unexplained, UnknownCode):
                return otherwise
            return " ".join((found.meaning, *found.advice))
    return otherwise


def _kill_blocker(situation: Situation) -> str:
    if waits_for_gtid(situation.finding):
        return (
            f"SELECT @@GLOBAL.gtid_owned on {situation.finding.replica}: it lists GTID#thread; end"
            " the session of that thread with ROLLBACK or KILL. It must not commit: the transaction"
            " would then be executed without its rows"
        )
    return (
        "find the session in performance_schema.metadata_locks or data_locks (before 8.0:"
        " information_schema.INNODB_TRX and SHOW PROCESSLIST), make sure that its transaction may"
        " be rolled back, and KILL it"
    )


def _always(text: str) -> Text:
    return lambda _situation: text


# Keyed as in topology/strategies.py.
BY_HAND: Mapping[str, Text] = {
    "wait": _always("nothing to run: audit again in a few minutes"),
    "read_again": _always("nothing to run: audit again"),
    "until_after_gaps": _until_after_gaps,
    "donor_refetch": _donor_refetch,
    "reclone": _reclone,
    "raise_retention": _always(
        "SET GLOBAL binlog_expire_logs_seconds (expire_logs_days before 8.0) to a higher value on"
        " the source now, and in its configuration file"
    ),
    "kill_blocker": _kill_blocker,
    "new_server_uuid": _always(
        "only on the server whose data directory was copied: stop it, remove auto.cnf from its data"
        " directory, start it"
    ),
    "configure": _always("change the setting, in the configuration file too"),
    "grant": _always("grant the privilege or repair the access, and audit again"),
    "explain": _explain,
    "attach": _attach,
    "add_servers": _always("add the servers that the finding names, and audit again"),
    "check_data": _always(
        "compare the rows of the tables that the transactions changed on both servers (`gtid-audit"
        " binlog show` lists the tables and rows), then audit again"
    ),
    "rebuild_position": _rebuild_position,
}
