"""Scenarios in which one or two facts are other ones, and what the audit then reports otherwise.

`python -m tests.approve` writes changed_facts.txt: read the difference before you keep it. An entry
names a scenario of scenarios.txt, the changes (server, reading, name of the change), and the lines
that come (+) and go (-). Findings are listed before one suppresses another, then the verdict. What a
simulated history never has is tried here: facts that are absent, and those that contradict others.

The entries were selected from some thousand: together they execute each decision of facts and rules
with every outcome that any of them had.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import unified_diff
from functools import cache
from pathlib import Path

from tests.finding_words import finding_in_words, wrapped
from tests.topology.approved_findings import STORIES
from tests.topology.channel_changes import OF_CHANNELS
from tests.topology.fact_changes import OF_A_SERVER, OF_LOGS, Change, Seen
from tests.topology.more_changes import OF_MORE, OF_MORE_CHANNELS, OF_MORE_LOGS
from tests.topology.transcript import Scenario, read_scenarios
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.facts.cluster_facts import gather_facts, severe_differences
from topology.questions.log_questions import LogQuestions, questions_of
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.rules import RULES

APPROVED = Path(__file__).with_name("changed_facts.txt")
_BETWEEN = "\n\n"
READINGS = ("first", "last", "both")
# Server, reading, name of the change.
Changes = tuple[tuple[str, str, str], ...]
CHANGES: Mapping[str, Change] = {
    **OF_A_SERVER,
    **OF_LOGS,
    **OF_CHANNELS,
    **OF_MORE,
    **OF_MORE_CHANNELS,
    **OF_MORE_LOGS,
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A scenario by its title, and what is changed: server, reading, name of the change."""

    title: str
    changes: Changes

    def text(self) -> str:
        """Return the entry without what was approved."""
        return "\n".join([f"# {self.title}", *(f"{' '.join(each)}" for each in self.changes)])


def scenarios() -> dict[str, Scenario]:
    """Return the scenarios by title."""
    return {each.title: each for each in read_scenarios(STORIES.read_text())}


def changed(snapshot: ClusterSnapshot, changes: Changes) -> ClusterSnapshot:
    """Return a snapshot with other facts."""
    for name, reading, change in changes:
        snapshot = _with(snapshot, name, reading, CHANGES[change])
    return snapshot


def _with(snapshot: ClusterSnapshot, name: str, reading: str, change: Change) -> ClusterSnapshot:
    def of(servers: tuple[ServerSnapshot, ...]) -> tuple[ServerSnapshot, ...]:
        seen = Seen({each.name: each for each in servers}, snapshot)
        return tuple(change(each, seen) if each.name == name else each for each in servers)

    return replace(
        snapshot,
        first=snapshot.first if reading == "last" else of(snapshot.first),
        last=snapshot.last if reading == "first" else of(snapshot.last),
    )


def in_lines(scenario: Scenario, snapshot: ClusterSnapshot) -> list[str]:
    """Return all that is found, before one finding explains another, and the verdict."""
    facts = gather_facts(snapshot, scenario.policy)
    found = sorted((each for rule in RULES for each in rule(facts)), key=lambda each: each.order)
    lines = [line for each in found for line in finding_in_words(each)]
    audit = audit_cluster(snapshot, scenario.policy)
    asked = [line for name, each in questions_of(facts).items() for line in _asked(name, each)]
    twice = f"looked at twice: {len(severe_differences(facts))}"
    return [*lines, *_summary(audit), twice, *asked]


def _asked(name: str, question: LogQuestions) -> Iterator[str]:
    """Yield what the binary logs of a server are asked."""
    for fact in ("first_log", "purged_changes", "schemas"):
        if getattr(question, fact):
            yield f"asks {name}: {fact}"
    yield from (f"asks {name}: commits {gtids}" for gtids in question.commits)
    yield from (
        f"asks {name}: {each.wanted} before {each.place} of {each.replica} {each.channel}"
        for each in question.searches
    )


def _summary(audit: ClusterAudit) -> Iterator[str]:
    shown = (f"{each.code} {each.source} -> {each.replica}" for each in audit.findings)
    yield f"{audit.verdict.value}: {', '.join(shown) or 'nothing'}"
    for unknown in audit.unknown:
        yield f"unknown: {unknown.server}, {unknown.fact}: {unknown.reason}"


@cache
def _before(title: str) -> tuple[str, ...]:
    scenario = _scenarios()[title]
    return tuple(wrapped(in_lines(scenario, scenario.snapshot)).splitlines())


@cache
def _scenarios() -> dict[str, Scenario]:
    return scenarios()


def outcome(entry: Entry) -> str:
    """Return what is reported otherwise."""
    scenario = _scenarios()[entry.title]
    snapshot = changed(scenario.snapshot, entry.changes)
    after = wrapped(in_lines(scenario, snapshot)).splitlines()
    lines = unified_diff(_before(entry.title), after, lineterm="", n=0)
    return "\n".join(f"  {line}" for line in lines if not line.startswith(("---", "+++", "@@")))


def read_entries(text: str) -> list[tuple[Entry, str]]:
    """Read the whole file: entries, and what was approved for each."""
    found = []
    for block in text.strip("\n").split(_BETWEEN):
        lines = block.splitlines()
        above = [line for line in lines if not line.startswith("  ")]
        changes = (line.split(" ", 2) for line in above[1:])
        entry = Entry(
            above[0].removeprefix("# "),
            tuple((name, reading, change) for name, reading, change in changes),
        )
        found.append((entry, "\n".join(lines[len(above) :])))
    return found


def text() -> str:
    """Return the text of the file, for its entries, as the product is now.

    Entries of a scenario that is gone, and those that change nothing any more, are left out.
    """
    entries = [entry for entry, _ in read_entries(APPROVED.read_text())]
    found = [(each, outcome(each)) for each in entries if each.title in _scenarios()]
    return _BETWEEN.join(f"{each.text()}\n{lines}" for each, lines in found if lines) + "\n"
