"""Which differences of definitions are repaired, by class: the scenario table of `reconcile`.

1. AUTOMATIC: no row is lost or changed, and later transactions are applied as before. The statement
   runs without an operator if the policy permits it.
2. SELECTED: a statement does it, and the operator must know something that no server can answer:
   whether the difference is intended, or whether rows must be compared.
3. BY_HAND: rows are missing or may be in the wrong columns, or objects act by themselves. No script
   is written. `gtid-audit schema drift` prints the SQL.
4. A class is the best case. definition_changes.py has the conditions under which one object is in a
   worse one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from topology.definitions.drift_classes import DriftClass


class Handling(Enum):
    """Who repairs a difference."""

    AUTOMATIC = "yes"
    SELECTED = "if selected"
    BY_HAND = "no"


@dataclass(frozen=True, slots=True)
class Scenario:
    """One row of the table: what differs, who repairs it, by which DDL, and what the user does."""

    code: str
    handling: Handling
    statement: str  # in words; "" if no script is written
    user: str


_SELECT: Final = "`--strategy S2=repair_definition`"
_COPY: Final = "copy it with its rows from the source while nothing waits, or rebuild the replica"
_DROP: Final = "find out what uses it; drop it by hand if nothing does"
_AS_DRIFT: Final = "run the SQL of `schema drift`"

SCENARIOS: Final[Mapping[DriftClass, Scenario]] = MappingProxyType(
    {
        DriftClass.COLUMN_FEWER: Scenario(
            "D1",
            Handling.AUTOMATIC,
            "ADD COLUMN at the end, if no row of the source has a value in it",
            f"if rows have values: {_SELECT}, then compare the rows",
        ),
        DriftClass.COLUMN_MORE: Scenario("D2", Handling.BY_HAND, "", _DROP),
        DriftClass.COLUMN_ATTRIBUTE: Scenario(
            "D3",
            Handling.AUTOMATIC,
            "MODIFY COLUMN, if only the default or the comment differs",
            f"another attribute: {_AS_DRIFT}",
        ),
        DriftClass.COLUMN_TYPE: Scenario(
            "D4",
            Handling.SELECTED,
            "MODIFY COLUMN, if every value of the replica fits the type",
            f"{_SELECT}, then compare the rows; a type with fewer values: by hand",
        ),
        DriftClass.COLUMN_RENAMED: Scenario(
            "D5",
            Handling.SELECTED,
            "CHANGE COLUMN",
            f"make sure that it is the same column, not another one: {_SELECT}",
        ),
        DriftClass.COLUMN_MOVED: Scenario(
            "D6", Handling.BY_HAND, "", "compare the rows: values went to other columns"
        ),
        DriftClass.TABLE_FEWER: Scenario("D7", Handling.BY_HAND, "", _COPY),
        DriftClass.TABLE_MORE: Scenario("D8", Handling.BY_HAND, "", _DROP),
        DriftClass.TABLE_RENAMED: Scenario(
            "D9", Handling.BY_HAND, "", "rename it by hand, then compare the rows"
        ),
        DriftClass.INDEX_FEWER: Scenario(
            "D10", Handling.AUTOMATIC, "ADD INDEX, not FULLTEXT or SPATIAL", "nothing"
        ),
        DriftClass.INDEX_MORE: Scenario(
            "D11", Handling.SELECTED, "DROP INDEX", f"keep it if reports use it; else {_SELECT}"
        ),
        DriftClass.INDEX_DIFFERENT: Scenario(
            "D12",
            Handling.SELECTED,
            "DROP INDEX and ADD INDEX in one statement",
            f"keep it if reports use it; else {_SELECT}",
        ),
        DriftClass.CHARSET: Scenario(
            "D13",
            Handling.AUTOMATIC,
            "DEFAULT COLLATE, if it is the default of the table",
            "a column: compare its values, then change it by hand",
        ),
        DriftClass.CONSTRAINT_FEWER: Scenario(
            "D14", Handling.BY_HAND, "", "add it by hand: the server checks all rows"
        ),
        DriftClass.CONSTRAINT_MORE: Scenario("D15", Handling.BY_HAND, "", _DROP),
        DriftClass.CONSTRAINT_DIFFERENT: Scenario(
            "D16", Handling.BY_HAND, "", "replace it by hand: the server checks all rows"
        ),
        DriftClass.OPTION: Scenario("D17", Handling.BY_HAND, "", "it may be intended: decide"),
        DriftClass.PARTITIONS: Scenario("D18", Handling.BY_HAND, "", "it may be intended: decide"),
        DriftClass.OTHER_FEWER: Scenario(
            "D19",
            Handling.AUTOMATIC,
            "CREATE VIEW, if it is a view",
            f"a trigger, a routine or an event: {_AS_DRIFT}",
        ),
        DriftClass.OTHER_MORE: Scenario("D20", Handling.BY_HAND, "", _DROP),
        DriftClass.OTHER_DIFFERENT: Scenario("D21", Handling.BY_HAND, "", _AS_DRIFT),
        DriftClass.DEFINER: Scenario(
            "D22", Handling.BY_HAND, "", f"the account must exist on the replica; {_AS_DRIFT}"
        ),
        DriftClass.SCHEMA_FEWER: Scenario("D23", Handling.BY_HAND, "", _COPY),
        DriftClass.SCHEMA_MORE: Scenario("D24", Handling.BY_HAND, "", _DROP),
        DriftClass.SCHEMA_DIFFERENT: Scenario("D25", Handling.BY_HAND, "", _AS_DRIFT),
    }
)
assert SCENARIOS.keys() == {*DriftClass}, "every class has its row"
