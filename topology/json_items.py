"""One JSON document of any length, in pieces: no list of a fleet is ever whole in memory.

The bytes are those of `json.dumps(document, ensure_ascii=False, indent=2)`: no reader can tell
whether the items were written by executors or beside the rest.
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from topology.records import Plain, Record

_ITEM_INDENT = " " * 4  # inside a list that is a field of the document


def item_text(record: Record) -> str:
    """Write a record as an item of one of the document's lists, without what separates items."""
    text = json.dumps(record, ensure_ascii=False, indent=2, allow_nan=False)
    # A line end inside a JSON text is written as two characters; these are between the parts.
    return _ITEM_INDENT + text.replace("\n", "\n" + _ITEM_INDENT)


def items_text(records: Iterable[Record]) -> str:
    """Write several items, separated."""
    return ",\n".join(map(item_text, records))


def document_pieces(head: Mapping[str, Plain], lists: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Give a document of plain fields and then lists, whose pieces are texts of `items_text`."""
    yield "{\n"
    fields = [f"  {json.dumps(name)}: {_scalar(value)}" for name, value in head.items()]
    yield ",\n".join(fields)
    for name, pieces in lists.items():
        yield f",\n  {json.dumps(name)}: ["
        is_empty = True
        for piece in pieces:
            yield ("\n" if is_empty else ",\n") + piece
            is_empty = False
        yield "]" if is_empty else "\n  ]"
    yield "\n}\n"


def _scalar(value: Plain) -> str:
    assert not isinstance(value, list | dict), "lists have their own place"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
