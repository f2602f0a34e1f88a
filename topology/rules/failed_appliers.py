"""A1, A2, A3: an applier that stopped with an error."""

from collections.abc import Iterator

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.failed_transactions import (
    applier_errno_of,
    failed_workers,
    quoted_as_failed,
)
from topology.facts.group_appliers import failed_channels
from topology.readings.group_view import GROUP_CHANNELS
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.rules.build import Rules, evidence, finding, many
from topology.rules.definition_causes import drift_behind, errors_of_channel
from topology.rules.error_causes import cause_of_applier, hides_its_error
from topology.rules.executed_in_part import in_part_text
from topology.rules.filtered_tables import filters_behind

# The fact that a transaction counts as executed although it failed; see contents_to_compare.py.
FAILED_AND_EXECUTED = "failed, and counted as executed"
_LEFT = (
    " {replica} has left its group. Remove the cause, then run STOP GROUP_REPLICATION and START"
    " GROUP_REPLICATION on it: it meets the same transaction again until then."
)


def applier_error(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A1, A2, A3: the applier stopped with an error."""
    for source, replica, channel in (*_of_channels(facts), *_of_groups(facts)):
        if not (channel.applier_errno or channel.applier_error):
            continue
        text = _applier_text(channel)
        code, cause = cause_of_applier(channel, text)
        failed, executed = _failed(channel), replica.gtid_executed or GtidSet()
        in_part = failed & executed
        errant = _errant(facts, source, replica.name) if code == "A2" else GtidSet()
        yield finding(
            facts,
            code,
            source=source,
            replica=replica.name,
            channel=channel.name,
            gtid_set=(failed or quoted_as_failed(channel.applier_error)) - executed,
            grade=Grade.LIKELY if hides_its_error(channel) else Grade.PROVED,
            strategies=() if channel.name in GROUP_CHANNELS else None,
            proof=(
                evidence("applier errno", applier_errno_of(channel), replica),
                evidence("applier error", text, replica),
                evidence("applier error at", channel.applier_error_at or "unknown", replica),
                evidence("applier stopped before", channel.applied_to, replica),
                *((evidence("errant transactions", errant, replica),) if errant else ()),
                *((evidence(FAILED_AND_EXECUTED, str(in_part), replica),) if in_part else ()),
            ),
            explanation=f"The applier of {replica.name} stopped: {cause}"
            + drift_behind(
                facts.snapshot.definitions,
                source=source,
                replica=replica.name,
                errors=errors_of_channel(channel),
            )
            + filters_behind(channel, replica.name, errno=applier_errno_of(channel), text=text)
            + (_LEFT.format(replica=replica.name) if channel.name in GROUP_CHANNELS else "")
            + (in_part_text(code, source, replica.name, in_part) if in_part else "")
            + (
                f" {replica.name} also has {many(errant)} that {source} does not have (see E1, E2"
                " or P1 of this audit): they may have written or deleted the row."
                if errant
                else ""
            ),
        )


def _of_channels(
    facts: ClusterFacts,
) -> Iterator[tuple[str | None, ServerSnapshot, ChannelSnapshot]]:
    """Yield every channel, whether or not its source is a server of this cluster."""
    for source, replica, channel in facts.channels():
        yield source, facts.last[replica], channel


def _of_groups(
    facts: ClusterFacts,
) -> Iterator[tuple[None, ServerSnapshot, ChannelSnapshot]]:
    """Yield the failed channels of servers that left their group."""
    for _, server in sorted(facts.last.items()):
        for channel in failed_channels(server):
            yield None, server, channel


def _errant(facts: ClusterFacts, source: str | None, replica: str) -> GtidSet:
    return GtidSet.union_of(
        edge.errant for edge in facts.edges_into(replica) if edge.source == source
    )


def _applier_text(channel: ChannelSnapshot) -> str:
    """Return the fullest text: with workers, the channel's own often only refers to theirs."""
    texts = [worker.error for worker in failed_workers(channel) if worker.error]
    return "; ".join(filter(None, [channel.applier_error, *texts]))


def _failed(channel: ChannelSnapshot) -> GtidSet:
    """Return the GTIDs that the failed workers executed; empty if the version does not show it."""
    return GtidSet.union_of(worker.applying for worker in failed_workers(channel) if worker.errno)


RULES: Rules = (
    applier_error,  # A1 A2 A3
)
