"""The result of one audit, for one or many clusters: the source of every form of output.

Pure: the same audits give the same report and the same document. It reads no clock.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from gtid_audit.views.content_text import content_records
from gtid_audit.views.definition_text import Definitions, definition_records
from gtid_audit.views.json_lines import lines_of_items
from topology.catalogue.findings import ClusterAudit, Finding, Unknown, Verdict, worst_verdict
from topology.documents.json_items import audit_items, document_pieces, item_text
from topology.documents.label_records import Labels
from topology.documents.records import Record, time_to_text
from topology.readings.contents import ContentReading

# The compared contents, by cluster; None: contents were not compared.
Contents: TypeAlias = Mapping[str, ContentReading] | None


class Engine(Enum):
    """Where the clusters were evaluated."""

    LOCAL = "local"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The audits of some clusters, in order of name."""

    engine: Engine
    audits: tuple[ClusterAudit, ...]

    def __post_init__(self) -> None:
        names = [audit.cluster for audit in self.audits]
        if names != sorted(set(names)):
            raise ValueError("a report has every cluster once, in order of name")

    @property
    def verdict(self) -> Verdict:
        """Return the verdict over all clusters; UNKNOWN if there are none."""
        if not self.audits:
            return Verdict.UNKNOWN
        return worst_verdict(audit.verdict for audit in self.audits)

    @property
    def audited_at(self) -> datetime | None:
        """Return when the last reading ended: the report describes that moment."""
        return max((audit.read_at for audit in self.audits if audit.read_at), default=None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return the findings of all clusters, worst first within each."""
        return tuple(finding for audit in self.audits for finding in audit.findings)

    @property
    def unknown(self) -> tuple[Unknown, ...]:
        """Return what was not read, cluster by cluster."""
        return tuple(unknown for audit in self.audits for unknown in audit.unknown)

    @property
    def labels(self) -> dict[str, Labels]:
        """Return the labels of each cluster that has some."""
        return {audit.cluster: audit.labels for audit in self.audits if audit.labels}

    def parts(self, contents: Contents = None, definitions: Definitions = None) -> "DocumentParts":
        """Return the parts of the document, which any of its forms is made of."""
        return DocumentParts(
            self.engine,
            audited_at=self.audited_at,
            verdict=self.verdict,
            items=audit_items(self.audits, self.findings),
            contents=contents,
            definitions=definitions,
        )

    def document_pieces(
        self, contents: Contents = None, definitions: Definitions = None
    ) -> Iterator[str]:
        """Yield the JSON document of the contract in pieces, to be written one after another."""
        return self.parts(contents, definitions).document()


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """The parts of an audit's document. `items` are lists of texts (json_items.py), read once."""

    engine: Engine
    _: KW_ONLY
    audited_at: datetime | None
    verdict: Verdict
    items: Mapping[str, Iterable[str]]
    contents: Contents
    definitions: Definitions

    @property
    def head(self) -> Record:
        """Return the fields that are no lists."""
        return {
            "audited_at": time_to_text(self.audited_at) if self.audited_at else None,
            "engine": self.engine.value,
            "verdict": self.verdict.value,
        }

    @property
    def lists(self) -> dict[str, Iterable[str] | None]:
        """Return the lists. Null if contents were not compared: sets may hide a difference."""
        compared, defined = self.contents, self.definitions
        return {
            **self.items,
            "contents": None if compared is None else map(item_text, content_records(compared)),
            "definitions": None if defined is None else map(item_text, definition_records(defined)),
        }

    def document(self) -> Iterator[str]:
        """Yield the JSON document in pieces."""
        return document_pieces(self.head, self.lists)

    def lines(self) -> Iterator[str]:
        """Yield the JSON lines."""
        return lines_of_items(self.head, self.lists)


def report_of(engine: Engine, audits: Iterable[ClusterAudit]) -> AuditReport:
    """Make a report of audits, given in any order."""
    return AuditReport(engine, tuple(sorted(audits, key=lambda audit: audit.cluster)))
