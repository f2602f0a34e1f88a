"""Reads the actions of ALTER TABLE (alter_list, sql/sql_yacc.yy).

An action that is not in the table at the end raises CannotFollow, and so does an unknown option.
Partition clauses are skipped as a whole, because no column depends on them. EXCHANGE PARTITION is
read, because the rows are then those of another table.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from binlog.schema.changes import (
    Action,
    AddColumn,
    AddForeignKey,
    AddKey,
    ChangeColumn,
    ColumnPlace,
    ColumnSpec,
    ConvertCharset,
    DropColumn,
    DropConstraint,
    DropKey,
    KeySpec,
    RenameColumn,
    RenameKey,
    RenameTo,
    ReplaceRows,
    SetCharset,
    SetVisibility,
)
from binlog.schema.clauses import KEYS, PRIMARY, TABLE_OPTIONS, Clauses, Element
from binlog.schema.column_clauses import read_charset, read_collation
from binlog.schema.sql_words import WordKind

# ALTER TABLE t <one of these> … PARTITION. Such a command is the last one of its statement.
_PARTITION_COMMANDS = (
    *("add", "drop", "discard", "import", "truncate", "coalesce", "reorganize", "exchange"),
    *("analyze", "check", "optimize", "rebuild", "repair"),
)
_ORDER_ENDS = ("add", "alter", "change", "convert", "drop", "modify", "rename")


def read_actions(clauses: Clauses) -> tuple[Action, ...]:
    """Read the actions of ALTER TABLE."""
    reader = clauses.reader
    found: list[Action] = []
    while not reader.is_at_end:
        if _is_partition_command(clauses):
            found += _other_rows(clauses)
            reader.skip_to()
            break
        found += _action(clauses)
        if not reader.accept(",") and not _is_partition_command(clauses):
            break
    if reader.accept("partition", "by") or reader.accept("remove", "partitioning"):
        reader.skip_to()
    return tuple(found)


def _is_partition_command(clauses: Clauses) -> bool:
    return any(
        clauses.reader.comes(word, "partition") for word in _PARTITION_COMMANDS
    ) or clauses.reader.comes("upgrade", "partitioning")


def _other_rows(clauses: Clauses) -> tuple[Action, ...]:
    """Read a partition command after which a table has other rows; () if it is another one."""
    reader = clauses.reader
    if reader.accept_any("discard", "import"):
        return (ReplaceRows(None),)
    if not reader.accept("exchange", "partition"):
        return ()
    reader.name()
    reader.expect("with", "table")
    return (ReplaceRows(reader.table_name()),)


def _action(clauses: Clauses) -> tuple[Action, ...]:
    reader = clauses.reader
    word = reader.next.text.lower()
    if reader.next.kind is WordKind.BARE and word in _ACTIONS:
        reader.take()
        return _ACTIONS[word](clauses)
    if reader.comes("partition", "by") or reader.comes("remove", "partitioning"):
        return ()
    if reader.next.kind is WordKind.BARE and word in TABLE_OPTIONS:
        return _options(clauses)
    raise reader.fail("expected an action of ALTER TABLE")


def _options(clauses: Clauses) -> tuple[Action, ...]:
    """Read table options; commas between them are optional."""
    reader = clauses.reader
    charset: str | None = None
    while not (
        reader.is_at_end
        or reader.comes(",")
        or reader.comes("partition", "by")
        or reader.comes("remove", "partitioning")
    ):
        if found := read_charset(reader) or read_collation(reader):
            charset = found
        else:
            clauses.one_option()
    return (SetCharset(charset),) if charset else ()


def _add(clauses: Clauses) -> tuple[Action, ...]:
    reader = clauses.reader
    if clauses.is_no_column():
        return _added_element(clauses.constraint_or_key())
    reader.accept("column")
    if reader.comes("("):
        with reader.parentheses():
            elements = reader.listed(clauses.element)
        return tuple(action for each in elements for action in _added_element(each))
    spec = clauses.column()
    return (*_reference(spec), AddColumn(spec, _place(clauses)))


def _added_element(element: Element) -> tuple[Action, ...]:
    if isinstance(element, ColumnSpec):
        return (*_reference(element), AddColumn(element, None))
    if isinstance(element, KeySpec):
        return (AddKey(element),)
    return () if element is None else (element,)


def _place(clauses: Clauses) -> ColumnPlace | None:
    if clauses.reader.accept("first"):
        return ColumnPlace(None)
    return ColumnPlace(clauses.reader.name()) if clauses.reader.accept("after") else None


def _drop(clauses: Clauses) -> tuple[Action, ...]:
    reader = clauses.reader
    if reader.accept("primary", "key"):
        return (DropKey(PRIMARY),)
    if reader.accept("foreign", "key") or reader.accept("check"):
        reader.name()
        return ()
    if reader.accept("constraint"):
        return (DropConstraint(reader.name()),)
    if reader.accept_any(*KEYS):
        return (DropKey(reader.name()),)
    reader.accept("column")
    name = reader.name()
    reader.accept_any("restrict", "cascade")
    return (DropColumn(name),)


def _modify(clauses: Clauses) -> tuple[Action, ...]:
    clauses.reader.accept("column")
    spec = clauses.column()
    return (*_reference(spec), ChangeColumn(spec.name, spec, _place(clauses)))


def _change(clauses: Clauses) -> tuple[Action, ...]:
    clauses.reader.accept("column")
    name = clauses.reader.name()
    spec = clauses.column()
    return (*_reference(spec), ChangeColumn(name, spec, _place(clauses)))


def _rename(clauses: Clauses) -> tuple[Action, ...]:
    reader = clauses.reader
    if reader.accept("column"):
        return (RenameColumn(*_from_to(clauses)),)
    if reader.accept_any(*KEYS):
        return (RenameKey(*_from_to(clauses)),)
    reader.accept_any("to", "as", "=")
    return (RenameTo(reader.table_name()),)


def _from_to(clauses: Clauses) -> tuple[str, str]:
    name = clauses.reader.name()
    clauses.reader.expect("to")
    return name, clauses.reader.name()


def _alter(clauses: Clauses) -> tuple[Action, ...]:
    reader = clauses.reader
    if any(reader.comes(word) for word in ("index", "check", "constraint")):
        reader.skip_to(",")  # VISIBLE, ENFORCED and similar
        return ()
    reader.accept("column")
    name = reader.name()
    if reader.accept("set"):
        if word := reader.accept_any("visible", "invisible"):
            return (SetVisibility(name, word == "invisible"),)
        reader.expect("default")
        reader.skip_to(",")
    else:
        reader.expect("drop", "default")
    return ()


def _convert(clauses: Clauses) -> tuple[Action, ...]:
    reader = clauses.reader
    reader.expect("to")
    if reader.accept("character", "set", "default") or reader.accept("charset", "default"):
        collation = read_collation(reader)
        return (ConvertCharset(collation),)
    charset = read_charset(reader)
    if charset is None:
        raise reader.fail("expected a character set")
    read_collation(reader)
    return (ConvertCharset(charset),)


def _order(clauses: Clauses) -> tuple[Action, ...]:
    """Skip ORDER BY, which only sorts rows; a comma after it may begin another action."""
    reader = clauses.reader
    reader.expect("by")
    while not reader.is_at_end:
        reader.skip_to(",")
        if not reader.comes(",") or any(reader.comes(",", word) for word in _ORDER_ENDS):
            break
        reader.take()
    return ()


def _tablespace(clauses: Clauses) -> tuple[Action, ...]:
    """Read the rest of DISCARD TABLESPACE or IMPORT TABLESPACE."""
    return (*_nothing(clauses), ReplaceRows(None))


def _nothing(clauses: Clauses) -> tuple[Action, ...]:
    """Skip ENABLE KEYS, FORCE, ALGORITHM=…, LOCK=…, WITH VALIDATION: they change no definition."""
    clauses.reader.skip_to(",")
    return ()


def _reference(spec: ColumnSpec) -> tuple[Action, ...]:
    return (AddForeignKey((spec.name,)),) if spec.has_reference else ()


_ACTIONS: Mapping[str, Callable[[Clauses], tuple[Action, ...]]] = MappingProxyType(
    {
        "add": _add,
        "drop": _drop,
        "modify": _modify,
        "change": _change,
        "rename": _rename,
        "alter": _alter,
        "convert": _convert,
        "order": _order,
        **dict.fromkeys(
            (
                *("algorithm", "lock", "force", "enable", "disable", "with", "without"),
                *("secondary_load", "secondary_unload"),
            ),
            _nothing,
        ),
        **dict.fromkeys(("discard", "import"), _tablespace),
    }
)
