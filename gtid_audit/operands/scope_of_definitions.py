"""Parses which definitions a command is about: options, or the name of a table or schema."""

from typing import TYPE_CHECKING, Final

from gtid_audit.exits import UsageProblem

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topology.definitions.definition_scope import DefinitionScope

_TABLE: Final = "--table="
_DATABASE: Final = "--database="
_CHOICES: Final = {"--definitions": True, "--no-definitions": False}


def scope_of(table: str | None, database: str | None) -> "DefinitionScope | None":
    """Return the scope of a table (`schema.table`) or a database; None without either.

    Raises UsageProblem.
    """
    from topology.definitions.definition_scope import DefinitionScope

    if table is not None and database is not None:
        raise UsageProblem("use either --table or --database")
    if database is not None:
        if not database:
            raise UsageProblem("--database: expected the name of a schema")
        return DefinitionScope(database)
    if table is None:
        return None
    from gtid_audit.operands.schema_operands import table_of

    key = table_of(table)
    return DefinitionScope(key.schema, key.table)


def flags_of(
    definitions: bool | None,
    table: str | None,
    database: str | None,
) -> tuple[str, ...]:
    """Return the options of a command line that select these definitions."""
    words = [f"{_TABLE}{table}"] if table is not None else []
    words += [f"{_DATABASE}{database}"] if database is not None else []
    words += [name for name, value in _CHOICES.items() if value is definitions]
    return tuple(words)


def wanted_by(words: "Iterable[str]") -> "tuple[bool | None, DefinitionScope | None]":
    """Return what the options of a command line select: whether definitions are read, and which.

    None: as the policy says. Raises UsageProblem.
    """
    chosen: bool | None = None
    table = database = None
    for word in words:
        if word.startswith(_TABLE):
            table = word.removeprefix(_TABLE)
        elif word.startswith(_DATABASE):
            database = word.removeprefix(_DATABASE)
        chosen = _CHOICES.get(word, chosen)
    return chosen, scope_of(table, database)
