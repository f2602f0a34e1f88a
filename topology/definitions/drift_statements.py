"""Writes the statements that give the replica the definitions of the source.

1. They are text for the operator: gtid-audit runs none of them. The first one keeps the session out
   of the binary log (sql_log_bin = 0), so that the replica gets no GTID of its own.
2. What would delete data or an object is a comment. The operator removes the `-- ` after a look.
3. Clauses are those that the source's SHOW CREATE printed, so a server of the same version accepts
   them. A clause on several lines stays one statement.
4. Routines, triggers and events are between DELIMITER lines, for the mysql client.
5. The default of a TIMESTAMP was read in UTC, and is written in UTC.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Final

from binlog.quoting import quote_identifier, quote_string
from topology.definitions.canonical import CanonicalDefinition, ClauseKind
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.drift_classes import DriftClass
from topology.definitions.event_statements import (
    EVENT_OF_UNKNOWN_ROLE,
    as_on_replica,
    status_comments,
)
from topology.definitions.schema_objects import ObjectKey, ObjectKind

NOT_LOGGED: Final = "SET SESSION sql_log_bin = 0;"
_DELIMITER: Final = "//"
_CREATE: Final = re.compile(r"^CREATE\b", re.IGNORECASE)
_CREATE_DATABASE: Final = re.compile(r"^CREATE DATABASE\b", re.IGNORECASE)
_COUNTER: Final = re.compile(r"^(\) .*?) AUTO_INCREMENT=\d+", re.MULTILINE)
_INVISIBLE: Final = re.compile(r" INVISIBLE\b")
_STORAGE: Final = re.compile(r"\) (STORED|VIRTUAL)\b", re.IGNORECASE)
_MOMENT: Final = re.compile(r"` timestamp\b.* DEFAULT '", re.IGNORECASE)
_ESCAPES: Final = "SET SESSION sql_mode = REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', '');"
_IN_UTC: Final = "SET SESSION time_zone = '+00:00';"
_REFERENCED: Final = re.compile(r"(?:`(?:[^`]|``)*`|[^`])*? REFERENCES (?=`(?:[^`]|``)+` )")
_COMPOUND: Final = (
    ObjectKind.PROCEDURE,
    ObjectKind.FUNCTION,
    ObjectKind.TRIGGER,
    ObjectKind.EVENT,
)


def creating(
    key: ObjectKey, definition: CanonicalDefinition, *, event_status: str = EVENT_OF_UNKNOWN_ROLE
) -> tuple[str, ...]:
    """Return what creates an object that only the source has."""
    if key.kind is ObjectKind.SCHEMA:
        return (f"{definition.create};",)
    text = definition.create
    if key.kind is ObjectKind.TABLE:
        text = _COUNTER.sub(r"\1", text)
    comments: tuple[str, ...] = ()
    if key.kind is ObjectKind.EVENT:
        text, comments = as_on_replica(text, event_status), status_comments(event_status)
    if (elsewhere := _not_as_text(definition, text)) is not None:
        return elsewhere
    modes = (*_zone(key.kind, text), *_backslashes(key.kind, text))
    return (*comments, _use(key), *modes, *_session(definition), *_as_statement(key.kind, text))


def dropping(key: ObjectKey) -> tuple[str, ...]:
    """Return what drops an object that only the replica has, as a comment."""
    if key.kind is ObjectKind.SCHEMA:
        return (f"-- DROP DATABASE {quote_identifier(key.schema)};",)
    return (f"-- DROP {key.kind.value.upper()} {qualified(key)};",)


def renaming(key: ObjectKey, replica_key: ObjectKey) -> tuple[str, ...]:
    """Return what gives a table its name on the source."""
    return (f"RENAME TABLE {qualified(replica_key)} TO {qualified(key)};",)


def changing(
    key: ObjectKey,
    changes: Sequence[ClauseChange],
    source: CanonicalDefinition,
    replica: CanonicalDefinition,
    *,
    event_status: str,
) -> tuple[str, ...]:
    """Return what changes an object that both servers have."""
    if key.kind is ObjectKind.TABLE:
        # The tables of a MERGE table are printed without their schema.
        is_merge = any(" UNION=(" in f" {each.source.raw}" for each in changes if each.source)
        statements = tuple(_altering(key, changes))
        lines = "\n".join(statements)
        modes = (*_zone(key.kind, lines), *_backslashes(key.kind, lines))
        return (*((_use(key),) if is_merge else ()), *modes, *statements)
    if key.kind is ObjectKind.SCHEMA:
        return (f"{_CREATE_DATABASE.sub('ALTER DATABASE', source.create)};",)
    if (elsewhere := _not_as_text(source, source.create)) is not None:
        return elsewhere
    if key.kind is ObjectKind.VIEW:
        view = f"{_CREATE.sub('CREATE OR REPLACE', source.create, count=1)};"
        return (_use(key), *_backslashes(key.kind, view), *_session(source), view)
    drop = dropping_again(key)
    text = source.create
    comments: tuple[str, ...] = ()
    if key.kind is ObjectKind.EVENT:
        text = as_on_replica(text, event_status)
        comments = status_comments(event_status, replica.create)
    return (*comments, _use(key), *_session(source), drop, *_as_statement(key.kind, text))


def dropping_again(key: ObjectKey) -> str:
    """Return what drops an object that the next statement creates again."""
    return f"DROP {key.kind.value.upper()} IF EXISTS {qualified(key)};"


def qualified(key: ObjectKey) -> str:
    """Return the quoted name of an object with its schema."""
    return f"{quote_identifier(key.schema)}.{quote_identifier(key.name)}"


def _use(key: ObjectKey) -> str:
    return f"USE {quote_identifier(key.schema)};"


def _session(definition: CanonicalDefinition) -> tuple[str, ...]:
    """Return what makes the session as it was when the object was created."""
    settings = [
        f"{each.name} = {quote_string(each.raw)}" for each in definition.of(ClauseKind.SESSION)
    ]
    return (f"SET SESSION {', '.join(settings)};",) if settings else ()


def _not_as_text(definition: CanonicalDefinition, text: str) -> tuple[str, ...] | None:
    """Return a comment if a statement in UTF-8 would store other characters; None if not.

    The session that creates the object must have its character_set_client, and so takes the text
    for one in that character set.
    """
    sets = {each.name: each.raw for each in definition.of(ClauseKind.SESSION)}
    client = sets.get("character_set_client", "utf8mb4")
    if text.isascii() or client.startswith("utf8"):
        return None
    said = f"-- It was created with character_set_client = {quote_string(client)} and has"
    return (f"{said} characters beyond ASCII: copy it with mysqldump from the source.",)


def _backslashes(kind: ObjectKind, text: str) -> tuple[str, ...]:
    """Return what makes a backslash escape, as in what was read. Routines have a mode."""
    stored = kind in (ObjectKind.TABLE, ObjectKind.VIEW)
    return (_ESCAPES,) if stored and "\\" in text else ()


def _zone(kind: ObjectKind, text: str) -> tuple[str, ...]:
    """Return what makes the session's zone that of the text, if the text has a TIMESTAMP's default.

    The session may have the zone of an event that was created before it.
    """
    return (_IN_UTC,) if kind is ObjectKind.TABLE and _MOMENT.search(text) else ()


def _as_statement(kind: ObjectKind, create: str) -> tuple[str, ...]:
    if kind in _COMPOUND:
        return (f"DELIMITER {_DELIMITER}", f"{create}{_DELIMITER}", "DELIMITER ;")
    return (f"{create};",)


def _altering(key: ObjectKey, changes: Sequence[ClauseChange]) -> Iterator[str]:
    """Yield one ALTER TABLE for each change, in an order in which the server accepts them.

    1. Constraints are dropped first: no index that a foreign key needs can be dropped before it
       (1553), and no column of a check (3959).
    2. Then the default character set: a column whose clause has none gets that of its table.
    3. Indexes are dropped before their columns, with which the server drops them (1091).
    4. Constraints are added last: their columns and indexes exist then, and an index that a foreign
       key would create by itself is not created twice (1061).
    """
    table = f"ALTER TABLE {qualified(key)}"
    actions = [
        (
            _phase(change, action),
            f"{table} {action};",
            change.source is None and action.startswith("DROP "),
        )
        for change in changes
        for action in _ACTIONS[change.drift_class](_in_schema(change, key.schema))
    ]
    for _, text, drops in sorted(actions, key=itemgetter(0)):
        yield "\n".join(f"-- {line}" for line in text.split("\n")) if drops else text


def _phase(change: ClauseChange, action: str) -> int:
    if action.startswith(("DROP FOREIGN KEY", "DROP CHECK")):
        return 0
    if _sets_default(change):
        return 1
    if change.drift_class is DriftClass.COLUMN_MORE:
        return 3
    return 4 if action.startswith("ADD CONSTRAINT") else 2


def _in_schema(change: ClauseChange, schema: str) -> ClauseChange:
    """Return a change whose foreign key names the schema of its table: 5.6 has no default (1046).

    SHOW CREATE TABLE omits the schema of a referenced table that is in the same one.
    """
    if change.source is None or change.source.kind is not ClauseKind.FOREIGN_KEY:
        return change
    found = _REFERENCED.match(change.source.raw)
    if found is None:
        return change
    raw = change.source.raw
    whole = f"{raw[: found.end()]}{quote_identifier(schema)}.{raw[found.end() :]}"
    return replace(change, source=replace(change.source, raw=whole))


def _sets_default(change: ClauseChange) -> bool:
    is_options = change.source is not None and change.source.kind is ClauseKind.OPTIONS
    return is_options and change.drift_class is DriftClass.CHARSET


def _place(change: ClauseChange) -> str:
    return "FIRST" if change.after is None else f"AFTER {quote_identifier(change.after)}"


def _add_column(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    return (f"ADD COLUMN {change.source.raw} {_place(change)}",)


def _drop_column(change: ClauseChange) -> tuple[str, ...]:
    return (f"DROP COLUMN {quote_identifier(change.name)}",)


def _rename_column(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    assert change.replica is not None
    return (f"CHANGE COLUMN {quote_identifier(change.replica.name)} {change.source.raw}",)


def _move_column(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    return (f"MODIFY COLUMN {change.source.raw} {_place(change)}",)


def _modify(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    if change.source.kind is ClauseKind.OPTIONS:
        return _set_options(change)
    if _changes_storage(change):  # MODIFY is refused: 3106
        return (f"{_drop_column(change)[0]}, ADD COLUMN {change.source.raw} {_place(change)}",)
    return (f"MODIFY COLUMN {change.source.raw}",)


def _changes_storage(change: ClauseChange) -> bool:
    """Return whether a generated column is STORED on one side and VIRTUAL on the other."""
    kinds = [_STORAGE.search(each.text) for each in (change.source, change.replica) if each]
    return {each[1].upper() for each in kinds if each} == {"STORED", "VIRTUAL"}


def _add(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    return (f"ADD {change.source.raw}",)


def _drop(change: ClauseChange) -> tuple[str, ...]:
    clause = change.replica
    assert clause is not None
    if clause.kind is ClauseKind.KEY:
        is_primary = clause.name == "PRIMARY"
        return (
            "DROP PRIMARY KEY" if is_primary else f"DROP INDEX {quote_identifier(clause.name)}",
        )
    word = "FOREIGN KEY" if clause.kind is ClauseKind.FOREIGN_KEY else "CHECK"
    return (f"DROP {word} {quote_identifier(clause.name)}",)


def _replace(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    [drop] = _drop(change)
    if (seen := _visibility_of(change)) is not None:
        return (f"ALTER INDEX {quote_identifier(change.source.name)} {seen}",)
    # One ALTER TABLE that drops and adds an index keeps its full-text parser (seen on 9.7.4).
    if change.source.kind is ClauseKind.KEY and not change.source.raw.startswith("FULLTEXT "):
        return (f"{drop}, ADD {change.source.raw}",)
    # One ALTER TABLE cannot drop a constraint and add another one of the same name.
    return (drop, f"ADD {change.source.raw}")


def _visibility_of(change: ClauseChange) -> str | None:
    """Return VISIBLE or INVISIBLE if an index differs in nothing else: ADD KEY keeps INVISIBLE."""
    assert change.source is not None
    assert change.replica is not None
    ours, theirs = change.source.text, change.replica.text
    if change.source.kind is not ClauseKind.KEY or ours == theirs:
        return None
    if _INVISIBLE.sub("", ours).rstrip() != _INVISIBLE.sub("", theirs).rstrip():
        return None
    return "INVISIBLE" if _INVISIBLE.search(ours) else "VISIBLE"


def _set_options(change: ClauseChange) -> tuple[str, ...]:
    assert change.source is not None
    options = change.source.raw
    had_comment = change.replica is not None and " COMMENT='" in f" {change.replica.raw}"
    if had_comment and " COMMENT='" not in f" {options}":
        options += " COMMENT=''"
    return (options,)


def _set_partitions(change: ClauseChange) -> tuple[str, ...]:
    return (change.source.raw if change.source else "REMOVE PARTITIONING",)


_ACTIONS: Final[Mapping[DriftClass, Callable[[ClauseChange], tuple[str, ...]]]] = {
    DriftClass.COLUMN_FEWER: _add_column,
    DriftClass.COLUMN_MORE: _drop_column,
    DriftClass.COLUMN_RENAMED: _rename_column,
    DriftClass.COLUMN_MOVED: _move_column,
    DriftClass.COLUMN_TYPE: _modify,
    DriftClass.COLUMN_ATTRIBUTE: _modify,
    DriftClass.CHARSET: _modify,
    DriftClass.INDEX_FEWER: _add,
    DriftClass.INDEX_MORE: _drop,
    DriftClass.INDEX_DIFFERENT: _replace,
    DriftClass.CONSTRAINT_FEWER: _add,
    DriftClass.CONSTRAINT_MORE: _drop,
    DriftClass.CONSTRAINT_DIFFERENT: _replace,
    DriftClass.OPTION: _set_options,
    DriftClass.PARTITIONS: _set_partitions,
}
