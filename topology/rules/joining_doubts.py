"""Why an unlinked server may not be fit to join although its sets allow it to (J1).

1. A row is a reason, as text. All reasons that apply are listed, and with any of them J1 is
   `likely`.
2. The sets show what the server would request. Identity, logs, settings and versions decide whether
   the connection is accepted.
3. A gtid_purged that was set says which rows the server is believed to have. No log shows them.
"""

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.declared import has_its_first_log
from topology.facts.joining import Joining
from topology.facts.source_limits import offline_text
from topology.readings.snapshot import ServerSnapshot
from topology.readings.version import follows, refuse_each_other
from topology.rules.absent_causes import logs_nothing_received
from topology.rules.build import many
from topology.rules.gone_logs import gone_logs_text
from topology.rules.passing_on import mode_not_on
from topology.rules.threads import has_closed_log, has_no_log


def refusal_doubts(facts: ClusterFacts, joining: Joining) -> str:
    """Return why the connection would be refused; "" if nothing shows that."""
    server, candidate = facts.last[joining.server], facts.last[joining.candidate]
    rows = (
        _identity(server, candidate),
        _settings(candidate),
        _offline(candidate),
        _log(server, candidate),
        _mode(candidate),
        _versions(server, candidate),
        gone_logs_text(candidate, replica=server.name) if joining.missing else "",
    )
    return "".join(rows)


def _identity(server: ServerSnapshot, candidate: ServerSnapshot) -> str:
    without = [each.name for each in (server, candidate) if each.server_id == 0]
    if without:
        return (
            f" server_id is 0 on {' and '.join(without)}: a server without a server_id neither"
            " sends nor receives (error 1200 or 1236)."
        )
    if server.server_id == candidate.server_id is not None:
        return (
            f" {server.name} and {candidate.name} have the same server_id, {server.server_id}: the"
            " connection is refused until one of them has another server_id."
        )
    return ""


def _settings(candidate: ServerSnapshot) -> str:
    if candidate.settings is not None:
        return ""
    return (
        f" gtid-audit did not read the settings of {candidate.name}: with no binary log, or with a"
        " gtid_mode other than ON, it would refuse the connection."
    )


def _offline(candidate: ServerSnapshot) -> str:
    closed = offline_text(candidate)
    return "" if closed is None else f" {closed}."


def _log(server: ServerSnapshot, candidate: ServerSnapshot) -> str:
    if has_no_log(candidate):
        return (
            f" {candidate.name} has no binary log (log_bin = OFF): it refuses every receiver until"
            " it is restarted with one."
        )
    if has_closed_log(candidate):
        return (
            f" {candidate.name} has closed its binary log (A9): it refuses every receiver until it"
            " is restarted."
        )
    if logs_nothing_received(candidate) and candidate.channels:
        return (
            f" {candidate.name} does not log what it receives (log_replica_updates = OFF), and"
            f" counts it as purged: it refuses {server.name} with error 1236 after it has received"
            " more transactions."
        )
    return ""


def _mode(candidate: ServerSnapshot) -> str:
    mode = mode_not_on(candidate)
    if mode is None:
        return ""
    return (
        f" {candidate.name} has gtid_mode = {mode}: it refuses SOURCE_AUTO_POSITION = 1 until the"
        " mode is ON."
    )


def _versions(server: ServerSnapshot, candidate: ServerSnapshot) -> str:
    """Explain that MySQL does not support a pair of versions; 5.6 and 9.7 refuse each other."""
    if server.version is None or candidate.version is None:
        return ""
    if follows(server.version, candidate.version):
        return ""
    refused = refuse_each_other(server.version, candidate.version)
    return (
        f" {candidate.name} runs {candidate.version} and {server.name} {server.version}: a replica"
        " must run its source's release series or the next one."
        + (" These two refuse each other (errors 2026 and 2059)." if refused else "")
    )


def declared_doubt(facts: ClusterFacts, joining: Joining) -> str:
    """Return which rows no log shows, because a gtid_purged may have been set; "" if none.

    If a server has purged logs, it had these transactions. With equal sets either of the two may be
    the one whose rows are missing.
    """
    server, candidate = facts.last[joining.server], facts.last[joining.candidate]
    return _declared(server, candidate) + _declared(candidate, server)


def _declared(server: ServerSnapshot, other: ServerSnapshot) -> str:
    declared = (server.gtid_purged or GtidSet()) & (other.gtid_executed or GtidSet())
    is_silent = logs_nothing_received(server)
    if not declared or (server.binary_logs and not (is_silent or has_its_first_log(server))):
        return ""
    why = (
        f"{server.name} does not log what it receives (log_replica_updates = OFF)"
        if is_silent
        else f"A backup, a clone or an operator may have set the gtid_purged of {server.name}"
    )
    return (
        f" {why}, and no log shows whether it has the rows of {many(declared)}. Compare the data"
        " before the two are linked (gtid-audit repair check-data)."
    )
