"""Writes the type of a plain value as a JSON Schema (draft 2020-12)."""

from typing import Any, Final

from topology.documents.plain_types import PlainKind, PlainType

_OF_KIND: Final[dict[PlainKind, dict[str, Any]]] = {
    PlainKind.TEXT: {"type": "string"},
    PlainKind.NUMBER: {"type": "integer"},
    PlainKind.SMALL_NUMBER: {"type": "integer"},
    PlainKind.COUNT: {"type": "integer"},
    PlainKind.FLAG: {"type": "boolean"},
    PlainKind.TIME: {"type": "string", "format": "date-time"},
}


def json_schema_of(plain: PlainType, *, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of values of a type; `is_closed`: records have no more than its fields.

    Readers of a document must ignore fields that later versions add, so theirs is not closed.
    """
    if plain.item is not None:
        schema: dict[str, Any] = {
            "type": "array",
            "items": json_schema_of(plain.item, is_closed=is_closed),
        }
    elif plain.kind is PlainKind.RECORD:
        schema = {
            "type": "object",
            "properties": {
                name: json_schema_of(part, is_closed=is_closed) for name, part in plain.parts
            },
            "required": [name for name, _ in plain.parts],
        }
        if is_closed:
            schema["additionalProperties"] = False
    elif plain.words:
        schema = {"enum": list(plain.words)}
    else:
        schema = dict(_OF_KIND[plain.kind])
    return {"anyOf": [schema, {"type": "null"}]} if plain.may_be_null else schema
