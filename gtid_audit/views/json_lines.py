"""Answers as JSON lines: one object per item, and the verdict in the last line.

1. Every line has `schema_version` and `type`. A line of the type `finding`, say, has the fields of
   an item of the document's `findings`.
2. The last line has the type `verdict` and the other fields of the document. `counts` has the
   number of lines of each list, null for a list that is null. A reader who finds no verdict, or
   other counts, has not got the whole answer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from topology.documents.document_version import versioned

# The type of a line, by the list in the document that has the item.
LINE_TYPES: Final = {
    "answers": "answer",
    "clusters": "cluster",
    "contents": "content",
    "definitions": "definition",
    "differences": "difference",
    "errors": "error",
    "files": "file",
    "findings": "finding",
    "other_errors": "other_error",
    "pairs": "pair",
    "places": "place",
    "servers": "server",
    "unknown": "unknown",
    "unread": "unread",
    "waits": "wait",
}
VERDICT_LINE: Final = "verdict"


def json_line(kind: str, fields: Mapping[str, Any]) -> str:
    """Return one line, with its end."""
    plain = {name: value for name, value in fields.items() if name != "schema_version"}
    line = versioned({"type": kind, **plain})
    return json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"


def lines_of_items(
    head: Mapping[str, Any], lists: Mapping[str, Iterable[str] | None]
) -> Iterator[str]:
    """Yield the lines of a document whose lists are texts of `items_text` (json_items.py)."""
    read = {name: None if pieces is None else _items(pieces) for name, pieces in lists.items()}
    return _lines(head, read)


def lines_of_document(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a document: those of every list of objects that LINE_TYPES names."""
    lists = {name: document[name] for name in LINE_TYPES if _is_list_of_items(document, name)}
    head = {name: value for name, value in document.items() if name not in lists}
    return _lines(head, lists)


def _is_list_of_items(document: Mapping[str, Any], name: str) -> bool:
    value = document.get(name)
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _items(pieces: Iterable[str]) -> Iterator[dict[str, Any]]:
    for piece in pieces:
        yield from json.loads(f"[{piece}]")


def _lines(
    head: Mapping[str, Any], lists: Mapping[str, Iterable[Mapping[str, Any]] | None]
) -> Iterator[str]:
    counts: dict[str, int | None] = {}
    for name, items in lists.items():
        counts[name] = None if items is None else 0
        for count, item in enumerate(items or (), start=1):
            yield json_line(LINE_TYPES[name], item)
            counts[name] = count
    yield json_line(VERDICT_LINE, {**head, "counts": counts})
