"""Histories, and everything that the product says of them: the findings, the plan, a chosen plan.

`python -m tests.approve` writes transcripts.txt, for the histories of that file: read the difference
before you keep it.

Oracles see wrong conclusions and harmful plans. A transcript shows all the rest that an operator
reads: the evidence, the causes that remain, why a strategy was not chosen, what to do by hand. The
histories were selected from 2,000 generated ones: together they execute what any of them executes in
topology and repair.

Scripts, runbooks, plan.json and what is computed on the way are too long to be read here: digests.txt
has their digests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from repair.model.strategy_case import LogEvidence, StreamedContent
from repair.planner import plan_repair
from repair.repair_plan import Plan
from repair.scripts.steps import Step
from repair.sql.guard import Guard
from tests.finding_words import audit_in_words, wrapped
from tests.simulation.chosen_evidence import chosen_evidence
from tests.simulation.contents import contents_of
from tests.simulation.evidence import log_evidence
from tests.simulation.history import History, parse
from tests.simulation.log_answers import with_answers
from tests.simulation.oracles import above_info
from tests.simulation.reading import read
from tests.simulation.state import World
from tests.topology.changed_facts import Changes, changed
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot

APPROVED = Path(__file__).with_name("transcripts.txt")
_BETWEEN = "\n====\n"
_BELOW = "\n----\n"


@dataclass(frozen=True, slots=True)
class Story:
    """A history, and what the operator chooses: strategies by code."""

    history: History
    choices: dict[str, str]

    @property
    def text(self) -> str:
        """Return the story as `read_stories` reads it."""
        chosen = " ".join(f"{code}={name}" for code, name in self.choices.items())
        return self.history.text() + (f"\nchoose {chosen}" if chosen else "")


def read_stories(text: str) -> list[tuple[Story, str]]:
    """Read the whole file: stories, and what was approved for each."""
    found = []
    for block in text.strip().split(_BETWEEN):
        above, _, approved = block.partition(_BELOW)
        history, _, chosen = above.partition("\nchoose ")
        pairs = (each.partition("=") for each in chosen.split())
        choices = {code: name for code, _, name in pairs}
        found.append((Story(parse(history), choices), approved))
    return found


def text() -> str:
    """Return the text of the file, for its histories, as the product is now."""
    stories = [story for story, _ in read_stories(APPROVED.read_text())]
    return _BETWEEN.join(f"{each.text}{_BELOW}{transcript(each)}" for each in stories) + "\n"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the logs that were read for it."""

    plan: Plan
    evidence: LogEvidence


@dataclass(frozen=True, slots=True)
class Reported:
    """What the product says of one story: the default plan, and the one by choice."""

    snapshot: ClusterSnapshot
    audit: ClusterAudit
    default: Planned | None
    chosen: Planned | None


def snapshot_of(history: History, world: World, changes: Changes = ()) -> ClusterSnapshot:
    """Return what is read of a world, and what its logs answer; with other facts than it has."""
    seen = changed(read(world, history.reading), changes)
    return with_answers(world, history.reading, seen, Policy())


def reported(story: Story, changes: Changes = ()) -> Reported:
    """Audit the servers of a story, and plan; with other facts than those that were read."""
    history, policy = story.history, Policy()
    world = history.play()
    snapshot = snapshot_of(history, world, changes)
    audit = audit_cluster(
        snapshot.with_contents(contents_of(world, history.reading, snapshot)), policy
    )
    default = chosen = None
    if above_info(audit):
        evidence = log_evidence(world, snapshot, audit)
        plan = plan_repair(snapshot, audit, evidence=evidence, policy=policy)
        default = Planned(plan, evidence)
    codes = {each.code for each in audit.findings}
    choices = {code: name for code, name in story.choices.items() if code in codes}
    if choices:
        evidence = chosen_evidence(world, snapshot, audit)
        plan = plan_repair(snapshot, audit, choices=choices, evidence=evidence, policy=policy)
        chosen = Planned(plan, evidence)
    return Reported(snapshot, audit, default, chosen)


def transcript(story: Story) -> str:
    """Return what an operator reads of one story."""
    found = reported(story)
    lines = list(audit_in_words(found.audit))
    default: list[str] = []
    if found.default is not None:
        default = list(_plan(found.default.plan))
        lines += ["PLAN", *default]
    if found.chosen is not None:
        chosen = found.chosen.plan
        by_choice = list(_plan(chosen))
        words = " ".join(f"{code}={name}" for code, name in chosen.choices.items())
        lines += [f"PLAN {words}", *(by_choice if by_choice != default else ["  as above"])]
    return wrapped(lines)


def _plan(plan: Plan) -> Iterator[str]:
    for answer in plan.answered:
        steps = ", ".join(map(str, answer.steps)) or "none"
        yield f"  {answer.about} {answer.code} by {answer.strategy}, steps {steps}"
    for step in plan.steps:
        yield from _step(step)
    for each in plan.not_chosen:
        yield f"  not {each.strategy}: {each.why}"
    for left in plan.not_planned:
        yield f"  no plan for {left.code} {left.about}: {left.why}"
        yield from (f"    by hand: {text}" for text in left.by_hand)
    yield from (f"  warning: {text}" for text in plan.warnings)
    for shown in plan.contents:
        yield f"  content ({shown.read_from}): {shown.summary}"
    for row in plan.rows:
        yield f"  row {row.table} {row.where}: {row.source_row} / {row.replica_row}"
    for saved in plan.saved:
        yield f"  saved: {saved.file_name}"
        if isinstance(saved, StreamedContent):
            yield f"    from the log of {saved.read_from}: {saved.gtids}"
        else:
            yield from (f"    {line}" for line in saved.text.splitlines())
    for after in plan.afterwards:
        words = f"{after.code} {after.severity} {after.about}"
        explained = f"new: {words}: {after.explanation}" if after.is_new else f"still: {words}"
        yield f"  afterwards, {explained}"


def _step(step: Step) -> Iterator[str]:
    yield f"  step {step.number} on {step.server}: {step.procedure.title}"
    yield f"    why: {step.why}"
    yield f"    risk: {step.procedure.risk}"
    yield from (f"    guard: {_first(each)}" for each in step.procedure.preconditions)
    yield from (f"    reached: {_first(each)}" for each in step.procedure.verifications)
    for check in step.checks:
        yield f"    first on {check.server}: {check.why}"
        yield from (f"      guard: {_first(each)}" for each in check.guards)
    yield from (f"    warning: {text}" for text in step.procedure.warnings)
    for name in ("before", "after"):
        for state in getattr(step, name):
            sets = f"{state.gtid_executed} purged {state.gtid_purged}"
            yield f"    {name} {state.server}: {sets}; {', '.join(state.channels)}"


def _first(guard: Guard) -> str:
    """Return what a guard found; scripts.txt has what to do then."""
    return guard.message.partition(";")[0]
