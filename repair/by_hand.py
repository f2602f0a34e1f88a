"""What the operator does where no script is written: one text for each such strategy.

1. An instruction is complete: run literally, it loses no transaction that it does not name first.
   Statements are in backticks, in their order, behind the server on which to run them; what the
   operator fills in is in parentheses. Tests run them on real servers.
2. Where an instruction deletes data, the text is made from the servers' sets: it lists what would
   be lost, or refuses the direction in which it must not be run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gtid import GtidSet
from repair.dialect import for_channel
from repair.model import Model, ModelServer
from topology.catalogue import UnknownCode
from topology.dialect import Dialect, dialect_of
from topology.explain import Unexplained, explain
from topology.findings import Finding
from topology.gtid_waits import owning_channel, waits_for_gtid
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
        return for_channel(self.dialect, self.finding.channel or "")


Text: TypeAlias = Callable[[Situation], str]


def by_hand(name: str, finding: Finding, model: Model) -> str:
    """Return what the operator does for a strategy that has no script."""
    return BY_HAND[name](Situation(finding, model))


def _run(*statements: str) -> str:
    """Return statements to run in this order."""
    return ", ".join(f"`{each}`" for each in statements)


def _attaching(situation: Situation, source: str) -> tuple[str, ...]:
    """Return the statements that point the finding's channel to a server, and start it."""
    words, where = situation.dialect, situation.channel
    prefix = words.option_prefix
    options = (
        f"{prefix}HOST = '(host of {source})', {prefix}PORT = (port of {source}),"
        f" {prefix}USER = '(account of the channel)', {prefix}AUTO_POSITION = 1"
    )
    return f"{words.change_source} {options}{where}", f"{words.start_replica}{where}"


def _reclone(situation: Situation) -> str:
    finding, servers = situation.finding, situation.model.servers
    source, replica = servers.get(finding.source or ""), servers.get(finding.replica or "")
    if source is None or replica is None:
        return (
            "replace the server's data by a backup or a clone of its source, but only after you"
            " have compared their GTID sets: what only this server has is lost by it"
        )
    here = replica.name
    remove = f"{situation.dialect.reset_replica} ALL"
    attach = (
        f"take a backup of {source.name} that has its GTID set, or a clone, from now on; stop"
        f" {here}; replace its data directory by it, but keep its own auto.cnf and its own"
        " configuration file; start it without its replication threads (skip_replica_start,"
        " skip_slave_start before 8.0.26). The copy may have the channels of"
        f" {source.name}: on {here} run {_run(remove, *_attaching(situation, source.name))}"
    )
    if len(replica.channels) > 1:
        attach += " and configure its other channels again"
    if finding.code == "E4":
        attach += (
            f". {here} keeps its server_uuid by this, as it does with CLONE INSTANCE. If you audit"
            " with `--out`, delete the cluster's entry under `differences` in _content_looks.json"
            " afterwards: an audit that cannot compare these GTIDs any more reports them as before"
        )
    only_here = replica.executed - source.executed
    if not only_here:
        return f"{attach}. Nothing is lost: {source.name} has all transactions of {here}"
    if finding.code == "E6":
        return (
            f"compare the data first: {only_here.shortened()} is only in the list of {here} because"
            f" the history of {source.name} was reset, and the rows are probably on {source.name}."
            f" Do not redo them there. Where the rows are there, {attach}. Nothing is lost then"
        )
    return (
        f"do NOT restore {here} from {source.name} as it is: {only_here.shortened()} is only on"
        f" {here}, and its data would be lost; {_saving(situation, only_here, replica)}. Keep a"
        f" copy of {here}'s data directory. Never restore both servers: one of them must keep its"
        f" data. Only then {attach}"
    )


def _saving(situation: Situation, only_here: GtidSet, replica: ModelServer) -> str:
    """Return how to keep what only the replica has."""
    source, kept = situation.finding.source, only_here - replica.purged
    if kept:
        return (
            f"save them first: `gtid-audit binlog show '{kept}' SERVER --redo --schema-from SERVER`"
            f" (SERVER is the DSN of {replica.name}), and decide whether to run that script on"
            f" {source} before you clone. Do not run it if the rows are there already, as they are"
            f" after RESET BINARY LOGS AND GTIDS on {source}"
        )
    return (
        f"{replica.name} has purged them too: their rows exist only in its tables, so compare the"
        f" tables and copy what is wanted to {source} before you clone"
    )


def _donor_refetch(situation: Situation) -> str:
    finding, model = situation.finding, situation.model
    replica, wanted = model.servers.get(finding.replica or ""), finding.gtid_set
    donors = [
        each
        for each in model.servers.values()
        if each.name not in (finding.source, finding.replica)
        and wanted <= each.available
        and (replica is None or each.purged <= replica.executed)
    ]
    if not donors:
        return "no server of this snapshot has all that the replica needs in its binary logs"
    # The first donor that would not refuse, and would send nothing else.
    refused, more, name = min(_obstacles(situation, each) for each in donors)
    words, where = situation.dialect, situation.channel
    stop = f"{words.stop_replica}{where}"
    text = (
        f"on {finding.replica} run {_run(stop, *_attaching(situation, name))}; wait until"
        f" gtid_executed contains {wanted.shortened()}; then point the channel back to"
        f" {finding.source}: run {_run(stop, *_attaching(situation, finding.source or ''))}"
    )
    if more:
        text = (
            f"{name} would also send {more}, which {finding.source} does not have: decide about"
            f" that first. Then {text}"
        )
    text += (
        f". {finding.replica} then gets what {name} applied: what {name} left out by a filter, an"
        " ignored error or an empty transaction is missing there too, and no later audit shows it."
        f" `gtid-audit binlog show '{wanted}' SERVER` (SERVER is the DSN of {name}) shows what its"
        " log has"
    )
    if refused:
        text += f". The donor refuses: {refused} is of its own UUID and missing there"
    return text


def _obstacles(situation: Situation, donor: ModelServer) -> tuple[str, str, str]:
    """Return what a donor refuses, what it sends besides, and its name; the best is the least."""
    servers, finding = situation.model.servers, situation.finding
    ends = [servers.get(finding.source or ""), servers.get(finding.replica or "")]
    known = GtidSet.union_of(each.executed for each in ends if each is not None)
    replica = ends[1]
    refused = (
        replica.executed.from_uuid(donor.server_uuid) - donor.executed
        if replica is not None
        else GtidSet()
    )
    more = donor.executed - known
    return (
        refused.shortened() if refused else "",
        more.shortened() if more else "",
        donor.name,
    )


def _until_after_gaps(situation: Situation) -> str:
    words, where = situation.dialect, situation.channel
    stop, start = f"{words.stop_replica}{where}", f"{words.start_replica}{where}"
    until = f"{words.start_replica} UNTIL SQL_AFTER_MTS_GAPS{where}"
    return (
        f"on {situation.finding.replica} run {_run(stop, until)}; wait until the applier has"
        f" stopped by itself; then run {_run(start)}"
    )


def _attach(situation: Situation) -> str:
    model, finding = situation.model, situation.finding
    source, replica = (
        model.servers.get(finding.source or ""),
        model.servers.get(finding.replica or ""),
    )
    if source is None or replica is None:
        return "compare the GTID sets and the data of the two servers first"
    extra = replica.executed - source.executed
    if extra:
        return (
            f"do NOT attach it yet: {extra.shortened()} is missing on the candidate; decide about"
            " these transactions first"
        )
    return (
        "compare the data of the two servers first: where the rows are there, the transactions"
        f" would be applied a second time. Then on {replica.name} run"
        f" {_run(*_attaching(situation, source.name))}, and audit again"
    )


def _rebuild_position(situation: Situation) -> str:
    words, where = situation.dialect, situation.channel
    statements = _run(
        f"{words.stop_replica}{where}",
        words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '(@@GLOBAL.gtid_executed of {situation.finding.source})'",
        # It deletes the relay log: what was received of the old history would be asked for.
        f"{words.change_source} {words.option_prefix}AUTO_POSITION = 1{where}",
        f"{words.start_replica}{where}",
    )
    return (
        "only if the data of both servers is equal and no client writes on the source: on"
        f" {situation.finding.replica} run {statements}, and audit again. It deletes the binary"
        " logs of this server. Servers that replicate from it need the same"
    )


def _new_server_uuid(situation: Situation) -> str:
    # A receiver that stopped with 13117 (1593 before 8.0) does not try again (seen on 9.7.4).
    return (
        "only on the server whose data directory was copied: stop it, remove auto.cnf from its data"
        " directory, start it. Then, on each server whose receiver has stopped, run"
        f" {_run(situation.dialect.start_replica)}"
    )


def _configure(situation: Situation) -> str:
    finding, words, where = situation.finding, situation.dialect, situation.channel
    stop, start = f"{words.stop_replica}{where}", f"{words.start_replica}{where}"
    if finding.code == "C2":
        change = "SET GLOBAL server_id = (a number that no other server has)"
        return (
            f"on {finding.replica} run {_run(stop, change, start)}, and change it in the"
            " configuration file of that server"
        )
    if finding.code == "H8" or any(each.fact == "IGNORE_SERVER_IDS" for each in finding.evidence):
        change = f"{words.change_source} IGNORE_SERVER_IDS = (){where}"
        return (
            "find out why these servers are ignored; if their transactions are wanted, on"
            f" {finding.replica} run {_run(stop, change, start)}"
        )
    if finding.code == "P1":
        return (
            "set log_replica_updates (log_slave_updates before 8.0.26) in the configuration file of"
            f" {finding.source}, and restart it: it then logs what it receives from now on"
        )
    return "change the setting, in the configuration file too"


def _explain(situation: Situation) -> str:
    otherwise = "read the error text; `gtid-audit explain TEXT` prints what it means and what to do"
    facts = {fact.fact: fact.value for fact in situation.finding.evidence}
    # The text first: one number stands for several causes.
    for fact in ("applier error", "receiver error", "applier errno", "receiver errno"):
        try:
            found = explain(facts.get(fact, ""))
        except (Unexplained, UnknownCode):
            continue
        return " ".join((found.meaning, *found.advice))
    return otherwise


def _kill_blocker(situation: Situation) -> str:
    if owning_channel(situation.finding) is not None:
        return (
            f"on {situation.finding.replica} run {_run('SELECT @@GLOBAL.gtid_owned')}: it lists"
            " GTID#thread; the threads are workers of two channels that bring the same transactions"
            f" and wait for each other: run {_run('KILL (id of the thread)')} for the one with the"
            " lowest number; its applier stops with error 1317, and what it had in hand is applied"
            " by the other channel. When that has caught up, start the stopped one again"
        )
    if waits_for_gtid(situation.finding):
        return (
            f"on {situation.finding.replica} run {_run('SELECT @@GLOBAL.gtid_owned')}: it lists"
            " GTID#thread; end the session of that thread with ROLLBACK, or run"
            f" {_run('KILL (id of the thread)')}. It must not commit: the transaction would then be"
            " executed without its rows"
        )
    return (
        "find the session that holds the lock, not a replication thread:"
        " performance_schema.metadata_locks or data_locks (before 8.0:"
        " information_schema.INNODB_TRX and SHOW PROCESSLIST); make sure that its transaction may"
        f" be rolled back; then on {situation.finding.replica} run"
        f" {_run('KILL (id of the thread)')}. A prepared XA transaction holds its locks without a"
        f" session (information_schema.INNODB_TRX shows thread 0): run {_run('XA RECOVER')}, and"
        f" end it with {_run('XA COMMIT (xid)')} or {_run('XA ROLLBACK (xid)')}"
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
    "new_server_uuid": _new_server_uuid,
    "configure": _configure,
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
