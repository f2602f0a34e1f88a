"""Findings about channels, kept for the replicas whose readings are the same objects as before.

topology/facts/kept_inputs.py explains when a finding holds; topology/rules/of_channels.py lists the
rules whose findings are kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import partial

from topology.catalogue.findings import Finding
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.kept_inputs import inputs_of
from topology.facts.kept_results import NOTHING_KEPT, KeptResults
from topology.readings.snapshot import ChannelSnapshot
from topology.rules.build import Rules
from topology.rules.of_channels import OF_CHANNELS


@dataclass(frozen=True, slots=True)
class FactsOfReplica(ClusterFacts):
    """The facts of a cluster, in which rules evaluate the channels of one replica."""

    whole: ClusterFacts = field(kw_only=True)
    replica: str = field(kw_only=True)

    @classmethod
    def of(cls, whole: ClusterFacts, replica: str) -> "FactsOfReplica":
        """Return the facts for the channels of one replica."""
        parts = {each.name: getattr(whole, each.name) for each in fields(ClusterFacts)}
        parts["edges"] = whole.edges_into(replica)
        return cls(**parts, whole=whole, replica=replica)

    def channels(self) -> Iterator[tuple[str | None, str, ChannelSnapshot]]:
        """Yield the channels of the replica, in the order of all channels."""
        for edge in self.graph.into(self.replica):
            yield edge.source, self.replica, edge.channel
        for name, channel in self.graph.outside:
            if name == self.replica:
                yield None, name, channel

    def edges_into(self, replica: str) -> tuple[EdgeFacts, ...]:
        """Return the compared edges to any replica."""
        return self.whole.edges_into(replica)


def found_by(facts: ClusterFacts, rules: Rules, kept: KeptResults) -> Iterator[Finding]:
    """Yield what rules report, the findings of the rules OF_CHANNELS as they were kept."""
    if kept is NOTHING_KEPT:
        yield from (finding for rule in rules for finding in rule(facts))
        return
    others = (rule for rule in rules if rule not in OF_CHANNELS)
    yield from (finding for rule in others for finding in rule(facts))
    yield from found_on_channels(facts, kept)


def found_on_channels(facts: ClusterFacts, kept: KeptResults) -> Iterator[Finding]:
    """Yield what the rules OF_CHANNELS report; what was kept, for replicas with the same inputs."""
    for replica, inputs in inputs_of(facts, kept).items():
        sources = dict.fromkeys(edge.source for edge in facts.graph.into(replica))
        edges = (edge for name in (replica, *sources) for edge in facts.edges_into(name))
        yield from kept.get(("found", replica), (inputs, *edges), partial(_found, facts, replica))


def _found(facts: ClusterFacts, replica: str) -> tuple[Finding, ...]:
    part = FactsOfReplica.of(facts, replica)
    return tuple(finding for rule in OF_CHANNELS for finding in rule(part))
