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
    PlainKind.REAL: {"type": "number"},
    PlainKind.ANYTHING: {},
}


def json_schema_of(plain: PlainType, *, is_closed: bool = False) -> dict[str, Any]:
    """Return the schema of values of a type; `is_closed`: records have no more than its fields.

    Readers of a document must ignore fields that later versions add, so theirs is not closed.
    """
    schema = _schema_of(plain, is_closed=is_closed)
    return {"anyOf": [schema, {"type": "null"}]} if plain.may_be_null else schema


def _schema_of(plain: PlainType, *, is_closed: bool) -> dict[str, Any]:
    match plain.kind:
        case PlainKind.LIST | PlainKind.MAP:
            assert plain.item is not None, "a list and a map have a type of items"
            item = json_schema_of(plain.item, is_closed=is_closed)
            if plain.kind is PlainKind.LIST:
                return {"type": "array", "items": item}
            return {"type": "object", "additionalProperties": item}
        case PlainKind.RECORD:
            schema: dict[str, Any] = {
                "type": "object",
                "properties": {
                    name: json_schema_of(part, is_closed=is_closed) for name, part in plain.parts
                },
                "required": [name for name, part in plain.parts if not part.may_be_absent],
            }
            return schema | ({"additionalProperties": False} if is_closed else {})
        case PlainKind.CHOICE:
            return {"anyOf": [json_schema_of(each, is_closed=is_closed) for each in plain.choices]}
        case _ if plain.constant is not None:
            return {"const": plain.constant}
        case _:
            return {"enum": list(plain.words)} if plain.words else dict(_OF_KIND[plain.kind])
