"""What a table looks like: columns, keys, character set. Plain facts about one moment.

1. Equality is about what row events depend on: columns in their order, primary key, unique keys,
   character set. Names of other keys ride along, because MySQL names keys after each other.
2. What only concerns display is left out of a type: widths of integers and years, ZEROFILL (it
   makes a column unsigned, and that is kept). So `int(11)` of 5.6 and `int` of 9.7 are one type.
3. utf8 is called utf8mb3 and geometrycollection geomcollection, as servers of today call them.
4. A definition is read from what a server says, or made of what is certain. It is never guessed:
   what cannot be read raises CannotFollow.
"""

from dataclasses import dataclass, field
from enum import Enum

from binlog.schema.words import ANSI_QUOTES, CannotFollow

__all__ = [
    "CannotFollow",
    "Column",
    "Generated",
    "Key",
    "KeyKind",
    "TableDefinition",
    "definition_from_create",
]


class Generated(Enum):
    """How a generated column gets its value (5.7.6 and later)."""

    VIRTUAL = "virtual"
    STORED = "stored"


class KeyKind(Enum):
    """What a key promises."""

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
    # Of char, varchar, the texts, enum and set; None for every other type. An enum can be `binary`.
    charset: str | None = None
    # Of enum and set, in the order that gives their numbers; empty for every other type.
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
    """One key. `columns` are those it names; a part made of an expression has none.

    `is_exact` says that the key is made of whole columns only: no prefix, no expression.
    """

    kind: KeyKind
    name: str
    columns: tuple[str, ...]
    is_exact: bool = True

    def __post_init__(self) -> None:
        assert (self.kind is KeyKind.PRIMARY) == (self.name == "PRIMARY")


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table at one moment."""

    schema: str
    table: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    # Sorted by name, case folded, so that equal tables are equal.
    unique_keys: tuple[Key, ...] = ()
    # What new text columns get. None if nobody said, and then no text column may be added unsaid.
    charset: str | None = None
    plain_keys: tuple[Key, ...] = field(default=(), compare=False)
    # Columns of each foreign key: it may bring a plain key of its own, whose name MySQL chooses.
    foreign_keys: tuple[tuple[str, ...], ...] = field(default=(), compare=False)
    # False if made of a TABLE_MAP's metadata, which does not know generated columns, nor other
    # unique keys than the primary one.
    is_complete: bool = True

    def __post_init__(self) -> None:
        folded = [column.name.casefold() for column in self.columns]
        if not folded:
            raise ValueError(f"{self.schema}.{self.table}: a table has a column")
        if len(set(folded)) != len(folded):
            raise ValueError(f"{self.schema}.{self.table}: two columns have one name")
        keyed = [name for key in (*self.unique_keys, *self.plain_keys) for name in key.columns]
        for name in (*self.primary_key, *keyed):
            if name.casefold() not in folded:
                raise ValueError(f"{self.schema}.{self.table}: a key of no column: {name}")
        names = [key.name.casefold() for key in self.unique_keys]
        assert names == sorted(names)

    @property
    def column_count(self) -> int:
        """How many columns, invisible and generated ones included."""
        return len(self.columns)

    def column(self, name: str) -> Column | None:
        """Return a column by its name, in any letter case."""
        folded = name.casefold()
        return next((each for each in self.columns if each.name.casefold() == folded), None)


def definition_from_create(sql: str, *, schema: str, sql_mode: int = 0) -> TableDefinition:
    """Read the text of SHOW CREATE TABLE of any server from 5.6 on.

    `sql_mode` is that of the session that asked, if it holds ANSI_QUOTES. Backslashes are escaped
    whatever the mode (append_unescaped, sql/sql_show.cc). Raises CannotFollow, for a view too.
    """
    from binlog.schema.apply import definition_of
    from binlog.schema.changes import CreateTable
    from binlog.schema.grammar import read_statement

    change = read_statement(sql, sql_mode=sql_mode & ANSI_QUOTES)
    if not isinstance(change, CreateTable):
        raise CannotFollow(why="not the text of SHOW CREATE TABLE")
    return definition_of(change, schema=schema, database_charset=None)
