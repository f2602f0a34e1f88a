"""The plan: what will be done to which server in which order, what was not chosen, and why.

1. A plan is a value. Its id is a digest of what it does: findings, choices, and each step's action,
   address and SQL. The time of the readings, and texts that depend on it, are not part of the
   digest. So a plan that is made again while nothing has changed has the same id.
2. This module handles no directories: render.py writes its texts, plan_files.py its files.

How it works
------------
planner.py makes a plan from a snapshot, its audit, and the operator's choices. Its state is

    model     every server as the steps so far leave it (replication_model.py, invariants.py)
    outlook   the audit of that model, by the same rules as a real audit (audit_after_plan.py)
    steps     the steps so far; each was written for the model before and after it

The planner takes the findings in a fixed order (plan_parts.ORDER). For each finding it tries the
strategies of the catalogue in order, or only the one that the operator chose:

1. The strategy proposes actions, or refuses with a reason (strategy_registry.py).
2. Each action is reduced to what is still needed, and simulated. If it breaks an invariant, the
   strategy is refused (invariants.py).
3. The resulting model is audited. If a server is worse than in `outlook`, the strategy is refused.
4. Otherwise its steps are appended, and `model` and `outlook` are replaced.

A refused finding is tried again after each round in which another one was answered, because that
repair may have removed the reason. A finding that is gone in the outlook is "answered by the other
steps". All others end in `not_planned` with every refusal and a manual instruction: no finding is
dropped. Invariant: after each step the model breaks no invariant, and no server is worse than
before the strategy. So the operator may stop between two strategies.

Strategies that leave transactions out (`DECLARING`) come in a second pass, after everything that
delivers. The first pass allows them only if the operator chose them, or if the rows are already
there. Example: a → c, and a also receives from c over a channel that an operator stopped. c has
committed c:1.

    findings   E1 (c:1 is extra on c), A7 (the channel of a is stopped)
    pass 1     E1: start_channel is simulated: a executes c:1, and no rule finds a server worse.
               A7: nothing is left to do; it is answered by the other steps
    pass 2     nothing left

With one pass, `inject_empty` could come first for E1 (declaring.py checks this as well). The later
start would then deliver c:1, and a would skip it because it is executed there. The sets would be
equal, and the rows would be permanently missing on a. Planning each finding against the readings
alone also fails: its steps would not take into account what earlier steps deliver, and the guards
of the scripts would find another state.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from repair.content.row_versions import RowsRead
from repair.content.transaction_content import TransactionContent, described
from repair.model.action_content import action_content
from repair.model.actions import RedoTransactions
from repair.model.strategy_case import MAY_DIFFER, UNREPORTED, Saved, StreamedContent
from repair.scripts.steps import Step
from repair.sql.guard import without_measured
from repair.sql.statement_sql import DELIMITER
from topology.catalogue.findings import Finding
from topology.readings.hidden_passwords import without_secrets

SCHEMA_VERSION = 2
_LISTS = (
    *("answered", "assumed", "not_chosen", "not_planned", "rows"),
    *("contents", "saved", "afterwards"),
)
_ID_CHARACTERS = 16


def unreported_of(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the warnings about what stays or becomes different without a later report."""
    return tuple(each for each in warnings if each.startswith((UNREPORTED, MAY_DIFFER)))


@dataclass(frozen=True, slots=True)
class AssumedState:
    """The state of one server on which the plan is based, as last read."""

    server: str
    host: str
    port: int
    server_uuid: str
    version: str
    gtid_executed: str
    gtid_purged: str
    channels: tuple[str, ...]
    unix_socket: str | None = None

    @property
    def address(self) -> str:
        """Return how gtid-audit connected to the server."""
        return self.unix_socket or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class NotChosen:
    """A strategy for an answered finding that was not used."""

    finding_id: str
    strategy: str
    why: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A finding that this plan answers, the strategy, and the steps.

    Without steps, an earlier step of the plan, or replication itself, has already answered it.
    """

    finding_id: str
    code: str
    name: str
    about: str
    strategy: str
    steps: tuple[int, ...]
    gtids: str = ""  # of the finding, when this plan was made


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """A finding that this plan does not answer: the reason, and a manual instruction."""

    finding_id: str
    code: str
    name: str
    about: str
    why: str
    by_hand: tuple[str, ...]
    gtids: str = ""  # of the finding, when this plan was made


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that differs between two servers (E4): both versions, with the columns that differ.

    A version is None if the row does not exist; a value is None if it is NULL.
    """

    finding_id: str
    table: str
    where: str
    source: str
    source_row: dict[str, str | None] | None
    replica: str
    replica_row: dict[str, str | None] | None


@dataclass(frozen=True, slots=True)
class ContentShown:
    """The content of a finding's transactions: sets by class, rows by table, as the log has it."""

    finding_id: str
    read_from: str | None
    summary: str
    classes: dict[str, str]
    tables: tuple[str, ...]


def content_shown(finding: Finding, content: TransactionContent) -> ContentShown:
    """Return the content of a finding's transactions as text."""
    return ContentShown(
        finding_id=finding.id,
        read_from=content.read_from,
        summary=described(content, content.wanted),
        classes={each.value: str(gtids) for each, gtids in content.classes.items() if gtids},
        tables=tuple(f"{each.schema}.{each.table}" for each in content.tables),
    )


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What the audit will report above info after the plan, for the servers as they were read."""

    finding_id: str
    code: str
    name: str
    about: str
    severity: str
    explanation: str
    is_new: bool
    gtids: str = ""  # of the finding, as the audit of the simulated servers has it
    # Steps write the rows alike; audits report the finding as long as the logs have both contents.
    is_only_in_logs: bool = False


def differing_rows(finding: Finding, read: RowsRead) -> Iterator[DifferingRow]:
    """Yield the differing rows of a finding, as text."""
    assert finding.source is not None, "different content is between two servers"
    assert finding.replica is not None, "different content is between two servers"
    for row in read.rows:
        versions = [
            None if image is None else {each[0]: each[at] for each in row.differing}
            for at, image in ((1, row.source), (2, row.replica))
        ]
        yield DifferingRow(
            finding_id=finding.id,
            table=row.table.name,
            where=row.where,
            source=finding.source,
            source_row=versions[0],
            replica=finding.replica,
            replica_row=versions[1],
        )


def shown_version(row: dict[str, str | None] | None) -> str:
    """Return one version of a row as one line."""
    if row is None:
        return "there is no such row"
    return ", ".join(f"{name}: {'NULL' if text is None else text}" for name, text in row.items())


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, and everything that the operator must know before the first."""

    cluster: str
    snapshot_read_at: datetime | None
    answered: tuple[Answered, ...]
    steps: tuple[Step, ...]
    assumed: tuple[AssumedState, ...]
    not_chosen: tuple[NotChosen, ...]
    not_planned: tuple[NotPlanned, ...]
    warnings: tuple[str, ...]
    rows: tuple[DifferingRow, ...] = ()
    # The operator's choices: a strategy by a finding's id or by a code.
    choices: Mapping[str, str] = field(default_factory=dict)
    only_findings: tuple[str, ...] | None = None  # the requested findings; None: all
    command: str = ""  # the command line that makes this plan again, without secrets
    contents: tuple[ContentShown, ...] = ()
    saved: tuple[Saved, ...] = ()  # files next to the scripts
    afterwards: tuple[Afterwards, ...] = ()
    id: str = field(init=False)

    def __post_init__(self) -> None:
        at = 0
        for step in self.steps:
            at += len(step.checks) + 1
            assert step.number == at, "scripts are counted from 1, checks first"
        object.__setattr__(self, "id", self._digest())

    @property
    def finding_ids(self) -> tuple[str, ...]:
        """Return the findings that this plan answers."""
        return tuple(each.finding_id for each in self.answered)

    @property
    def unreported(self) -> tuple[str, ...]:
        """Return the warnings about what stays different and no later audit reports."""
        return unreported_of(self.warnings)

    @property
    def scripts_count(self) -> int:
        """Return the number of scripts to run: the steps and their checks."""
        return self.steps[-1].number if self.steps else 0

    @property
    def estimated_seconds(self) -> int:
        """Return the estimated duration of all steps, one after the other."""
        return sum(step.procedure.estimated_seconds for step in self.steps)

    @property
    def left(self) -> frozenset[str]:
        """Return the findings for which no script is to be run.

        The steps of another finding may answer a finding. Without any step nothing is answered.
        """
        answered = () if self.steps else self.finding_ids
        return frozenset((*(each.finding_id for each in self.not_planned), *answered))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, ready to be written."""
        return {"schema_version": SCHEMA_VERSION, "id": self.id, **self._content()}

    def reached_by(self, sockets: Mapping[str, str]) -> "Plan":
        """Return this plan for servers, by name, that were reached by a Unix socket."""
        return replace(
            self,
            steps=tuple(
                replace(
                    step,
                    unix_socket=sockets.get(step.server),
                    checks=tuple(
                        replace(check, unix_socket=sockets.get(check.server))
                        for check in step.checks
                    ),
                )
                for step in self.steps
            ),
            assumed=tuple(
                replace(each, unix_socket=sockets.get(each.server)) for each in self.assumed
            ),
        )

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "cluster": self.cluster,
            "snapshot_read_at": self.snapshot_read_at.isoformat()
            if self.snapshot_read_at
            else None,
            "estimated_seconds": self.estimated_seconds,
            "choices": dict(self.choices),
            "only_findings": self.only_findings,
            "command": self.command,
        }
        for name in _LISTS:
            as_values = _saved_content if name == "saved" else asdict
            content[name] = [as_values(each) for each in getattr(self, name)]
        content["steps"] = [_step_content(step) for step in self.steps]
        content["warnings"] = list(self.warnings)
        return content

    def _digest(self) -> str:
        """Return the digest of what the plan does, without measured values and sets that grow.

        A step's effect on its server is in its SQL, with every set that its guards compare.
        """
        done = [
            [
                *(step.number, step.server, step.host, step.port, step.unix_socket),
                action_content(step.effect),
                [
                    [asdict(guard) for guard in part]
                    for part in (step.procedure.preconditions, step.procedure.verifications)
                ],
                [step.procedure.session, step.procedure.statements],
                [asdict(check) for check in step.checks],
            ]
            for step in self.steps
        ]
        answered = [(each.finding_id, each.strategy, each.steps) for each in self.answered]
        left = sorted(each.finding_id for each in self.not_planned)
        saved = [
            asdict(each) | ({"gtids": str(each.gtids)} if isinstance(each, StreamedContent) else {})
            for each in self.saved
        ]
        text = json.dumps(
            [self.cluster, dict(self.choices), done, answered, left, saved],
            sort_keys=True,
            ensure_ascii=False,
        )
        return hashlib.sha256(without_measured(text).encode()).hexdigest()[:_ID_CHARACTERS]


def _saved_content(saved: Saved) -> dict[str, Any]:
    """Return a file of what is left out as plain values; one that is streamed has no text here."""
    if isinstance(saved, StreamedContent):
        text, read_from, gtids = None, saved.read_from, str(saved.gtids)
    else:
        parts = (without_secrets(each) for each in saved.text.split(DELIMITER))
        text, read_from, gtids = DELIMITER.join(parts), None, None
    return {
        "file_name": saved.file_name,
        "text": text,
        "read_from": read_from,
        "gtid_set": gtids,
    }


_OF_PROCEDURE: Final = (
    *("statements", "check", "undo", "estimated_seconds", "estimate_assumes", "if_stopped"),
    *("risk", "warnings", "session"),
)


def _step_content(step: Step) -> dict[str, Any]:
    """Return a step as plain values: what it does, for programs, and its SQL."""
    procedure = step.procedure
    content: dict[str, Any] = {
        **{name: getattr(step, name) for name in ("number", "server", "host", "port")},
        "title": procedure.title,
        **{name: getattr(step, name) for name in ("why", "finding_ids")},
        **{name: getattr(procedure, name) for name in _OF_PROCEDURE},
        **{name: getattr(step, name) for name in ("privileges", "unix_socket")},
    }
    if isinstance(step.effect, RedoTransactions):  # a script contains authentication data
        content["statements"] = [without_secrets(each) for each in procedure.statements]
    for name in ("preconditions", "verifications"):
        content[name] = [asdict(each) for each in getattr(procedure, name)]
    for name in ("before", "after"):
        content[name] = [asdict(each) for each in getattr(step, name)]
    content["checks"] = [
        {**asdict(check), "script": step.check_name(check)} for check in step.checks
    ]
    content["action"] = step.action
    content["change"] = action_content(step.effect)
    content["script"] = step.file_name
    return content
