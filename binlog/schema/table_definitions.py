"""The definition of a table at one time: columns, keys, character set. Plain data.

1. Equality covers the facts that row events depend on: columns in order, primary key, unique keys,
   character set. Other keys are stored, but not compared: MySQL derives the names of new keys from
   existing names.
2. A type omits facts that only affect display: widths of integers and years, and ZEROFILL (but a
   ZEROFILL column is unsigned). So `int(11)` of 5.6 and `int` of 9.7 are the same type.
3. The names are those of current servers: utf8mb3 for utf8, geomcollection for geometrycollection.
4. A definition is read from a server's output, or made from certain facts. It is never guessed:
   text that cannot be read raises CannotFollow.
"""

from dataclasses import dataclass, field
from enum import Enum

from binlog.schema.sql_words import CannotFollow

__all__ = [
    "CannotFollow",
    "Column",
    "Generated",
    "Key",
    "KeyKind",
    "TableDefinition",
]


class Generated(Enum):
    """How a generated column gets its value (5.7.6 and later)."""

    VIRTUAL = "virtual"
    STORED = "stored"


class KeyKind(Enum):
    """Whether a key is primary, unique or neither."""

    PRIMARY = "primary"
    UNIQUE = "unique"
    PLAIN = "plain"  # also FULLTEXT and SPATIAL


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as SHOW CREATE TABLE shows it."""

    name: str
    # Lower-case, canonical: `bigint unsigned`, `decimal(10,2)`, `varchar(20)`, `enum('a','b')`.
    type_text: str
    is_unsigned: bool = False
    # For char, varchar, the texts, enum and set; None for all other types. An enum can be `binary`.
    charset: str | None = None
    # For enum and set, in the order of their numbers; empty for all other types.
    members: tuple[str, ...] = ()
    is_nullable: bool = True
    is_generated: Generated | None = None
    is_invisible: bool = False

    def __post_init__(self) -> None:
        if not self.name or not self.type_text:
            raise ValueError("a column has a name and a type")
        assert bool(self.members) == (self.base_type in ("enum", "set"))

    @property
    def base_type(self) -> str:
        """The type's first word: `varchar` of `varchar(20)`."""
        return self.type_text.partition("(")[0].partition(" ")[0]


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `columns` are the columns of its parts; a part that is an expression has none.

    `is_exact`: the key consists of whole columns only, without prefixes and expressions.
    """

    kind: KeyKind
    name: str
    columns: tuple[str, ...]
    is_exact: bool = True

    def __post_init__(self) -> None:
        assert (self.kind is KeyKind.PRIMARY) == (self.name == "PRIMARY")


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table at one time."""

    schema: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    # Sorted by name, ignoring case, so that equal tables compare equal.
    unique_keys: tuple[Key, ...] = ()
    # The default for new text columns. If it is None (unknown), each new text column must have one.
    charset: str | None = None
    plain_keys: tuple[Key, ...] = field(default=(), compare=False)
    # The columns of each foreign key. MySQL may add a plain key for it and choose its name.
    foreign_keys: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    # False if it was made from a TABLE_MAP's metadata, which contains neither generated columns nor
    # unique keys other than the primary key.
    is_complete: bool = True

    def __post_init__(self) -> None:
        folded = [column.name.casefold() for column in self.columns]
        if not folded:
            raise ValueError(f"{self.schema}.{self.table}: a table has a column")
        if len(set(folded)) != len(folded):
            raise ValueError(f"{self.schema}.{self.table}: two columns have the same name")
        keyed = [name for key in (*self.unique_keys, *self.plain_keys) for name in key.columns]
        for name in (*self.primary_key, *keyed):
            if name.casefold() not in folded:
                raise ValueError(
                    f"{self.schema}.{self.table}: a key uses an unknown column: {name}"
                )
        names = [key.name.casefold() for key in self.unique_keys]
        assert names == sorted(names)

    @property
    def column_count(self) -> int:
        """The number of columns, including invisible and generated ones."""
        return len(self.columns)

    def column(self, name: str) -> Column | None:
        """Return a column by its name, ignoring case."""
        folded = name.casefold()
        return next((each for each in self.columns if each.name.casefold() == folded), None)
