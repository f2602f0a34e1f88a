"""Writes one JSON document of any length in pieces, without a whole list of a fleet in memory.

The bytes are those of `json.dumps(document, ensure_ascii=False, indent=2)`. A reader cannot
distinguish items that executors wrote from items that were written with the rest.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from topology.catalogue.findings import ClusterAudit, Finding
from topology.documents.document_version import versioned
from topology.documents.label_records import LABELS
from topology.documents.records import (
    Plain,
    Record,
    finding_to_record,
    time_to_text,
    unknown_to_record,
)

_ITEM_INDENT = " " * 4  # inside a list that is a field of the document
_STEP = " " * 2
# The C encoder writes scalars. With an indent, the standard library would encode everything in
# Python, which takes three times as long.
_scalar_text = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def item_text(record: Record) -> str:
    """Write a record as an item of one of the document's lists, without a separator.

    >>> print(item_text({"cluster": "ä", "servers": ["a", "b"], "found": [], "read_at": None}))
        {
          "cluster": "ä",
          "servers": [
            "a",
            "b"
          ],
          "found": [],
          "read_at": null
        }
    """
    return _ITEM_INDENT + _text(record, _ITEM_INDENT)


def _text(value: Plain, indent: str) -> str:
    inner = indent + _STEP
    if isinstance(value, dict) and value:
        fields = [f"{inner}{_scalar_text(name)}: {_text(value[name], inner)}" for name in value]
        return "{\n" + ",\n".join(fields) + f"\n{indent}}}"
    if isinstance(value, list) and value:
        items = [inner + _text(item, inner) for item in value]
        return "[\n" + ",\n".join(items) + f"\n{indent}]"
    return _scalar_text(value)


def items_text(records: Iterable[Record]) -> str:
    """Write several items, with separators."""
    return ",\n".join(map(item_text, records))


def audit_items(
    audits: Sequence[ClusterAudit], findings: Iterable[Finding]
) -> dict[str, Iterator[str]]:
    """Return the three lists of an audit's document as items; `findings` in the order given."""
    unknown = (each for audit in audits for each in audit.unknown)
    lists: dict[str, Iterator[Record]] = {
        "clusters": map(_cluster_record, audits),
        "findings": map(finding_to_record, findings),
        "unknown": map(unknown_to_record, unknown),
    }
    return {name: map(item_text, records) for name, records in lists.items()}


def _cluster_record(audit: ClusterAudit) -> Record:
    return {
        "cluster": audit.cluster,
        "verdict": audit.verdict.value,
        "servers": list(audit.servers),
        "read_at": time_to_text(audit.read_at) if audit.read_at else None,
        "labels": LABELS.write(audit.labels),
    }


def document_pieces(
    head: Mapping[str, Plain], lists: Mapping[str, Iterable[str] | None]
) -> Iterator[str]:
    """Yield a document: scalar fields, then lists whose pieces are texts of `items_text`.

    A list that is None is written as null.
    """
    yield "{\n"
    scalars = versioned(head).items()
    fields = [f"  {_scalar_text(name)}: {_scalar_text(value)}" for name, value in scalars]
    yield ",\n".join(fields)
    for name, pieces in lists.items():
        if pieces is None:
            yield f",\n  {_scalar_text(name)}: null"
            continue
        yield f",\n  {_scalar_text(name)}: ["
        is_empty = True
        for piece in pieces:
            yield ("\n" if is_empty else ",\n") + piece
            is_empty = False
        yield "]" if is_empty else "\n  ]"
    yield "\n}\n"
