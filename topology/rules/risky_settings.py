"""C5, C7, C8, C9, C10, C12, C13, C14: configuration that makes other faults possible.

1. What is normal in a supported shape is info: `levels` of the policy decides for a fleet.
2. The fleet audit decides clean clusters by `notable_settings`, clocks and versions alone
   (spark_audit/clean_configuration.py): what a rule reads here is among these, or is only read
   where another condition already fails.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import combinations
from math import gcd
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.runway import retention_of
from topology.facts.unseen import outside_channels
from topology.readings.notable_settings import AUTO_INCREMENT, COMMIT_ORDER, notable_values
from topology.readings.snapshot import ServerSnapshot
from topology.readings.vendors import LOG_RETENTION_HOURS
from topology.readings.version import follows, refuse_each_other
from topology.rules.build import Rules, evidence, finding, lasting, on_edge

_DURABLE: Final = {
    "sync_binlog": "the end of its binary log",
    "innodb_flush_log_at_trx_commit": "the last transactions of InnoDB",
}

_KEPT_FOR_REPLICAS: Final = (
    " The service keeps a log longer while one of its own read replicas needs it: this concerns"
    " replicas that it does not manage."
)


def durability(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C5: a source that can lose committed transactions in a crash of its machine."""
    sources = {edge.source for edge in facts.graph.edges}
    for name in sorted(sources & facts.last.keys()):
        server = facts.last[name]
        values = notable_values(server.notable_settings)
        lost = {setting: what for setting, what in _DURABLE.items() if setting in values}
        if lost:
            shown = " and ".join(f"{setting} is {values[setting]}" for setting in lost)
            yield finding(
                facts,
                "C5",
                replica=name,
                severity=Severity.INFO,
                grade=Grade.PROVED,
                proof=_settings(lost, values, server),
                explanation=f"{shown} on {name}. If its machine fails, it can lose"
                f" {' and '.join(lost.values())}, while its replicas have them: E3, and E4 after it"
                " has used the GTIDs again.",
            )


def without_commit_order(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C7: workers that commit in any order."""
    for name, server in sorted(facts.last.items()):
        values = notable_values(server.notable_settings)
        if server.channels and COMMIT_ORDER in values:
            yield finding(
                facts,
                "C7",
                replica=name,
                grade=Grade.PROVED,
                proof=_settings((COMMIT_ORDER,), values, server),
                explanation=f"The workers of {name} commit in any order"
                f" ({COMMIT_ORDER} = {values[COMMIT_ORDER]}): after a crash or an error of the"
                " applier it can have gaps, and its clients can see a transaction before an earlier"
                " one.",
            )


def short_retention(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C8: a source that keeps its logs for less time than a replica may be down."""
    sources = {edge.source for edge in facts.graph.edges}
    longest = facts.policy.outage_seconds_max
    for name in sorted(sources & facts.last.keys()):
        server = facts.last[name]
        kept = retention_of(server)
        if kept is not None and kept.period < timedelta(seconds=longest):
            seconds = int(kept.period.total_seconds())
            of_service = kept.setting == LOG_RETENTION_HOURS
            yield finding(
                facts,
                "C8",
                replica=name,
                grade=Grade.LIKELY if of_service else Grade.PROVED,
                proof=(evidence(kept.setting, kept.value, server),),
                explanation=f"{name} keeps its binary logs for {lasting(seconds)}. A replica that"
                " is down for longer is refused with error 1236 when it returns; the policy allows"
                f" {lasting(longest)} (outage_seconds_max)."
                + (_KEPT_FOR_REPLICAS if of_service else ""),
            )


def writable_replica(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C9: a replica on which clients can write, and whose source would not get that."""
    if not _is_all_known(facts):
        return
    upstream = facts.graph.upstream_of
    for name, server in sorted(facts.last.items()):
        sources = sorted({edge.source for edge in facts.graph.into(name)})
        receives_back = any(name in upstream(source, stopped_too=True) for source in sources)
        # Group Replication sets read_only of its members itself: a PRIMARY must accept writes.
        if not sources or receives_back or server.group is not None:
            continue
        if AUTO_INCREMENT in notable_values(server.notable_settings):
            yield finding(
                facts,
                "C9",
                source=sources[0],
                replica=name,
                severity=Severity.INFO,
                grade=Grade.PROVED,
                proof=(
                    evidence("read_only", "OFF", server),
                    evidence("its sources", ", ".join(sources), server),
                ),
                explanation=f"Clients can write on {name} (read_only is OFF). {sources[0]} does not"
                " replicate from it, so what is written there is errant (E1).",
            )


def _is_all_known(facts: ClusterFacts) -> bool:
    """Return whether the channels of all servers were read, and none has a source outside."""
    return not any(outside_channels(facts.graph)) and all(
        server.channels is not None for server in facts.last.values()
    )


def relay_log_not_recovered(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C10: parallel workers by file position that cannot recover their position."""
    for name, server in sorted(facts.last.items()):
        by_position = [each for each in server.channels or () if not each.auto_position]
        workers = server.setting("replica_parallel_workers") or "0"
        recovery = server.setting("relay_log_recovery")
        if by_position and int(workers) > 1 and recovery in ("OFF", "0"):
            yield finding(
                facts,
                "C10",
                replica=name,
                severity=Severity.INFO,
                grade=Grade.PROVED,
                proof=(
                    evidence("relay_log_recovery", recovery, server),
                    evidence("replica_parallel_workers", workers, server),
                    evidence("auto-position", "off", server),
                ),
                explanation=f"{name} applies with {workers} workers, without auto-position, and"
                " relay_log_recovery is OFF. After a crash of its machine the relay log and the"
                " positions can differ: transactions are then skipped or executed twice.",
            )


def auto_increment_overlap(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C12: two servers that replicate from each other and generate the same keys."""
    generating = {
        name: value
        for name, server in facts.last.items()
        if (value := notable_values(server.notable_settings).get(AUTO_INCREMENT)) is not None
    }
    for left, right in combinations(sorted(generating), 2):
        servers = (facts.last[left], facts.last[right])
        values = (generating[left], generating[right])
        upstream = facts.graph.upstream_of
        if left not in upstream(right, stopped_too=True) or right not in upstream(
            left, stopped_too=True
        ):
            continue
        if not overlap(*values):
            continue
        yield finding(
            facts,
            "C12",
            source=left,
            replica=right,
            severity=Severity.INFO,
            grade=Grade.PROVED,
            proof=tuple(
                evidence("auto_increment_increment/auto_increment_offset, read_only OFF", *pair)
                for pair in zip(values, servers, strict=True)
            ),
            explanation=f"Transactions of {left} and {right} reach each other, both are writable,"
            " and both can generate the same AUTO_INCREMENT value. If clients insert on both, the"
            " applier stops with error 1062 (A2). Set read_only on one of them, or an increment as"
            " large as the number of writable servers and a different offset on each.",
        )


def overlap(one: str, other: str) -> bool:
    """Return whether two servers can generate the same value; each is "increment/offset".

    An offset above the increment is ignored in a way that changes with the values that the table
    has (seen on 5.6.24 and 9.7.4): it excludes nothing.
    """
    (step, first), (other_step, other_first) = (
        tuple(int(number) for number in text.split("/")) for text in (one, other)
    )
    if first > step or other_first > other_step:
        return True
    return (first - other_first) % gcd(step, other_step) == 0


def clocks_differ(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C13: servers whose clocks differ by more than the time that reading them took."""
    limit = timedelta(seconds=facts.policy.clock_seconds_max)
    for edge in facts.edges:
        source, replica = facts.last[edge.source], facts.last[edge.replica]
        ahead = [each.clock_ahead for each in (source, replica)]
        if ahead[0] is None or ahead[1] is None:
            continue
        doubt = sum((each.read_ended - each.read_started for each in (source, replica)), limit)
        difference = ahead[0] - ahead[1]
        if abs(difference) <= doubt:
            continue
        seconds = abs(difference).total_seconds()
        later = edge.source if difference > timedelta() else edge.replica
        yield on_edge(
            facts,
            edge,
            "C13",
            GtidSet(),
            grade=Grade.PROVED,
            proof=tuple(
                evidence("its clock", each.server_clock, each) for each in (source, replica)
            ),
            explanation=f"The clocks of {edge.source} and {edge.replica} differ by"
            f" {seconds:,.0f} s: {later} is ahead. Lag, times of commits and deadlines are wrong by"
            " as much.",
        )


def versions_refuse(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C14: a replica that cannot connect to its source, or a pair that is not supported."""
    for edge in facts.graph.edges:
        source, replica = facts.last.get(edge.source), facts.last[edge.replica]
        if source is None or source.version is None or replica.version is None:
            continue
        if follows(replica.version, source.version):
            continue
        refuses = refuse_each_other(source.version, replica.version)
        yield finding(
            facts,
            "C14",
            source=edge.source,
            replica=edge.replica,
            channel=edge.channel.name,
            severity=Severity.CRITICAL if refuses else Severity.INFO,
            grade=Grade.PROVED if refuses else Grade.LIKELY,
            proof=(
                evidence("version", source.version, source),
                evidence("version", replica.version, replica),
            ),
            explanation=f"{edge.source} runs {source.version} and {edge.replica} {replica.version}."
            + (_REFUSES if refuses else _NOT_SUPPORTED),
        )


_REFUSES: Final = (
    " These versions cannot connect to each other (errors 2026 and 2059). Put a server of a version"
    " between them in the middle."
)
_NOT_SUPPORTED: Final = (
    " MySQL supports a replica of its source's release series or the next one. Replication may"
    " work; it stops at the first event that the replica does not know, such as a GTID with a tag"
    " before 8.3."
)


def _settings(
    names: Iterable[str], values: Mapping[str, str], server: ServerSnapshot
) -> tuple[Evidence, ...]:
    return tuple(evidence(name, values[name], server) for name in names)


RULES: Rules = (
    durability,  # C5
    without_commit_order,  # C7
    short_retention,  # C8
    writable_replica,  # C9
    relay_log_not_recovered,  # C10
    auto_increment_overlap,  # C12
    clocks_differ,  # C13
    versions_refuse,  # C14
)
