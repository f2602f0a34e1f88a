"""The rules that need the other findings of an audit: consumers (P4) and definitions (S1, S2).

What is on its way to a server, or what a fault keeps from it, is a finding of the rules in RULES.
These rules come after them.
"""

from collections.abc import Iterator

from topology.catalogue.findings import Finding, Unknown
from topology.facts.cluster_facts import ClusterFacts
from topology.rules.consumer_sets import consumer_findings, undecided_consumers
from topology.rules.schema_differences import schema_findings, undecided_schemas


def later_findings(facts: ClusterFacts, others: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield what follows from facts and the other findings."""
    yield from consumer_findings(facts, others)
    yield from schema_findings(facts, others)


def later_unknown(facts: ClusterFacts, findings: tuple[Finding, ...]) -> Iterator[Unknown]:
    """Yield what these rules could not decide."""
    yield from undecided_consumers(facts, findings)
    yield from undecided_schemas(facts)
