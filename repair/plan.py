"""The plan: what will be done to which server in which order, what was not chosen, and why.

1. A plan is a value. Its id is a digest of all it says, so the same plan has the same id and the
   same bytes everywhere.
2. It knows nothing of directories; render.py writes its texts, adapters/files.py its files.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from repair.row_versions import RowsRead
from repair.steps import Step
from topology.findings import Finding

FORMAT_VERSION = 1
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


def differing_rows(finding: Finding, read: RowsRead) -> Iterator[DifferingRow]:
    """Give the rows behind a finding that differ, as text."""
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
    """Steps in order, and everything somebody must know before running the first."""

    cluster: str
    snapshot_read_at: datetime | None
    answered: tuple[Answered, ...]
    steps: tuple[Step, ...]
    assumed: tuple[AssumedState, ...]
    not_chosen: tuple[NotChosen, ...]
    not_planned: tuple[NotPlanned, ...]
    warnings: tuple[str, ...]
    rows: tuple[DifferingRow, ...] = ()
    id: str = field(init=False)

    def __post_init__(self) -> None:
        numbers = tuple(step.number for step in self.steps)
        assert numbers == tuple(range(1, len(self.steps) + 1)), "steps are counted from 1"
        object.__setattr__(self, "id", self._digest())

    @property
    def finding_ids(self) -> tuple[str, ...]:
        """Return the findings this plan answers."""
        return tuple(each.finding_id for each in self.answered)

    @property
    def estimated_seconds(self) -> int:
        """Return how long all steps take, one after the other."""
        return sum(step.estimated_seconds for step in self.steps)

    def as_json(self) -> dict[str, Any]:
        """Return the plan as plain values, ready to be written."""
        return {"format_version": FORMAT_VERSION, "id": self.id, **self._content()}

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = {
            "cluster": self.cluster,
            "snapshot_read_at": self.snapshot_read_at.isoformat()
            if self.snapshot_read_at
            else None,
            "estimated_seconds": self.estimated_seconds,
        }
        for name in ("answered", "steps", "assumed", "not_chosen", "not_planned", "rows"):
            content[name] = [asdict(each) for each in getattr(self, name)]
        for step, written in zip(self.steps, content["steps"], strict=True):
            del written["effect"]
            written["action"] = step.action
            written["script"] = step.file_name
        content["warnings"] = list(self.warnings)
        return content

    def _digest(self) -> str:
        text = json.dumps(self._content(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:_ID_CHARACTERS]
