"""Which rules evaluate each channel by itself, so that their findings can be kept.

A rule is listed here if its findings about the channels of a replica follow from the inputs of that
replica (topology/facts/kept_inputs.py), from the facts of the edges to it, and from those of the
edges to its sources. It takes the channels from `facts.edges` or `facts.channels()`, and looks up
other edges with `facts.edges_into`. Every other rule is evaluated for the whole cluster each time:
it compares servers with each other, or it is cheap where it finds nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Final

from topology.catalogue.findings import Finding
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.edge_facts import EdgeFacts
from topology.facts.kept_inputs import inputs_of
from topology.facts.kept_results import KeptResults
from topology.readings.snapshot import ChannelSnapshot
from topology.rules import (
    backlogs,
    bypassed,
    crash_gaps,
    differences,
    filters,
    hanging_receivers,
    passed,
    purged,
    risky_settings,
    threads,
)
from topology.rules.build import Rules

OF_CHANNELS: Final[Rules] = (
    *backlogs.RULES,
    *crash_gaps.RULES,
    *bypassed.RULES,
    *passed.RULES,
    *hanging_receivers.RULES,
    differences.allowed_extra,
    filters.ignored_by_receiver,
    purged.latent_1236,
    risky_settings.clocks_differ,
    threads.receiver_error,
    threads.replication_not_running,
    threads.stops_at_until,
    threads.auto_position_off,
)


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


def found_on_channels(facts: ClusterFacts, kept: KeptResults) -> Iterator[Finding]:
    """Yield what the rules OF_CHANNELS report; what was kept, for replicas with the same inputs."""
    for replica, inputs in inputs_of(facts, kept).items():
        sources = dict.fromkeys(edge.source for edge in facts.graph.into(replica))
        edges = (edge for name in (replica, *sources) for edge in facts.edges_into(name))
        yield from kept.get(("found", replica), (inputs, *edges), partial(_found, facts, replica))


def _found(facts: ClusterFacts, replica: str) -> tuple[Finding, ...]:
    part = FactsOfReplica.of(facts, replica)
    return tuple(finding for rule in OF_CHANNELS for finding in rule(part))
