"""A fact that was not read breaks no rule, and nothing is proved for want of it.

Each story of scenarios.txt is audited again without one fact of one server.
"""

from dataclasses import replace
from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import with_facts
from tests.topology.approved_findings import STORIES
from tests.topology.transcript import Scenario, read_scenarios
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import gather_facts
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason
from topology.rules import RULES

SCENARIOS = read_scenarios(STORIES.read_text())
FACTS = (
    *("server_uuid", "server_id", "version", "vendor", "uptime_seconds", "server_clock"),
    *("gtid_executed", "gtid_purged", "gtid_owned", "channels", "log_end", "settings"),
    "history_evidence",
)
# What may be proved although it was not before, and why.
NOT_EXPLAINED_ELSEWHERE = frozenset(
    {
        "A7",  # a stopped thread, or no link at all: another finding had that difference before
        *("E1", "E2"),  # reported for another source of the replica before
        "C2",  # equal server_ids: equal server_uuids had explained them
        "T4",  # how long a commit hangs is not known without the log of the replica
    }
)
Place = tuple[str, str | None, str | None, str | None]


def findings(snapshot: ClusterSnapshot, scenario: Scenario) -> list[Finding]:
    facts = gather_facts(snapshot, scenario.policy)
    return [finding for rule in RULES for finding in rule(facts)]


def proved(found: list[Finding]) -> dict[Place, GtidSet]:
    return {
        (each.code, each.source, each.replica, each.channel): each.gtid_set
        for each in found
        if each.grade is Grade.PROVED
    }


def without(snapshot: ClusterSnapshot, name: str, facts: tuple[str, ...]) -> ClusterSnapshot:
    def unread(server: ServerSnapshot) -> ServerSnapshot:
        if server.name != name:
            return server
        absent: dict[str, Any] = dict.fromkeys(facts)
        if "settings" in absent:
            absent["notable_settings"] = None
        why = UnreadFact("connection" if len(facts) > 1 else facts[0], UnreadReason.TIMEOUT, "")
        return with_facts(server, **absent, unread=(*server.unread, why))

    return replace(
        snapshot, first=tuple(map(unread, snapshot.first)), last=tuple(map(unread, snapshot.last))
    )


@pytest.mark.long
@pytest.mark.parametrize("facts", [*((each,) for each in FACTS), FACTS], ids=lambda names: names[0])
def test_nothing_is_proved_for_want_of_a_fact(facts: tuple[str, ...]) -> None:
    for scenario in SCENARIOS:
        before = proved(findings(scenario.snapshot, scenario))
        for server in scenario.snapshot.last:
            found = proved(findings(without(scenario.snapshot, server.name, facts), scenario))
            for place, gtid_set in found.items():
                is_new = place not in before or not gtid_set <= before[place]
                assert not is_new or place[0] in NOT_EXPLAINED_ELSEWHERE, (
                    f"line {scenario.line}, {server.name} without {', '.join(facts)}: {place}"
                )
