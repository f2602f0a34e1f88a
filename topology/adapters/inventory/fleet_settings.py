"""The limits and the policy of a fleet file, as values. It reads accepted plans, and no server."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from topology.adapters.collect import CollectLimits
from topology.adapters.inventory.fleet_accepted import accepted_findings, accepted_repairs
from topology.adapters.inventory.fleet_model import FleetSection
from topology.adapters.inventory.yaml_places import Path as Place
from topology.policy import Policy

Settings = tuple[CollectLimits, int, Policy]
Note = Callable[[Place, str], None]


def settings_of(section: FleetSection, directory: Path, note: Note) -> Settings:
    """Return limits and policy. Paths of accepted plans are relative to the fleet file."""
    limits, connections_max, policy = _limits(section)
    accepted = accepted_repairs(section, directory, note)
    findings = accepted_findings(section, note)
    return limits, connections_max, replace(policy, accepted=accepted, accepted_findings=findings)


def _limits(section: FleetSection) -> tuple[CollectLimits, int, Policy]:
    limits = CollectLimits(
        server_seconds_max=section.limits.server_seconds_max,
        looks_max=section.limits.looks_max,
        pause_seconds=section.limits.pause_seconds,
    )
    policy = Policy(
        allowed_uuids=frozenset(section.policy.allowed_uuids),
        external_sources=frozenset(section.policy.external_sources),
        lock_wait_seconds_max=section.policy.lock_wait_seconds_max,
        stall_seconds_max=section.policy.stall_seconds_max,
        runway_seconds_min=section.policy.runway_seconds_min,
        outage_seconds_max=section.policy.outage_seconds_max,
        clock_seconds_max=section.policy.clock_seconds_max,
        intervals_max=section.policy.intervals_max,
        dead_uuids_max=section.policy.dead_uuids_max,
        ddl_wait_seconds_max=section.policy.ddl_wait_seconds_max,
        definitions=section.policy.definitions,
        levels=tuple(sorted(section.policy.levels.items())),
        reconcile=tuple(sorted(set(section.policy.reconcile))),
    )
    return limits, section.limits.connections_max, policy
