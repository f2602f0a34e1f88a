"""The plan: what will be done to which server in which order, what was not chosen, and why.

1. A plan is a value. Its id is a digest of what it does: findings, choices, and each step's action,
   address and SQL. When it was read, and what texts report of that moment, is not part of it: made
   again while nothing has changed, a plan has the same id.
2. It knows nothing of directories; render.py writes its texts, adapters/files.py its files.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from repair.action_content import action_content
from repair.actions import RedoTransactions
from repair.guard import without_measured
from repair.row_versions import RowsRead
from repair.statement_sql import DELIMITER
from repair.steps import Step
from repair.strategy_case import SavedContent
from repair.transaction_content import TransactionContent, described
from topology.findings import Finding
from topology.hidden import without_secrets

FORMAT_VERSION = 2
_LISTS = (
    *("answered", "assumed", "not_chosen", "not_planned", "rows"),
    *("contents", "saved", "afterwards"),
)
_ID_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class AssumedState:
    """What the plan takes for granted about one server: as read last."""

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
        """Return how the plan reached it."""
        return self.unix_socket or f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class NotChosen:
    """A strategy for an answered finding that was not taken."""

    finding_id: str
    strategy: str
    why: str


@dataclass(frozen=True, slots=True)
class Answered:
    """A finding this plan answers, by which strategy, in which steps.

    Without steps an earlier step of the plan, or replication itself, has already answered it.
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
    """A finding this plan does not answer: why, and what to do by hand."""

    finding_id: str
    code: str
    name: str
    about: str
    why: str
    by_hand: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that two servers hold differently (E4): both versions, of the columns that differ.

    A version is None where there is no such row; a value is None where it is NULL.
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
    """What a finding's transactions did: sets by class, rows by table, as their log holds it."""

    finding_id: str
    read_from: str | None
    summary: str
    classes: dict[str, str]
    tables: tuple[str, ...]


def content_shown(finding: Finding, content: TransactionContent) -> ContentShown:
    """Return the content behind a finding as text."""
    return ContentShown(
        finding_id=finding.id,
        read_from=content.read_from,
        summary=described(content, content.wanted),
        classes={each.value: str(gtids) for each, gtids in content.classes.items() if gtids},
        tables=tuple(f"{each.schema}.{each.table}" for each in content.tables),
    )


@dataclass(frozen=True, slots=True)
class Afterwards:
    """What the audit will show above info after the plan, on the servers as they were read."""

    finding_id: str
    code: str
    name: str
    about: str
    severity: str
    explanation: str
    is_new: bool


def differing_rows(finding: Finding, read: RowsRead) -> Iterator[DifferingRow]:
    """Yield the rows behind a finding that differ, as text."""
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
    """Write one version of a row on a line."""
    if row is None:
        return "there is no such row"
    return ", ".join(f"{name}: {'NULL' if text is None else text}" for name, text in row.items())


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, and all that the operator must know before the first."""

    cluster: str
    snapshot_read_at: datetime | None
    answered: tuple[Answered, ...]
    steps: tuple[Step, ...]
    assumed: tuple[AssumedState, ...]
    not_chosen: tuple[NotChosen, ...]
    not_planned: tuple[NotPlanned, ...]
    warnings: tuple[str, ...]
    rows: tuple[DifferingRow, ...] = ()
    # What the operator chose: a strategy by a finding's id or by a code.
    choices: Mapping[str, str] = field(default_factory=dict)
    only_findings: tuple[str, ...] | None = None  # what was asked for; None: all
    command: str = ""  # the command line that plans this again; it holds no secret
    contents: tuple[ContentShown, ...] = ()
    saved: tuple[SavedContent, ...] = ()  # files beside the scripts
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
        """Return the findings this plan answers."""
        return tuple(each.finding_id for each in self.answered)

    @property
    def scripts_count(self) -> int:
        """Return how many scripts are run: the steps and their checks."""
        return self.steps[-1].number if self.steps else 0

    @property
    def estimated_seconds(self) -> int:
        """Return how long all steps take, one after the other."""
        return sum(step.estimated_seconds for step in self.steps)

    @property
    def left(self) -> frozenset[str]:
        """Return the findings for which nothing is to be run.

        A finding may be answered by the steps of another. Without any step nothing is answered.
        """
        answered = () if self.steps else self.finding_ids
        return frozenset((*(each.finding_id for each in self.not_planned), *answered))

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, ready to be written."""
        return {"format_version": FORMAT_VERSION, "id": self.id, **self._content()}

    def reached_by(self, sockets: Mapping[str, str]) -> "Plan":
        """Return this plan for servers, by name, that were reached by a unix socket."""
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
            content[name] = [asdict(each) for each in getattr(self, name)]
        for saved in content["saved"]:
            parts = saved["text"].split(DELIMITER)
            saved["text"] = DELIMITER.join(without_secrets(each) for each in parts)
        content["steps"] = [_step_content(step) for step in self.steps]
        content["warnings"] = list(self.warnings)
        return content

    def _digest(self) -> str:
        """Digest what the plan does. What a reading measures, and sets that grow, are left out.

        What a step does on its server is in its SQL, with every set that its guards compare.
        """
        done = [
            [
                *(step.number, step.server, step.host, step.port, step.unix_socket),
                action_content(step.effect),
                [
                    [asdict(guard) for guard in part]
                    for part in (step.preconditions, step.verifications)
                ],
                [step.session, step.statements],
                [asdict(check) for check in step.checks],
            ]
            for step in self.steps
        ]
        answered = [(each.finding_id, each.strategy, each.steps) for each in self.answered]
        left = sorted(each.finding_id for each in self.not_planned)
        saved = [asdict(each) for each in self.saved]
        text = json.dumps(
            [self.cluster, dict(self.choices), done, answered, left, saved],
            sort_keys=True,
            ensure_ascii=False,
        )
        return hashlib.sha256(without_measured(text).encode()).hexdigest()[:_ID_CHARACTERS]


def _step_content(step: Step) -> dict[str, Any]:
    """Return a step as plain values: what it does for programs, and its SQL."""
    content = {
        each.name: getattr(step, each.name)
        for each in fields(step)
        if each.name
        not in ("effect", "preconditions", "verifications", "checks", "before", "after")
    }
    if isinstance(step.effect, RedoTransactions):  # a script has what they authenticate with
        content["statements"] = [without_secrets(each) for each in step.statements]
    for name in ("preconditions", "verifications", "before", "after"):
        content[name] = [asdict(each) for each in getattr(step, name)]
    content["checks"] = [
        {**asdict(check), "script": step.check_name(check)} for check in step.checks
    ]
    content["action"] = step.action
    content["change"] = action_content(step.effect)
    content["script"] = step.file_name
    return content
