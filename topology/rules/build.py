"""Helpers that build findings: catalogue texts, evidence, and GTID sets short enough to print."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, TypeAlias

from gtid import GtidSet
from gtid.counted_nouns import counted
from topology.catalogue.findings import Evidence, Finding, Grade, Severity, Strategy, Unknown
from topology.catalogue.strategy_table import STRATEGIES
from topology.catalogue.verdict_table import entry_of
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.last_result import keep_last_result
from topology.readings.read_once import read_once_in
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot

# What one reading of one server shows. Nothing that another server did later changes it.
OF_ONE_READING: Final = frozenset(
    (
        *("A1", "A2", "A3", "A4", "A6", "A7", "F1", "F3", "J4", "T4", "U1", "U3", "U4"),
        *("C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10", "C11", "C12", "C14", "C15"),
    )
)

Rule: TypeAlias = Callable[[ClusterFacts], Iterator[Finding]]
Rules: TypeAlias = tuple[Rule, ...]
Undecided: TypeAlias = Callable[[ClusterFacts], Iterator[Unknown]]

EVIDENCE_RANGES_MAX = 64  # for human readers; the finding's gtid_set is always complete


def evidence(fact: str, value: object, server: ServerSnapshot) -> Evidence:
    """Return a fact as evidence: its value, the server, and when that reading ended."""
    if isinstance(value, GtidSet):
        value = value.shortened(ranges_max=EVIDENCE_RANGES_MAX) or "(empty)"
    return Evidence(fact, str(value), server.name, server.read_ended)


def finding(
    facts: ClusterFacts,
    code: str,
    *,
    proof: tuple[Evidence, ...],
    explanation: str,
    grade: Grade,
    source: str | None = None,
    replica: str | None = None,
    channel: str | None = None,
    gtid_set: GtidSet | None = None,
    severity: Severity | None = None,
    strategies: tuple[str, ...] | None = None,
) -> Finding:
    """Return a finding with the texts of its catalogue row."""
    entry = entry_of(code)
    assert entry.has_rule, f"{code} is marked as not evaluated"
    moment = moment_read(facts)
    doubt = _doubt(facts, replica, channel)
    for each in filter(None, (doubt, _not_read_again(facts, code))):
        grade = Grade.LIKELY if grade is Grade.PROVED else grade
        explanation = f"{explanation}{'' if explanation.endswith('.') else '.'} {each}"
    return Finding(
        code=code,
        name=entry.name,
        severity=_level(facts, code) or severity or entry.severity,
        grade=grade,
        cluster=facts.snapshot.cluster,
        source=source,
        replica=replica,
        channel=channel,
        gtid_set=gtid_set if gtid_set is not None else GtidSet(),
        first_seen=moment,
        last_seen=moment,
        evidence=proof,
        explanation=explanation,
        strategies=entry.strategies if strategies is None else _named(strategies),
    )


def on_edge(
    facts: ClusterFacts,
    edge: EdgeFacts,
    code: str,
    gtid_set: GtidSet,
    *,
    grade: Grade,
    proof: tuple[Evidence, ...],
    explanation: str,
    strategies: tuple[str, ...] | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding about the channel of an edge."""
    return finding(
        facts,
        code,
        source=edge.source,
        replica=edge.replica,
        channel=edge.channel.name,
        gtid_set=gtid_set,
        grade=grade,
        proof=proof,
        explanation=explanation,
        strategies=strategies,
        severity=severity,
    )


def many(gtid_set: GtidSet) -> str:
    """Return the number of transactions as text: "1 transaction", "20 transactions"."""
    return counted(gtid_set.gtid_count, "transaction")


def lasting(seconds: int) -> str:
    """Return a time in the largest unit that fits: "7 days", "90 seconds"."""
    for unit, word in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds % unit == 0:
            return counted(seconds // unit, word)
    return f"{seconds:,} seconds"


def _level(facts: ClusterFacts, code: str) -> Severity | None:
    """Return the severity that the policy gives to a remark."""
    level = dict(facts.policy.levels).get(code)
    return None if level is None else Severity(level)


def _doubt(facts: ClusterFacts, replica: str | None, channel: str | None) -> str:
    """Return why the source of a finding's channel may be another server; "" without a doubt."""
    for edge in facts.graph.into(replica or ""):
        if edge.doubt and edge.channel.name == channel:
            return edge.doubt
    return ""


def _not_read_again(facts: ClusterFacts, code: str) -> str:
    """Return why the time of the readings may explain a finding; "" if it cannot."""
    once = _read_once(facts.snapshot)
    if not once or code in OF_ONE_READING:
        return ""
    return f"There is one reading of {', '.join(once)}: what changed since then is not known."


@keep_last_result
def _read_once(snapshot: ClusterSnapshot) -> tuple[str, ...]:
    return read_once_in(snapshot)


def _named(names: tuple[str, ...]) -> tuple[Strategy, ...]:
    return tuple(STRATEGIES[name] for name in names)


def moment_read(facts: ClusterFacts) -> datetime:
    """Return when the last reading of a cluster ended."""
    return _moment_read(facts.snapshot)


@keep_last_result
def _moment_read(snapshot: ClusterSnapshot) -> datetime:
    moment = snapshot.read_ended
    assert moment is not None, "a cluster without servers has no findings"
    return moment
