"""Converts definitions and entries to JSON documents and back. Equal values have equal text."""

import json
from typing import Any

from binlog.schema.table_definitions import Column, Generated, Key, KeyKind, TableDefinition
from binlog.schema.table_history import Entry, Place, Source, State, TableKey


def definition_document(definition: TableDefinition) -> dict[str, Any]:
    """Return a definition as a JSON object; default values of its columns are omitted."""
    return {
        "schema": definition.schema,
        "table": definition.table,
        "columns": [_column_document(column) for column in definition.columns],
        "primary_key": list(definition.primary_key),
        "unique_keys": [_key_document(key) for key in definition.unique_keys],
        "plain_keys": [_key_document(key) for key in definition.plain_keys],
        "foreign_keys": [list(columns) for columns in definition.foreign_keys],
        "charset": definition.charset,
        "is_complete": definition.is_complete,
    }


def _column_document(column: Column) -> dict[str, Any]:
    document: dict[str, Any] = {
        "name": column.name,
        "type": column.type_text,
        "nullable": column.is_nullable,
    }
    if column.is_unsigned:
        document["unsigned"] = True
    if column.charset is not None:
        document["charset"] = column.charset
    if column.members:
        document["members"] = list(column.members)
    if column.is_generated is not None:
        document["generated"] = column.is_generated.value
    if column.is_invisible:
        document["invisible"] = True
    return document


def _key_document(key: Key) -> dict[str, Any]:
    return {
        "kind": key.kind.value,
        "name": key.name,
        "columns": list(key.columns),
        "is_exact": key.is_exact,
    }


def definition_of_document(document: dict[str, Any]) -> TableDefinition:
    """Read the result of `definition_document`. Raises KeyError, ValueError for anything else."""
    return TableDefinition(
        schema=document["schema"],
        table=document["table"],
        columns=tuple(map(_column_of, document["columns"])),
        primary_key=tuple(document["primary_key"]),
        unique_keys=tuple(map(_key_of, document["unique_keys"])),
        charset=document["charset"],
        plain_keys=tuple(map(_key_of, document["plain_keys"])),
        foreign_keys=tuple(map(tuple, document["foreign_keys"])),
        is_complete=document["is_complete"],
    )


def _column_of(document: dict[str, Any]) -> Column:
    generated = document.get("generated")
    return Column(
        name=document["name"],
        type_text=document["type"],
        is_unsigned=document.get("unsigned", False),
        charset=document.get("charset"),
        members=tuple(document.get("members", ())),
        is_nullable=document["nullable"],
        is_generated=Generated(generated) if generated else None,
        is_invisible=document.get("invisible", False),
    )


def _key_of(document: dict[str, Any]) -> Key:
    return Key(
        KeyKind(document["kind"]),
        document["name"],
        tuple(document["columns"]),
        document["is_exact"],
    )


def entry_document(entry: Entry) -> dict[str, Any]:
    """Return an entry as a JSON object."""
    return {
        "schema": entry.key.schema,
        "table": entry.key.table,
        "file": entry.place.file,
        "position": entry.place.position,
        "gtid": entry.gtid,
        "state": entry.state.value,
        "source": entry.source.value,
        "why": entry.why,
        "statement": entry.statement,
        "definition": definition_document(entry.definition) if entry.definition else None,
    }


def entry_of_document(document: dict[str, Any]) -> Entry:
    """Read the result of `entry_document`."""
    definition = document["definition"]
    return Entry(
        key=TableKey(document["schema"], document["table"]),
        place=Place(document["file"], document["position"]),
        state=State(document["state"]),
        source=Source(document["source"]),
        definition=definition_of_document(definition) if definition else None,
        why=document["why"],
        gtid=document["gtid"],
        statement=document["statement"],
    )


def as_text(document: dict[str, Any]) -> str:
    """Write a document on one line."""
    return json.dumps(document, ensure_ascii=False, sort_keys=True)
