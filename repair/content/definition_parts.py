"""Parts of a definition that a script compares: SQL that any server answers with a short text.

1. A part is what one statement changes: all columns of a table, one index, the default collation of
   a table, a view. The plan reads each part on both servers; the script compares it again.
2. The answer is a digest of rows of information_schema. Two servers of one release series answer
   alike if the part is defined alike. Between series only indexes are comparable: column types and
   collations are printed in other words.
3. The rows of a part are combined with BIT_XOR of 64 bits of SHA2, not with GROUP_CONCAT, which is
   cut at group_concat_max_len. Each row contains its position, so that no two rows are equal. 9.7
   has no MD5 and no SHA1 function.
4. NULL values are written as `-`, which HEX never returns.
5. Nothing here reads statistics: information_schema_stats_expiry does not matter.
6. The default of a TIMESTAMP is not compared: its text depends on a session's zone
   (topology/adapters/definition_statements.py), and no statement of a plan changes it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from binlog.quoting import quote_string
from gtid import GtidSet
from topology.definitions.canonical import ClauseKind
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.schema_objects import ObjectKey, ObjectKind
from topology.readings.version import ServerVersion

_GENERATED: Final = ServerVersion(5, 7, 6)
_VISIBLE: Final = ServerVersion(8, 0, 0)
_EXPRESSIONS: Final = ServerVersion(8, 0, 13)
_DEFAULT: Final = (
    "IF(DATA_TYPE = 'timestamp' AND COLUMN_DEFAULT LIKE '____-__-__ %', '', COLUMN_DEFAULT)"
)
_COLUMN: Final = (
    *("ORDINAL_POSITION", "COLUMN_NAME", "COLUMN_TYPE", "IS_NULLABLE", _DEFAULT),
    *("COLLATION_NAME", "EXTRA", "COLUMN_COMMENT"),
)
_INDEX: Final = (
    *("SEQ_IN_INDEX", "NON_UNIQUE", "COLUMN_NAME", "COLLATION", "SUB_PART", "INDEX_TYPE"),
    "INDEX_COMMENT",
)
_VIEW: Final = (
    *("VIEW_DEFINITION", "CHECK_OPTION", "SECURITY_TYPE", "DEFINER"),
    *("CHARACTER_SET_CLIENT", "COLLATION_CONNECTION"),
)


@dataclass(frozen=True, slots=True)
class DefinitionPart:
    """One part of an object: as the plan read it on the replica, and as the source has it."""

    name: str
    question: str  # an SQL expression
    seen: str | None
    goal: str | None


@dataclass(frozen=True, slots=True)
class DifferingDefinition:
    """One object that differs, and what both servers answered about its parts."""

    drift: ObjectDrift
    # By question: the answers of source and replica.
    answers: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    data_bytes: int | None = None  # of the table on the replica, with its indexes
    # Whether a row of the source has another value than the default in an added column. None: not
    # read. The rows contain everything of `rows_at`.
    has_values: bool | None = None
    rows_at: GtidSet = field(default_factory=GtidSet)
    unread: str = ""  # why it is not known enough


@dataclass(frozen=True, slots=True)
class DefinitionsRead:
    """The definitions behind one finding S2."""

    objects: tuple[DifferingDefinition, ...]
    has_channel: bool
    is_mutual: bool  # each of the two servers is a source of the other
    other_sources: tuple[str, ...]  # of the replica
    refuses_writes: bool  # super_read_only is ON on the replica


def columns_of(key: ObjectKey, version: ServerVersion) -> str:
    """Return the question about all columns of a table, with their order."""
    columns = _COLUMN + (("GENERATION_EXPRESSION",) if version >= _GENERATED else ())
    columns += ("SRS_ID",) if version >= _VISIBLE else ()
    return _of_rows("columns", columns, _table(key))


def index_of(key: ObjectKey, name: str, version: ServerVersion) -> str:
    """Return the question about one index. `version` is the older one of the two servers."""
    columns = _INDEX + (("IS_VISIBLE",) if version >= _VISIBLE else ())
    columns += ("EXPRESSION",) if version >= _EXPRESSIONS else ()
    return _of_rows("statistics", columns, f"{_table(key)} AND index_name = {quote_string(name)}")


def collation_of(key: ObjectKey) -> str:
    """Return the question about the default collation of a table."""
    return f"(SELECT table_collation FROM information_schema.tables WHERE {_table(key)})"  # noqa: S608


def view_of(key: ObjectKey) -> str:
    """Return the question about a view."""
    return _of_rows("views", _VIEW, _table(key))


def bytes_of(key: ObjectKey) -> str:
    """Return the question about the size of a table. A statistic, which may be a day old."""
    return (
        "(SELECT data_length + index_length FROM information_schema.tables"  # noqa: S608 - quoted
        f" WHERE {_table(key)})"
    )


def _table(key: ObjectKey) -> str:
    return f"table_schema = {quote_string(key.schema)} AND table_name = {quote_string(key.name)}"


def _of_rows(view: str, columns: Iterable[str], where: str) -> str:
    """Return the number of rows and a digest of them; `0:0` without rows."""
    text = ", ".join(f"IFNULL(HEX({each}), '-')" for each in columns)
    number = f"CONV(LEFT(SHA2(CONCAT_WS('|', {text}), 256), 16), 16, 10)"
    return (
        f"(SELECT CONCAT(COUNT(*), ':', BIT_XOR(CAST({number} AS UNSIGNED)))"  # noqa: S608 - quoted
        f" FROM information_schema.{view} WHERE {where})"
    )


def questions_of(drift: ObjectDrift, older: ServerVersion) -> tuple[str, ...]:
    """Return the questions about the parts of an object that differ."""
    key = drift.key
    if key.kind is ObjectKind.VIEW:
        return (view_of(key),)
    if key.kind is not ObjectKind.TABLE:
        return ()
    found = [columns_of(key, older), collation_of(key)]
    for change in drift.changes:
        clause = change.source or change.replica
        if clause is not None and clause.kind is ClauseKind.KEY:
            found.append(index_of(key, change.name, older))
    return tuple(found)
