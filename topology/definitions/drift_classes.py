"""The classes of differences between the definitions of a source and a replica: one table.

1. Words are seen from the replica: `column fewer` means that the replica has a column less.
2. Each class has the errors that it leads to, whether a statement alone repairs it, and what the
   operator should do. `drift_statements.py` writes the statement.
3. An object that only the replica has is never dropped by a statement that can simply be run: such
   statements are written as comments.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from topology.definitions.schema_objects import ObjectKind


class Repairable(Enum):
    """Whether the definition can be repaired by itself."""

    BY_STATEMENT = "a statement repairs it"
    NEEDS_ROWS = "a statement repairs the definition; rows must be copied or compared as well"
    LOSES_DATA = "the statement deletes data: the operator decides"
    OPERATOR_DECIDES = "it may be intended: the operator decides"


class DriftClass(Enum):
    """The classes, in the order in which they are listed."""

    SCHEMA_FEWER = "schema fewer"
    SCHEMA_MORE = "schema more"
    SCHEMA_DIFFERENT = "schema different"
    TABLE_FEWER = "table fewer"
    TABLE_MORE = "table more"
    TABLE_RENAMED = "table renamed"
    COLUMN_FEWER = "column fewer"
    COLUMN_MORE = "column more"
    COLUMN_RENAMED = "column renamed"
    COLUMN_MOVED = "column moved"
    COLUMN_TYPE = "column type"
    COLUMN_ATTRIBUTE = "column attribute"
    CHARSET = "charset"
    INDEX_FEWER = "index fewer"
    INDEX_MORE = "index more"
    INDEX_DIFFERENT = "index different"
    CONSTRAINT_FEWER = "constraint fewer"
    CONSTRAINT_MORE = "constraint more"
    CONSTRAINT_DIFFERENT = "constraint different"
    OPTION = "table option"
    PARTITIONS = "partitions"
    OTHER_FEWER = "other fewer"  # a view, trigger, routine or event
    OTHER_MORE = "other more"
    OTHER_DIFFERENT = "other different"
    DEFINER = "definer"


@dataclass(frozen=True, slots=True)
class DriftRow:
    """What a class means: error numbers that replication or a later DDL gets, and what to do."""

    errors: tuple[int, ...]
    repairable: Repairable
    advice: str


# Rows that are copied to a replica that is behind get the waiting transactions a second time (tried
# on 9.7.4: a table without a key had them twice, and the sets agreed).
_NOTHING_WAITS: Final = (
    "while nothing waits on the replica: what waits is in the copy as well, and would be applied to"
    " it a second time (without a key, rows double). If the applier stopped at it (1146), rebuild"
    " the replica"
)
_EXTRA: Final = "find out what uses it on the replica; drop it only if nothing does"

DRIFT_CLASSES: Final[Mapping[DriftClass, DriftRow]] = MappingProxyType(
    {
        DriftClass.SCHEMA_FEWER: DriftRow(
            (1049, 1146),
            Repairable.NEEDS_ROWS,
            f"copy the schema with its rows from the source {_NOTHING_WAITS}",
        ),
        DriftClass.SCHEMA_MORE: DriftRow((1007,), Repairable.LOSES_DATA, _EXTRA),
        DriftClass.SCHEMA_DIFFERENT: DriftRow(
            (),
            Repairable.BY_STATEMENT,
            "run the statement: tables that are created later get other defaults otherwise",
        ),
        DriftClass.TABLE_FEWER: DriftRow(
            (1146,),
            Repairable.NEEDS_ROWS,
            f"create the table and copy its rows from the source {_NOTHING_WAITS}",
        ),
        DriftClass.TABLE_MORE: DriftRow((1050,), Repairable.LOSES_DATA, _EXTRA),
        DriftClass.TABLE_RENAMED: DriftRow(
            (1146, 1050),
            Repairable.NEEDS_ROWS,
            "rename the table; rows that came after the rename are missing: compare them",
        ),
        DriftClass.COLUMN_FEWER: DriftRow(
            (1054, 1091),
            Repairable.NEEDS_ROWS,
            "add the column; its values are missing on the replica: copy or compare the rows",
        ),
        DriftClass.COLUMN_MORE: DriftRow((1060, 1136), Repairable.LOSES_DATA, _EXTRA),
        DriftClass.COLUMN_RENAMED: DriftRow(
            (1054, 1060), Repairable.BY_STATEMENT, "rename the column: the values are there"
        ),
        DriftClass.COLUMN_MOVED: DriftRow(
            (1677,),
            Repairable.NEEDS_ROWS,
            "move the column; rows that came since went to other columns: compare them",
        ),
        DriftClass.COLUMN_TYPE: DriftRow(
            (1677,),
            Repairable.NEEDS_ROWS,
            "change the type; values that were converted meanwhile may differ: compare the rows",
        ),
        DriftClass.COLUMN_ATTRIBUTE: DriftRow(
            (), Repairable.BY_STATEMENT, "run the statement; it may rebuild the table"
        ),
        DriftClass.CHARSET: DriftRow(
            (1677, 1267),
            Repairable.NEEDS_ROWS,
            "change the character set; it rebuilds the table, and values may have been converted:"
            " compare the rows",
        ),
        DriftClass.INDEX_FEWER: DriftRow(
            (1091,),
            Repairable.BY_STATEMENT,
            "add the index: without it the applier may scan tables",
        ),
        DriftClass.INDEX_MORE: DriftRow(
            (1061, 1062),
            Repairable.OPERATOR_DECIDES,
            "an index for reports may be intended; a unique index can stop the applier (1062)",
        ),
        DriftClass.INDEX_DIFFERENT: DriftRow((1062,), Repairable.BY_STATEMENT, "replace the index"),
        DriftClass.CONSTRAINT_FEWER: DriftRow(
            (), Repairable.BY_STATEMENT, "add the constraint; it checks all rows"
        ),
        DriftClass.CONSTRAINT_MORE: DriftRow(
            (),
            Repairable.OPERATOR_DECIDES,
            "find out why it was added: rows that violate it stop the applier"
            " (1452; a check: 3819)",
        ),
        DriftClass.CONSTRAINT_DIFFERENT: DriftRow(
            (), Repairable.BY_STATEMENT, "replace the constraint; it checks all rows"
        ),
        DriftClass.OPTION: DriftRow(
            (), Repairable.OPERATOR_DECIDES, "another engine on a replica may be intended"
        ),
        DriftClass.PARTITIONS: DriftRow(
            (1507, 1517, 1526),
            Repairable.OPERATOR_DECIDES,
            "compare the partitions: rows outside all of them stop the applier (1526)",
        ),
        DriftClass.OTHER_FEWER: DriftRow((), Repairable.BY_STATEMENT, "create it from the source"),
        DriftClass.OTHER_MORE: DriftRow((), Repairable.OPERATOR_DECIDES, _EXTRA),
        DriftClass.OTHER_DIFFERENT: DriftRow((), Repairable.BY_STATEMENT, "create it again"),
        DriftClass.DEFINER: DriftRow(
            (1449,),
            Repairable.BY_STATEMENT,
            "create it again with the source's definer, which must exist on the replica",
        ),
    }
)

# Of views, routines, triggers and events: if the replica does not have it, and if only it has it.
_OF_KIND: Final[Mapping[ObjectKind, tuple[int, int]]] = MappingProxyType(
    {
        ObjectKind.VIEW: (1146, 1050),
        ObjectKind.PROCEDURE: (1305, 1304),
        ObjectKind.FUNCTION: (1305, 1304),
        ObjectKind.TRIGGER: (1360, 1359),
        ObjectKind.EVENT: (1539, 1537),
    }
)

# Of constraints: if it is a foreign key, and if it is a check.
_OF_CONSTRAINT: Final[Mapping[DriftClass, tuple[tuple[int, ...], tuple[int, ...]]]] = (
    MappingProxyType(
        {
            DriftClass.CONSTRAINT_FEWER: ((1091,), (3821,)),
            DriftClass.CONSTRAINT_MORE: ((1452, 1826), (3819, 3822)),
            DriftClass.CONSTRAINT_DIFFERENT: ((1452,), (3819,)),
        }
    )
)


def words_of(drift_class: DriftClass, kind: ObjectKind) -> str:
    """Return a class in words: `procedure fewer` for a procedure that the replica does not have."""
    return drift_class.value.replace("other", kind.value)


def errors_of_constraint(drift_class: DriftClass, *, is_check: bool) -> tuple[int, ...]:
    """Return the error numbers that a constraint leads to; none for another class."""
    return _OF_CONSTRAINT.get(drift_class, ((), ()))[is_check]


def errors_of_classes(classes: Iterable[DriftClass], kind: ObjectKind) -> frozenset[int]:
    """Return the error numbers that classes of an object lead to, except those of constraints."""
    found: set[int] = set()
    for each in classes:
        found |= set(DRIFT_CLASSES[each].errors)
        if each is DriftClass.OTHER_FEWER:
            found.add(_OF_KIND[kind][0])
        elif each is DriftClass.OTHER_MORE:
            found.add(_OF_KIND[kind][1])
    return frozenset(found)
