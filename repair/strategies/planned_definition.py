"""The two servers of a difference, and a statement for it: what all classes share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from binlog.quoting import quote_identifier
from gtid import GtidSet
from repair.content.definition_parts import DefinitionPart, DifferingDefinition
from repair.model.actions import ChangeDefinition
from repair.strategies.definition_scenarios import Handling
from topology.definitions.compared_clauses import ClauseChange
from topology.definitions.drift_statements import qualified
from topology.definitions.object_drift import ObjectDrift
from topology.definitions.schema_objects import ObjectKind
from topology.readings.version import ServerVersion

# A table whose size allows a statement that reads or writes all of it.
DATA_BYTES_MAX: Final = 1 << 30
UNCLEAR: Final = "the servers answer alike about it, or did not answer: the goal cannot be checked"


@dataclass(frozen=True, slots=True)
class Ends:
    """The two servers of a difference, as far as statements depend on them."""

    source: str
    replica: str
    source_version: ServerVersion
    version: ServerVersion  # of the replica
    has_one_source: bool
    has_below: bool  # servers receive from the replica
    logs_rows: bool  # the source logs rows, not statements
    executed: GtidSet  # by the replica when it was read

    @property
    def older(self) -> ServerVersion:
        """Return the older version of the two."""
        return min(self.source_version, self.version)

    @property
    def print_alike(self) -> bool:
        """Return whether both servers print column types and collations in the same words."""
        ours, theirs = self.source_version, self.version
        return (ours.major, ours.minor) == (theirs.major, theirs.minor)


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """One statement, or the reason why there is none."""

    label: str  # the object, and what differs
    handling: Handling
    action: ChangeDefinition | None = None
    why: str = ""  # why it is not automatic
    warning: str = ""  # what the operator must know if it is selected

    @property
    def is_of_table(self) -> bool:
        """Return whether it is about a table."""
        return self.label.startswith(f"{ObjectKind.TABLE.value} ")


def action_of(
    each: DifferingDefinition,
    ends: Ends,
    changes: Iterable[ClauseChange],
    clauses: str,
    part: tuple[str, str],
    *,
    undo: str,
) -> ChangeDefinition | None:
    """Return the action; None if the answers of the two servers do not show the difference."""
    question, name = part
    goal, seen = each.answers.get(question, (None, None))
    if goal is None or seen is None or goal == seen:
        return None
    return ChangeDefinition(
        server=ends.replica,
        source=ends.source,
        schema=each.drift.key.schema,
        name=each.drift.key.name,
        title=f"change {label_of(each.drift, *changes)}",
        statement=f"ALTER TABLE {qualified(each.drift.key)} {clauses}",
        parts=(DefinitionPart(name, question, seen, goal),),
        undo=undo,
        data_bytes=each.data_bytes or 0,
    )


def too_large(each: DifferingDefinition) -> str:
    """Return why no statement may read or write all of a table; "" if one may."""
    if each.data_bytes is None:
        return "its size was not read"
    if each.data_bytes > DATA_BYTES_MAX:
        return f"the table has {each.data_bytes >> 20:,} MiB: plan the time and the space by hand"
    return ""


def has_one_default(drift: ObjectDrift) -> bool:
    """Return whether a clause without a character set means the same on both servers."""
    assert drift.source is not None, "both servers have the table"
    assert drift.replica is not None, "both servers have the table"
    return drift.source.collation == drift.replica.collation


def by_hand(drift: ObjectDrift, why: str, *changes: ClauseChange) -> DefinitionChange:
    """Return that no statement is planned, with the reason."""
    return DefinitionChange(label_of(drift, *changes), Handling.BY_HAND, why=why)


def label_of(drift: ObjectDrift, *changes: ClauseChange) -> str:
    """Return an object with what differs: `table app.t (index fewer `k`)`."""
    if not changes:
        return f"{drift.key.label} ({', '.join(drift.class_words)})"
    what = ", ".join(
        each.drift_class.value + (f" {quote_identifier(each.name)}" if each.name else "")
        for each in changes
    )
    return f"{drift.key.label} ({what})"
