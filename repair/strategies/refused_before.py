"""A receiver whose source refused it, and would now accept it (A4): its GTIDs, its server_uuid.

How it works
------------
While the sets do not match, E3 and P1 report why the source refuses. The receiver's error stays
until the next start, even if the sets match by then:

    by steps of a plan            stopped before its last one, which starts the channel
    by hand                       the GTIDs were used up, or committed again
    by the source's own commits   it gave the lost GTIDs to other transactions (E3)

No set distinguishes the last cause from the others. After a start in that case, both sides differ
permanently under equal sets. So the start is planned only if the operator selects it. `--again`
selects it if a strategy that was selected for the earlier plan ended with it
(gtid_audit/tasks/plan_again.py).

A source also disconnects a receiver when another replica with its server_uuid connects. Once the
servers that were read have different server_uuids, a selected start is planned as well. A server
that was not read may still have it, so it is never a default.
"""

from dataclasses import replace

from repair.model.replication_model import Model, refused
from repair.model.strategy_case import Case, Outcome, Refusal
from repair.strategies.starting import start_channel
from topology.catalogue.error_texts import row_of
from topology.catalogue.findings import Finding
from topology.rules.distinct_uuids import have_distinct_uuids
from topology.rules.threads import RECEIVER_ERROR

_FOR_SETS = frozenset({"E3", "P1"})


def start_as_selected(case: Case) -> Outcome:
    """Plan to start a channel; with a receiver error (A4), only if the GTID set was the cause."""
    if case.finding.code != "A4":
        return start_channel(case)
    was_disconnected = have_distinct_uuids(case.finding)
    if not (was_disconnected or _is_for_sets(case.finding)):
        return Refusal(
            "its source did not refuse it for its GTIDs: a start does not help until you have"
            " repaired the cause in its error text"
        )
    outcome = start_channel(case)
    if isinstance(outcome, Refusal):
        return outcome
    source, replica = case.finding.source, case.finding.replica
    warning = (
        f"{source} disconnected {replica} for another replica with its server_uuid. The servers"
        " that were read have different ones now. If a server that was not read has it, the two"
        " disconnect each other again"
        if was_disconnected
        else f"{source} refused {replica} for its GTIDs, and would accept them now. If {source} has"
        " reused them for other transactions since, rows differ and no set shows it: audit with"
        " --content first"
    )
    return replace(outcome, warnings=(*outcome.warnings, warning))


def fits_by_now(finding: Finding, model: Model) -> str:
    """Return that a channel may be started by selection; "" if its source still refuses it."""
    source = model.servers.get(finding.source or "")
    replica = model.servers.get(finding.replica or "")
    channel = replica.channel(finding.channel or "") if replica is not None else None
    if finding.code != "A4" or source is None or channel is None:
        return ""
    assert replica is not None, "it has the channel"
    if have_distinct_uuids(finding) and not refused(source, replica, channel):
        return (
            "start_channel: the servers that were read have different server_uuids now; if the copy"
            " is one of them, select it with --strategy A4=start_channel"
        )
    if not _is_for_sets(finding):
        return ""
    if refused(source, replica, channel):
        return ""
    return (
        f"start_channel: {source.name} refused {replica.name} for its GTIDs, and would accept them"
        " now; compare contents (--content), then select it with --strategy A4=start_channel"
    )


def _is_for_sets(finding: Finding) -> bool:
    rows = (row_of(each.value) for each in finding.evidence if each.fact == RECEIVER_ERROR)
    return any(row is not None and row.code in _FOR_SETS for row in rows)
