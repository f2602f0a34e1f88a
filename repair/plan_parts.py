"""Converts findings and readings to the text parts of a plan: what it answers and what not."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from gtid import GtidSet
from repair.doubts.doubted_content import warnings_of_others, warnings_of_statements
from repair.doubts.undecided import ONLY_SELECTED
from repair.model.actions import (
    Action,
    AppendPurged,
    AutoPositionOn,
    InjectEmpty,
    RedoTransactions,
    ResetAndPurge,
    StartChannel,
)
from repair.model.replication_model import Model, ModelServer
from repair.model.strategy_case import UNREPORTED, KnownBeside, LogEvidence
from repair.model.unseen_replicas import UnseenReplica, unseen_below
from repair.repair_plan import (
    Afterwards,
    Answered,
    AssumedState,
    ContentShown,
    DifferingRow,
    NotPlanned,
    content_shown,
    differing_rows,
)
from repair.scripts.steps import Step
from repair.strategies.done_by_hand import also_by_hand, by_hand
from repair.strategies.refused_before import fits_by_now
from repair.strategies.strategy_registry import LEAVING_OUT, PLANNERS
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity
from topology.catalogue.strategy_table import STRATEGIES, is_only_selected, variants_of
from topology.readings.snapshot import ReadServer

# A stuck applier first. Then what is missing and what is extra, for which the operator may have
# chosen a strategy. Then auto-position and the threads, which deliver the rest.
# A source's own GTIDs (H7) come before other extra ones: once a higher one is executed there,
# nothing proves any more that the source never committed a lower one.
ORDER = (
    *("A1", "A2", "A3"),
    *("H1", "H2", "H3", "H4", "H5", "H8", "P1"),
    *("E3", "H7", "E1", "E2", "J3", "C3", "E4"),
)
_LEAVES_OUT = "inject_empty"
# What these leave out, take back or do again is the content that was read on one server.
_OF_ONE_CONTENT = LEAVING_OUT | {"undo_on_replica", "redo_on_source"}
_UNSEEN = ("E4", "S2")  # the model does not show them
# The rows of an E4 are written alike, and its GTIDs have two contents in the logs for ever.
ROWS_ALIKE = frozenset({"data_repair", "data_repair_on_source"})
_IN_LOGS = (
    "steps of this plan write the rows alike. No step changes a log, so audits report this as long"
    " as both logs have these transactions; `repair apply` compares the rows again. As it is now: "
)

# So begins a warning about what a plan leaves, not about what its steps do.
STAYS = "stays as it is: "
UNSEEN = (
    "replicas that are not in this snapshot are not considered. What reaches them through these"
    " steps may stop their appliers, or replace rows that were changed there or are newer. After"
    " RESET BINARY LOGS AND GTIDS it may be applied there a second time"
)


def about(finding: Finding) -> str:
    """Return the servers and the channel of a finding, as text."""
    ends = [name for name in (finding.source, finding.replica) if name is not None]
    channel = f" (channel {finding.channel})" if finding.channel else ""
    return " → ".join(ends) + channel


def may_not_arrive(finding: Finding) -> bool:
    """Return whether a backlog may stay, or arrive only after later transactions (out_of_order.py).

    If a replica is only likely to apply what it has received, its applier may have passed it
    already.
    """
    if finding.code in ("T1", "T3") and finding.severity is Severity.WARNING:
        return True
    return finding.code in ("T1", "T2") and finding.grade is not Grade.PROVED


def afterwards(
    audit: ClusterAudit,
    outlook: ClusterAudit,
    done: Iterable[Answered],
    in_part: Collection[str] = (),
    alike: Collection[str] = (),
) -> Iterator[Afterwards]:
    """Yield what the audit will report above info after the plan.

    The rules do not see compared contents and definitions in the model, so an E4 or S2 that no step
    repairs stays. `in_part` are answered findings of which steps repair only a part. An E4 whose
    rows are all written alike (`alike`) stays too: the audit compares logs, which no step changes.
    """
    before = {finding.id for finding in audit.findings}
    repaired = {each.finding_id for each in done} - {*in_part, *alike}
    seen = {each.id for each in outlook.findings}  # such as an E4 that sets alone show
    unseen = [
        each
        for each in audit.findings
        if each.code in _UNSEEN and each.id not in repaired and each.id not in seen
    ]
    for finding in sorted((*outlook.findings, *unseen), key=lambda each: each.order):
        if finding.severity is not Severity.INFO:
            yield Afterwards(
                finding_id=finding.id,
                code=finding.code,
                name=finding.name,
                about=about(finding),
                severity=finding.severity.value,
                explanation=(_IN_LOGS if finding.id in alike else "") + finding.explanation,
                is_new=finding.id not in before,
                gtids=str(finding.gtid_set),
                is_only_in_logs=finding.id in alike,
            )


def rows_made_alike(done: Iterable[Answered], evidence: LogEvidence) -> frozenset[str]:
    """Return the E4 of which every row was read, and is written alike or is equal."""
    return frozenset(
        each.finding_id
        for each in done
        if each.strategy in ROWS_ALIKE
        and (read := evidence.rows.get(each.finding_id)) is not None
        and read.is_complete
    )


def in_short(finding: Finding) -> str:
    """Return a finding in one line: its code, its place, and its transactions."""
    gtids = f": {finding.gtid_set.shortened()}" if finding.gtid_set else ""
    return f"{finding.code} {finding.name}, {about(finding)}{gtids}"


def left_out(name: str, finding: Finding, model: Model, beside: KnownBeside, *, chosen: str) -> str:
    """Return why a strategy was not used when another one was."""
    if name not in PLANNERS:
        return f"it has no script; by hand: {by_hand(name, finding, model, beside)}"
    return f"{chosen} has priority; the risk of {name}: {STRATEGIES[name].risk}"


def not_planned(
    finding: Finding, refusals: Mapping[str, str], model: Model, beside: KnownBeside
) -> NotPlanned:
    """Return a finding without steps, with the reasons and a manual instruction."""
    reasons = [f"{name}: {why}" for name, why in refusals.items() if name in PLANNERS]
    manual = [
        f"{name}: {by_hand(name, finding, model, beside)}"
        for name in refusals
        if name not in PLANNERS
    ]
    manual += also_by_hand(finding, model, beside)
    if not reasons:
        reasons = ["none of its strategies has a script" if manual else _nothing_to_run(finding)]
    tried = refusals.keys() & {_LEAVES_OUT, *variants_of(_LEAVES_OUT)}
    if "start_channel" not in refusals and (why := fits_by_now(finding, model)):
        reasons = [why]
    if finding.gtid_set and is_only_selected(_LEAVES_OUT, finding.code) and not tried:
        reasons.append(f"{_LEAVES_OUT}: {ONLY_SELECTED}")
    return NotPlanned(
        finding_id=finding.id,
        code=finding.code,
        name=finding.name,
        about=about(finding),
        why="; ".join(reasons),
        by_hand=tuple(manual),
        gtids=str(finding.gtid_set),
    )


def _nothing_to_run(finding: Finding) -> str:
    if may_not_arrive(finding):
        return "there is nothing to run; a later audit reports what an applier has passed as H8"
    return "there is nothing to run"


def answered(finding: Finding, strategy: str, steps: tuple[int, ...]) -> Answered:
    """Return a finding that a plan answers."""
    return Answered(
        finding_id=finding.id,
        code=finding.code,
        name=finding.name,
        about=about(finding),
        strategy=strategy,
        steps=steps,
        gtids=str(finding.gtid_set),
    )


def assumed(server: ReadServer) -> AssumedState:
    """Return the state of a server on which a plan is based."""
    return AssumedState(
        server=server.name,
        host=server.host,
        port=server.port,
        server_uuid=str(server.server_uuid),
        version=str(server.version),
        gtid_executed=str(server.gtid_executed),
        gtid_purged=str(server.gtid_purged),
        channels=tuple(
            f"{channel.name!r} from {channel.source_host}:{channel.source_port},"
            f" auto-position {'on' if channel.auto_position else 'off'},"
            f" receiver {channel.receiver.value}, applier {channel.applier.value}"
            for channel in server.channels or ()
        ),
    )


def phase(finding: Finding) -> int:
    """Return the rank of a finding in the planning order."""
    return ORDER.index(finding.code) if finding.code in ORDER else len(ORDER)


def contents_shown(audit: ClusterAudit, evidence: LogEvidence) -> Iterator[ContentShown]:
    """Yield what the logs showed about the transactions of each finding."""
    for finding in sorted(audit.findings, key=lambda finding: finding.order):
        content = evidence.contents.get(finding.id)
        if content is not None:
            yield content_shown(finding, content)


def rows_shown(audit: ClusterAudit, evidence: LogEvidence) -> Iterator[DifferingRow]:
    """Yield the rows that differ, for each finding for which they were read."""
    for finding in sorted(audit.findings, key=lambda finding: finding.order):
        if finding.id in evidence.rows:
            yield from differing_rows(finding, evidence.rows[finding.id])


def receivers_of(
    steps: Iterable[Step],
    unseen: Iterable[UnseenReplica],
    model: Model,
    chosen: Collection[int],
) -> Iterator[str]:
    """Yield a warning for each replica outside the audit that the steps of a plan reach.

    What a selected strategy does there counts for the exit status: no later audit reports it.

    Args:
        steps: the steps of the plan.
        unseen: what is connected and not part of the audit.
        model: the servers.
        chosen: the numbers of the steps of selected strategies.
    """
    reaching: dict[UnseenReplica, list[Step]] = {}
    for step in steps:
        for each in unseen_below(unseen, model, [step.server]):
            reaching.setdefault(each, []).append(step)
    for each, found in sorted(reaching.items()):
        numbers = ", ".join(str(step.number) for step in found)
        selected = any(step.number in chosen for step in found)
        what = f"step {numbers} does" if len(found) == 1 else f"steps {numbers} do"
        yield (
            f"{UNREPORTED if selected else ''}{each}. What {what} may stop its applier, overwrite"
            " its rows, or leave them different: compare them. If it is a server, add it to the"
            " audit"
        )


def about_others(finding: Finding, strategy: str, evidence: LogEvidence) -> Iterator[str]:
    """Yield what the other holders of a finding's transactions have under the same GTIDs."""
    content = evidence.contents.get(finding.id)
    if content is None:
        return
    if strategy in _OF_ONE_CONTENT:
        yield from warnings_of_others(content, finding.gtid_set)
    yield from warnings_of_statements(content)


def not_listed(unread: Mapping[str, str], servers: Collection[str]) -> Iterator[str]:
    """Yield a warning for each server of a plan that did not list its replicas, with the reason."""
    for name in sorted(unread):
        if name in servers:
            yield f"which replicas are connected to {name} could not be read: {unread[name]}"


def unseen_servers(unread: Collection[str]) -> Iterator[str]:
    """Yield what holds for every plan, and the servers on which no plan may be based."""
    yield UNSEEN
    if unread:
        yield f"nothing is known of {', '.join(unread)}: not read, or not reliable"


def brought_by(
    effects: Iterable[Action], server: ModelServer, known: Mapping[str, ReadServer]
) -> GtidSet:
    """Return what steps commit on a server, or let it fetch of what its sources were read with.

    The model assumes that every running applier applies everything. In reality a lock may hold one
    up indefinitely.
    """
    brought = GtidSet()
    for effect in effects:
        if effect.server != server.name:
            continue
        if isinstance(effect, AutoPositionOn | StartChannel):
            channel = server.channel(effect.channel)
            source = known.get(channel.source or "") if channel is not None else None
            brought |= (source.gtid_executed if source is not None else None) or GtidSet()
        elif isinstance(effect, InjectEmpty | AppendPurged | ResetAndPurge | RedoTransactions):
            brought |= effect.gtids
    return brought
