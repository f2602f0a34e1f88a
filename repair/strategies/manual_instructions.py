"""Manual instructions: texts for strategies for which no script is written (strategy_registry.py).

1. An instruction is complete: executed literally, it loses no transaction that it does not list
   first. Statements are in backticks, in order, after the server on which to run them. Values that
   the operator fills in are in parentheses. Tests run the instructions on real servers.
2. If an instruction deletes data, the text is computed from the servers' sets. It lists what would
   be lost, or refuses the direction in which it must not be used.
"""

from gtid import GtidSet
from repair.model.replication_model import ModelServer
from repair.strategies.instruction_context import Situation, attaching, in_order
from topology.catalogue.applier_errors import RELAY_LOG_UNREADABLE
from topology.catalogue.explanations import Unexplained
from topology.catalogue.explanations import explain as explained
from topology.catalogue.findings import Finding, Severity
from topology.catalogue.verdict_table import UnknownCode
from topology.facts.donors import DOUBTFUL_DONORS
from topology.rules.distinct_uuids import have_distinct_uuids


def donor_refetch(situation: Situation) -> str:
    """Return from which server to get what the source has purged."""
    finding, model = situation.finding, situation.model
    replica, wanted = model.servers.get(finding.replica or ""), finding.gtid_set
    donors = [
        each
        for each in model.servers.values()
        if each.name not in (finding.source, finding.replica)
        and wanted <= each.available
        and (replica is None or each.purged <= replica.executed | _waiting(replica))
    ]
    if not donors:
        return (
            "no server of this snapshot has all transactions that the replica needs in its binary"
            " logs"
        )
    # The first donor whose logs are all there, that accepts the connection and sends nothing else.
    doubted = _doubted(finding)
    is_doubted, refused, more, name = min(
        (each.name in doubted, *_obstacles(situation, each)) for each in donors
    )
    words, where = situation.dialect, situation.channel
    stop = f"{words.stop_replica}{where}"
    text = (
        f"{_applied_first(replica, model[name])}"
        f"on {finding.replica} run {in_order(stop, *attaching(situation, name))}; wait until"
        f" gtid_executed contains {wanted.shortened()}; then point the channel back to"
        f" {finding.source}: run {in_order(stop, *attaching(situation, finding.source or ''))}"
    )
    if finding.code in ("H3", "H5"):
        text = (
            "compare the rows first: if a copy with them was loaded on"
            f" {finding.replica} without its gtid_purged, a second execution fails or doubles data."
            f"{_older_than_later(situation, name)} If they are missing, and no later transaction"
            f" changed these rows, {text}"
        )
    if more:
        text = (
            f"{name} would also send {more}, which {finding.source} does not have: decide first"
            f" whether you want that. Then {text}"
        )
    text += (
        f". {finding.replica} then gets only what {name} applied. What {name} left out because of"
        f" a filter, an ignored error or an empty transaction is missing on {finding.replica} too,"
        f" and no later audit reports it. `gtid-audit binlog show '{wanted}' SERVER` (SERVER is"
        f" the DSN of {name}) shows what its log contains"
    )
    if is_doubted:
        text = (
            f"whether {name} can send them is not certain: a binary log is missing there, or could"
            " not be read (see the finding). Look at its logs with the command at the end first. If"
            f" it prints the transactions, {text}"
        )
    if refused:
        text += (
            f". {name} will refuse the connection: {refused} has its server_uuid, but {name} does"
            " not have it"
        )
    return text


def _waiting(replica: ModelServer) -> GtidSet:
    """Return what a server has received and not applied: its relay logs have it."""
    received = (each.retrieved - each.passed for each in replica.channels)
    return GtidSet.union_of(received) - (replica.executed - replica.due)


def _applied_first(replica: ModelServer | None, donor: ModelServer) -> str:
    """Return that the relay log comes first, if only it has what a donor has purged."""
    applied = GtidSet() if replica is None else replica.executed - replica.due
    gone = GtidSet() if replica is None else donor.purged - applied
    if replica is None or not gone:
        return ""
    return (
        f"let {replica.name} apply {gone.shortened()} first (start or repair its applier as this"
        f" plan says): its relay log has it, {donor.name} has purged it, and the next statements"
        " delete the relay log. When gtid_executed contains it, "
    )


def _older_than_later(situation: Situation, donor: str) -> str:
    """Return what a fetch does to rows that changed since; "" if the replica is not further."""
    finding = situation.finding
    replica = situation.model.servers.get(finding.replica or "")
    late = finding.gtid_set & replica.executed.filled() if replica is not None else GtidSet()
    if not late:
        return ""
    command = f"gtid-audit binlog show '{late}' SERVER"
    return (
        f" {finding.replica} would apply {late.shortened()} after later transactions, and this plan"
        " has not compared their rows: where a row was changed or deleted since, the older version"
        " replaces the newer one, and every set is equal afterwards. So read the rows with"
        f" `{command}` (SERVER is the DSN of {donor}). If one of them was changed since, do NOT"
        f" fetch: write the rows that {finding.replica} is missing by hand (sql_log_bin = 0), and"
        f" select inject_empty for {finding.code}."
    )


def _doubted(finding: Finding) -> frozenset[str]:
    """Return the servers whose logs, by the finding, may not have what their sets show."""
    return frozenset(
        name
        for each in finding.evidence
        if each.fact == DOUBTFUL_DONORS
        for name in each.value.split(", ")
    )


def _obstacles(situation: Situation, donor: ModelServer) -> tuple[str, str, str]:
    """Return what a donor refuses, what else it sends, and its name; the best is the smallest."""
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


def attach(situation: Situation) -> str:
    """Return how to let a server receive from the candidate of the finding."""
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
            f"do NOT attach {replica.name} yet: {source.name} does not have {extra.shortened()}."
            " Decide about these transactions first"
        )
    return (
        f"compare the data of the two servers first: if {replica.name} already has the rows,"
        f" replication would apply the transactions a second time. Then on {replica.name} run"
        f" {in_order(*attaching(situation, source.name))}, and audit again"
    )


def check_data(situation: Situation) -> str:
    """Return how to find out whether the rows of a source are those before its new history."""
    return (
        f"{_data_check(situation)}; `gtid-audit binlog show` lists the rows that the transactions"
        " changed. Then audit again"
    )


def _data_check(situation: Situation) -> str:
    """Return that nothing was compared, and the command that compares it.

    The two will never have executed the same: the source has a new history.
    """
    source, replica = situation.finding.source, situation.finding.replica
    command = f"gtid-audit repair check-data (DSN of {source}) (DSN of {replica}) --as-they-are"
    return f"THE DATA WAS NOT CHECKED: compare the rows of {source} and {replica} with `{command}`"


def rebuild_position(situation: Situation) -> str:
    """Return how to let a replica follow a source that began its history again."""
    words, where = situation.dialect, situation.channel
    statements = in_order(
        f"{words.stop_replica}{where}",
        words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '(@@GLOBAL.gtid_executed of {situation.finding.source})'",
        # This deletes the relay log: the receiver would request what was received of the old
        # history.
        f"{words.change_source} {words.option_prefix}AUTO_POSITION = 1{where}",
        f"{words.start_replica}{where}",
    )
    return (
        f"{_data_check(situation)}. Only if the data of both servers is equal and no client writes"
        f" to the source: on {situation.finding.replica} run {statements}, and audit again. This"
        f" deletes the binary logs of {situation.finding.replica}. Servers that replicate from it"
        " need the same procedure"
    )


def new_server_uuid(situation: Situation) -> str:
    """Return how to give a copied server its own server_uuid."""
    # A receiver that stopped with 13117 (1593 before 8.0) does not try again (seen on 9.7.4).
    return (
        "only on the server whose data directory was copied: stop it, remove auto.cnf from its data"
        " directory, start it. Then, on each server whose receiver has stopped, run"
        f" {in_order(f'{situation.dialect.start_replica} IO_THREAD')}"
    )


def explain(situation: Situation) -> str:
    """Return what the error of a stopped thread means, and what to do."""
    otherwise = "read the error text; `gtid-audit explain TEXT` prints what it means and what to do"
    facts = {fact.fact: fact.value for fact in situation.finding.evidence}
    # The text first: one number has several causes.
    for fact in ("applier error", "receiver error", "applier errno", "receiver errno"):
        try:
            found = explained(facts.get(fact, ""))
        except (Unexplained, UnknownCode):
            continue
        if found.title == RELAY_LOG_UNREADABLE:
            return _received_again(situation)
        return " ".join((*_if_repaired(situation), found.meaning, *found.advice))
    return otherwise


def _if_repaired(situation: Situation) -> tuple[str, ...]:
    if not have_distinct_uuids(situation.finding):
        return ()
    return ("If the copy has its own server_uuid by now, only a start is left. Otherwise:",)


def _received_again(situation: Situation) -> str:
    """Return how to replace an unreadable relay log, which may be the last copy of some GTIDs."""
    finding, words, where = situation.finding, situation.dialect, situation.channel
    source, replica = (
        situation.model.servers.get(name or "") for name in (finding.source, finding.replica)
    )
    channels = () if replica is None else replica.channels
    channel = next((each for each in channels if each.name == finding.channel), None)
    if source is None or replica is None or channel is None:
        return (
            "the relay log cannot be read, and the source was not read: compare what is missing"
            " with the binary logs of the source before you delete the relay log"
        )
    gone = channel.retrieved - (replica.executed - replica.due) - source.available
    if gone:
        return (
            f"do NOT delete the relay log of {replica.name}: the binary logs of {source.name} no"
            f" longer contain {gone.shortened()}. Save the relay log files. Get these transactions"
            f" from another server, or clone. Only then let {source.name} send the rest again"
        )
    if channel.auto_position:
        options = f"{words.option_prefix}AUTO_POSITION = 1"
    else:
        options = (
            f"{words.option_prefix}LOG_FILE = '(Relay_{words.option_prefix.title()}Log_File)',"
            f" {words.option_prefix}LOG_POS = (Exec_{words.option_prefix.title()}Log_Pos)"
        )
    statements = in_order(
        f"{words.stop_replica}{where}",
        f"{words.change_source} {options}{where}",
        f"{words.start_replica}{where}",
    )
    how = "" if channel.auto_position else f", with the values of {words.show_replica_status}"
    return (
        f"no transaction caused the error, and {source.name} still has all of them: on"
        f" {replica.name} run {statements}{how}. This deletes the relay log, and {source.name}"
        " sends the transactions again. Find out what damaged the file"
    )


def move_consumer(situation: Situation) -> str:
    """Return how a consumer reads from another server."""
    name, source = situation.finding.replica, situation.finding.source or "its server"
    return (
        f"stop {name}; in its configuration, replace the address of {source} by that of a server"
        " that serves its set, as the finding shows; do not change the set that it has stored;"
        f" start it. Then change `server` of {name} in the fleet file, and audit again"
    )


def new_snapshot(situation: Situation) -> str:
    """Return how a consumer or a backup gets a newer set, with the data that belongs to it."""
    finding = situation.finding
    name = finding.replica
    waits = ""
    if finding.severity is Severity.WARNING and finding.gtid_set:
        waits = (
            f"if {name} still reads, wait until its set has"
            f" {finding.gtid_set.shortened()}, and do nothing else. Otherwise: "
        )
    return (
        f"{waits}if {name} is a consumer, stop it, let it take a new snapshot of all tables from a"
        " server of this cluster, and store the set of that snapshot instead of the old one. A"
        " snapshot does not show which rows were deleted since the old set: compare its target with"
        f" the tables. If {name} is a backup, take a new one with its set (for example"
        " `mysqldump --single-transaction --set-gtid-purged=ON`), and list that one in the fleet"
        " file. Keep the old one until the new one is complete. Then audit again"
    )
