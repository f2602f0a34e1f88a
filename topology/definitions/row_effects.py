"""What row events of the source do on a replica whose table differs.

An applier assigns the values of a row by position, never by name (reference manual, "Replication
with Differing Table Definitions on Source and Replica"):

1. More columns at the end of either table are permitted. A replica with more uses their defaults;
   one with fewer loses the values, without an error (seen on 9.7.4).
2. At each common position the types must be equal, or replica_type_conversions must permit the
   conversion. Otherwise the applier stops with 1677.
3. Types that fit while the columns at that position are not the same: the values go to another
   column, without an error.
4. A constraint that only the replica has, or has in another form, stops the applier at the first
   row that violates it: the source accepts such rows (3819, 1452; seen on 9.7.4).

The conversions are those of `can_convert_field_to`, sql/rpl_utility.cc; 42 pairs of types were
tried on 9.7.4 and 5.6.24, with each setting of replica_type_conversions. What this module cannot
read is UNKNOWN, never harmless.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlog.schema.charset_names import CHARACTER_BYTES_MAX
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import CannotFollow, Column
from topology.definitions.canonical import CanonicalDefinition, ClauseKind

LOSSY: Final = "ALL_LOSSY"
NON_LOSSY: Final = "ALL_NON_LOSSY"

_INTEGER_BYTES: Final = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_APPROXIMATE: Final = {"float": 4, "double": 8}
_BLOB_BYTES: Final = {
    "tinytext": 2**8 - 1,
    "text": 2**16 - 1,
    "mediumtext": 2**24 - 1,
    "longtext": 2**32 - 1,
    "tinyblob": 2**8 - 1,
    "blob": 2**16 - 1,
    "mediumblob": 2**24 - 1,
    "longblob": 2**32 - 1,
}
_STRINGS: Final = frozenset({"char", "varchar", "binary", "varbinary", *_BLOB_BYTES})
_FRACTIONAL: Final = frozenset({"time", "datetime", "timestamp"})
_NUMBERS: Final = re.compile(r"\((\d+)(?:,(\d+))?\)")
_SMALL_ENUM_MAX: Final = 255


class RowEffect(Enum):
    """What happens to the source's row events on the replica."""

    APPLIED = "applied"
    CONVERTED = "converted"  # replica_type_conversions permits it
    STOPS = "the applier stops"
    WRONG_COLUMN = "values go to another column"
    WRONG_VALUE = "values change without an error"
    LOST = "values are lost without an error"
    MAY_STOP = "rows that violate a constraint of the replica stop the applier"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RowConsequence:
    """The most severe effect, the error number if the applier stops, and why."""

    effect: RowEffect
    errno: int | None = None
    why: str = ""

    @property
    def is_severe(self) -> bool:
        """Return whether rows stop the applier, or get wrong without an error."""
        return self.effect in _SEVERE


APPLIED: Final = RowConsequence(RowEffect.APPLIED)
CANNOT_CONVERT: Final = 1677  # ER_REPLICA_CONVERSION_FAILED
NO_SUCH_TABLE: Final = 1146  # ER_NO_SUCH_TABLE
_ORDER: Final = (
    RowEffect.STOPS,
    RowEffect.WRONG_COLUMN,
    RowEffect.WRONG_VALUE,
    RowEffect.LOST,
    RowEffect.MAY_STOP,
    RowEffect.UNKNOWN,
    RowEffect.CONVERTED,
    RowEffect.APPLIED,
)
_SEVERE: Final = frozenset(_ORDER[: _ORDER.index(RowEffect.UNKNOWN)])
_FOREIGN_KEY_FAILS: Final = 1452  # ER_NO_REFERENCED_ROW_2
_CHECK_FAILS: Final = 3819  # ER_CHECK_CONSTRAINT_VIOLATED


class _Conversion(Enum):
    EQUAL = "equal"
    NON_LOSSY = "non-lossy"
    LOSSY = "lossy"
    NONE = "none"


def consequence_of(
    source: CanonicalDefinition,
    replica: CanonicalDefinition,
    *,
    schema: str,
    conversions: str | None,
) -> RowConsequence:
    """Return what rows of the source's table do on the replica's.

    `conversions` is the replica's replica_type_conversions; None if it was not read.
    """
    try:
        ours = definition_from_create(source.create, schema=schema).columns
        theirs = definition_from_create(replica.create, schema=schema).columns
    except CannotFollow as problem:
        return RowConsequence(RowEffect.UNKNOWN, why=f"a definition cannot be read: {problem}")
    effects = (*_effects(ours, theirs, conversions), *_constraints(source, replica))
    return min(effects, key=lambda each: _ORDER.index(each.effect), default=APPLIED)


def _effects(
    ours: tuple[Column, ...], theirs: tuple[Column, ...], conversions: str | None
) -> Iterator[RowConsequence]:
    own_names = {each.name.casefold() for each in ours}
    their_names = {each.name.casefold() for each in theirs}
    for number, (source, replica) in enumerate(zip(ours, theirs, strict=False), 1):
        yield _typed(source, replica, conversions)
        if source.name.casefold() == replica.name.casefold():
            continue
        # Renamed: neither name is another column of the other table.
        is_renamed = source.name.casefold() not in their_names
        is_renamed &= replica.name.casefold() not in own_names
        if not is_renamed:
            yield RowConsequence(
                RowEffect.WRONG_COLUMN,
                why=f"column {number} is `{source.name}` on the source and `{replica.name}` here",
            )

    lost = [f"`{each.name}`" for each in ours[len(theirs) :] if each.is_generated is None]
    if lost:
        yield RowConsequence(RowEffect.LOST, why=f"the replica has no column {', '.join(lost)}")


def _constraints(
    source: CanonicalDefinition, replica: CanonicalDefinition
) -> Iterator[RowConsequence]:
    """Yield what constraints do that the source does not have, or has in another form."""
    own = {each.name.casefold(): each.text for each in source.of(ClauseKind.CHECK)}
    for each in replica.of(ClauseKind.CHECK):
        same = own.get(each.name.casefold())
        if each.text == same or " NOT ENFORCED" in each.text:
            continue
        which = "only on the replica" if same is None else "another one on the source"
        yield RowConsequence(
            RowEffect.MAY_STOP, _CHECK_FAILS, f"the check `{each.name}` is {which}"
        )
    names = {each.name.casefold() for each in source.of(ClauseKind.FOREIGN_KEY)}
    for each in replica.of(ClauseKind.FOREIGN_KEY):
        if each.name.casefold() not in names:
            why = f"the foreign key `{each.name}` is only on the replica"
            yield RowConsequence(RowEffect.MAY_STOP, _FOREIGN_KEY_FAILS, why)


def _typed(source: Column, replica: Column, conversions: str | None) -> RowConsequence:
    conversion = conversion_of(source, replica)
    named = f"`{source.name}` {source.type_text} → `{replica.name}` {replica.type_text}"
    if conversion is _Conversion.EQUAL:
        return _same_bytes(source, replica, named)
    if conversion is _Conversion.NONE:
        return RowConsequence(RowEffect.STOPS, CANNOT_CONVERT, named)
    if conversions is None:
        return RowConsequence(
            RowEffect.UNKNOWN, why=f"{named}: replica_type_conversions was not read"
        )
    needed = NON_LOSSY if conversion is _Conversion.NON_LOSSY else LOSSY
    if needed in conversions.upper().split(","):
        return RowConsequence(RowEffect.CONVERTED, why=f"{named}: {needed} permits it")
    return RowConsequence(
        RowEffect.STOPS, CANNOT_CONVERT, f"{named}: replica_type_conversions has no {needed}"
    )


def _same_bytes(source: Column, replica: Column, named: str) -> RowConsequence:
    """Return what equal types do whose values may still mean something else."""
    if source.is_unsigned != replica.is_unsigned:
        return RowConsequence(RowEffect.WRONG_VALUE, why=named)
    if source.members != replica.members[: len(source.members)]:  # rows contain their numbers
        return RowConsequence(RowEffect.WRONG_VALUE, why=named)
    if source.charset != replica.charset:
        return RowConsequence(
            RowEffect.WRONG_VALUE,
            why=f"`{source.name}` is {source.charset or 'binary'} on the source and"
            f" {replica.charset or 'binary'} here",
        )
    if source.is_nullable and not replica.is_nullable:
        return RowConsequence(
            RowEffect.WRONG_VALUE,
            why=f"`{replica.name}` is NOT NULL here: NULL becomes its default",
        )
    return APPLIED


def conversion_of(source: Column, replica: Column) -> _Conversion:
    """Return the conversion that an applier needs for values of a column."""
    ours, theirs = source.base_type, replica.base_type
    if ours in _INTEGER_BYTES:
        if theirs not in _INTEGER_BYTES:
            return _Conversion.NONE
        return _ordered(_INTEGER_BYTES[ours], _INTEGER_BYTES[theirs])
    if ours in _STRINGS and theirs in _STRINGS:
        if ours == theirs and ours in _BLOB_BYTES:
            return _Conversion.EQUAL
        return _strings(source, replica)
    if ours in _APPROXIMATE or ours == "decimal":
        return _numbers(source, replica)
    if ours != theirs:
        return _Conversion.NONE
    if ours in _FRACTIONAL:
        # Any other number of fractional digits stops the applier, whatever is permitted: 1677, or
        # 1105 and 1610, because the values have other lengths (seen on 9.7.4).
        same = _first_number(source) == _first_number(replica)
        return _Conversion.EQUAL if same else _Conversion.NONE
    if ours == "bit":
        return _ordered(_first_number(source), _first_number(replica))
    if ours in ("enum", "set"):
        return _ordered(_member_bytes(source), _member_bytes(replica))
    return _Conversion.EQUAL


def _strings(source: Column, replica: Column) -> _Conversion:
    """Compare text and binary types: by bytes; a change of the kind is a conversion, too."""
    order = _ordered(_bytes_max(source), _bytes_max(replica))
    same = _family(source) == _family(replica)
    return _Conversion.NON_LOSSY if order is _Conversion.EQUAL and not same else order


def _family(column: Column) -> str:
    """Return the type in a TABLE_MAP: text and binary types of one form are the same there."""
    base = column.base_type
    if base in _BLOB_BYTES:
        return base.replace("text", "blob")
    return {"binary": "char", "varbinary": "varchar"}.get(base, base)


def _numbers(source: Column, replica: Column) -> _Conversion:
    ours, theirs = source.base_type, replica.base_type
    if ours == theirs == "decimal":
        (digits, scale), (their_digits, their_scale) = _decimal(source), _decimal(replica)
        if (digits, scale) == (their_digits, their_scale):
            return _Conversion.EQUAL
        fits = their_scale >= scale and their_digits - their_scale >= digits - scale
        return _Conversion.NON_LOSSY if fits else _Conversion.LOSSY
    if ours in _APPROXIMATE and theirs in _APPROXIMATE:
        return _ordered(_APPROXIMATE[ours], _APPROXIMATE[theirs])
    if "decimal" in (ours, theirs) and {ours, theirs} & _APPROXIMATE.keys():
        return _Conversion.LOSSY
    return _Conversion.NONE


def _ordered(ours: int, theirs: int) -> _Conversion:
    if ours == theirs:
        return _Conversion.EQUAL
    return _Conversion.NON_LOSSY if ours < theirs else _Conversion.LOSSY


def _bytes_max(column: Column) -> int:
    if column.base_type in _BLOB_BYTES:
        return _BLOB_BYTES[column.base_type]
    per_character = CHARACTER_BYTES_MAX.get(column.charset or "", 1) if column.charset else 1
    return _first_number(column, default=1) * per_character


def _first_number(column: Column, *, default: int = 0) -> int:
    found = _NUMBERS.search(column.type_text)
    return int(found[1]) if found else default


def _decimal(column: Column) -> tuple[int, int]:
    found = _NUMBERS.search(column.type_text)
    return (int(found[1]), int(found[2] or 0)) if found else (10, 0)


def _member_bytes(column: Column) -> int:
    count = len(column.members)
    if column.base_type == "enum":
        return 1 if count <= _SMALL_ENUM_MAX else 2
    size = (count + 7) // 8
    return size if size <= 4 else 8  # noqa: PLR2004 - get_set_pack_length, sql/field.h
