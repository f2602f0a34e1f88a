r"""The text of SHOW CREATE in one form for all versions, in clauses that can be compared.

1. The form leaves out what versions print differently, and what is no definition:

       display widths            int(11)           int
       names of utf8mb3          utf8              utf8mb3
       collations                CHARACTER SET x   COLLATE y on every text column, always
       version comments          /*!50100 … */     …
       introducers               _utf8mb4'x'       'x'
       AUTO_INCREMENT=7 ROW_FORMAT=… STATS_…=… of a table: counters, server defaults, statistics
       DISABLE, … ON REPLICA     of an event       ENABLE: an applier disables either

2. A column without COLLATE has the collation of its table, if it has no CHARACTER SET either.
   Otherwise it has the default of that character set, which depends on the version (utf8mb4: 5.7
   and 8.0). So the defaults of the server are an input.
3. `raw` is the clause as the server printed it, and `create` all of it. SQL is written from these:
   it is valid on a server of that version. A collation is added where the server left it out and
   another version has another default: `DEFAULT CHARSET=utf8mb4` of 5.7 is another one in 8.0.

How it works: SHOW CREATE TABLE separates clauses by `,\n  ` outside quotes, and ends them with
`\n)`. One regular expression finds these and skips quoted texts (store_create_info,
sql/sql_show.cc; tried on 5.6.24 and 9.7.4).
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from binlog.quoting import quote_identifier
from topology.definitions.schema_objects import ObjectKind

QUOTED: Final = r"'(?:[^'\\]|''|\\.)*'|`(?:[^`]|``)*`"
_PARTS: Final = re.compile(rf"({QUOTED})", re.DOTALL)
_SEPARATOR: Final = re.compile(rf"{QUOTED}|(?P<next>,\n  )|(?P<end>\n\))", re.DOTALL)
_NEXT: Final = ",\n  "
_NAME: Final = re.compile(r"`((?:[^`]|``)*)`")
_TEXT_TYPE: Final = re.compile(
    r"\s*(?:(?:tiny|medium|long)?text|(?:var)?char|enum|set)\b", re.IGNORECASE
)
_CHARSET: Final = re.compile(r" CHARACTER SET (\w+)", re.IGNORECASE)
_COLLATE: Final = re.compile(r" COLLATE (\w+)", re.IGNORECASE)
_TABLE_CHARSET: Final = re.compile(r" DEFAULT CHARSET=(\w+)", re.IGNORECASE)
# Only utf8mb4 has another default by version: utf8mb4_general_ci; from 8.0.1 utf8mb4_0900_ai_ci.
_LEFT_OUT: Final = re.compile(
    r"(?P<words> (?:DEFAULT )?(?:CHARSET=|CHARACTER SET )utf8mb4\b)(?! COLLATE)", re.IGNORECASE
)
_TABLE_COLLATE: Final = re.compile(r" COLLATE=(\w+)", re.IGNORECASE)
_DROPPED: Final = re.compile(
    r" (?:AUTO_INCREMENT=\d+|ROW_FORMAT=\w+|STATS_\w+=\w+|/\*!\d+ *\*/)", re.IGNORECASE
)
_DEFINER: Final = re.compile(
    rf"\s+DEFINER\s*=\s*((?:{QUOTED}|[^\s@]+)@(?:{QUOTED}|\S+))", re.IGNORECASE | re.DOTALL
)
# Modes of sql_mode that later versions do not have.
_GONE_MODES: Final = frozenset({"NO_AUTO_CREATE_USER"})
_KEYS: Final = ("PRIMARY KEY", "UNIQUE KEY", "KEY", "FULLTEXT KEY", "SPATIAL KEY")
# Outside quotes: a pattern and its replacement.
_VERSIONED: Final = re.compile(r"/\*!\d{5,6} ?| ?\*/")
_ALIKE: Final = (
    (_VERSIONED, ""),
    (
        re.compile(r"\b(tinyint|smallint|mediumint|int|bigint|year)\(\d+\)(?! unsigned zerofill)"),
        r"\1",
    ),
    (re.compile(r"\bgeometrycollection\b"), "geomcollection"),
    (re.compile(r"\butf8(?=\b(?!mb)|_(?!mb))"), "utf8mb3"),
    (re.compile(r"\b_utf8(?:mb3|mb4)?\s?$"), ""),
    (
        re.compile(
            r"\b(ON COMPLETION (?:NOT )?PRESERVE) (?:ENABLE|DISABLE(?: ON (?:SLAVE|REPLICA))?)\b"
        ),
        r"\1 ENABLE",
    ),
)
_EACH_ROW: Final = re.compile(
    rf"{QUOTED}|(?P<words>\bFOR\s+EACH\s+ROW\b)", re.IGNORECASE | re.DOTALL
)
# The primary key that a server generates (8.0.30 and later; sql/sql_gipk.cc).
_GENERATED_COLUMN: Final = re.compile(
    r"`my_row_id` bigint unsigned NOT NULL AUTO_INCREMENT /\*!80023 INVISIBLE \*/"
)
_GENERATED_KEY: Final = "PRIMARY KEY (`my_row_id`)"
_BREAKS: Final = re.compile(
    r"(?<! left)(?<! right)(?<! inner)(?<! cross)"
    r" (?=(?:from|where|union|(?:left |right |inner |cross )?join|group by|having|order by|limit)"
    r"\b)"
)
_DEFAULT_ENCRYPTION: Final = " DEFAULT ENCRYPTION='N'"


class ClauseKind(Enum):
    """What a clause of a definition is."""

    COLUMN = "column"
    KEY = "index"
    FOREIGN_KEY = "foreign key"
    CHECK = "check constraint"
    OPTIONS = "table option"
    PARTITIONS = "partitions"
    DEFINER = "definer"
    SESSION = "setting of the session that created it"
    BODY = "definition"


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: its name (of a column, key or constraint), as printed, and as compared."""

    kind: ClauseKind
    name: str
    raw: str
    text: str


@dataclass(frozen=True, slots=True)
class CanonicalDefinition:
    """One definition: its clauses in order, and the text that the server printed."""

    kind: ObjectKind
    clauses: tuple[Clause, ...]
    create: str  # with the collations that another version would not take as the default
    collation: str = ""  # of a table: the default of its columns
    # Of a trigger: all triggers of its table, timing and event, in action order. `create` does not
    # have its place; the clauses have FOLLOWS.
    triggers: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the definition as lines to compare."""
        return tuple(line for each in self.clauses for line in each.text.split("\n"))

    @property
    def digest(self) -> str:
        """Return the digest of the canonical form."""
        return hashlib.sha1("\n".join(self.lines).encode(), usedforsecurity=False).hexdigest()

    def of(self, *kinds: ClauseKind) -> tuple[Clause, ...]:
        """Return the clauses of these kinds, in order."""
        return tuple(each for each in self.clauses if each.kind in kinds)


def canonical_definition(
    kind: ObjectKind,
    create: str,
    default_collations: Mapping[str, str],
    *,
    session: Mapping[str, str] | None = None,
    triggers: tuple[str, ...] = (),
    name: str = "",
) -> CanonicalDefinition:
    """Return the canonical form of what SHOW CREATE printed.

    `default_collations` has the default collation of each character set of that server. `session`
    has the settings of the session that created the object, which SHOW CREATE prints beside it.
    `triggers` are those of the table, timing and event of the trigger `name`, in action order.
    """
    if kind is ObjectKind.TABLE:
        return _table(create, default_collations)
    if kind is ObjectKind.SCHEMA:
        create = _explicit(create, default_collations)
    at = triggers.index(name) if name in triggers else 0
    text = with_order(create, follows=triggers[at - 1] if at else None, precedes=None)
    definer = ""
    if (found := _DEFINER.search(text)) is not None:
        definer = f"DEFINER={found[1]}"
        text = text[: found.start()] + text[found.end() :]
    clauses = [Clause(ClauseKind.DEFINER, "", definer, definer)] if definer else []
    body = _alike(text)
    if kind is ObjectKind.SCHEMA:
        body = _schema(text, default_collations)
    if kind is ObjectKind.VIEW:
        body = _broken(body)
    clauses.append(Clause(ClauseKind.BODY, "", text, body))
    for setting, value in (session or {}).items():
        compared = re.sub(r"\butf8(?=_|$)", "utf8mb3", value)
        compared = ",".join(each for each in compared.split(",") if each not in _GONE_MODES)
        clauses.append(Clause(ClauseKind.SESSION, setting, value, f"-- {setting}: {compared}"))
    return CanonicalDefinition(kind, tuple(clauses), create, triggers=triggers)


def without_generated_key(table: CanonicalDefinition) -> CanonicalDefinition:
    """Return a table without the invisible primary key that its server generated, if it has one.

    Rows of a source whose table has none are applied beside it: the applier skips that column (seen
    on 9.7.4 with REQUIRE_TABLE_PRIMARY_KEY_CHECK = GENERATE).
    """
    generated = [
        each
        for each in table.clauses
        if (each.kind is ClauseKind.COLUMN and _GENERATED_COLUMN.fullmatch(each.raw))
        or (each.kind is ClauseKind.KEY and each.raw == _GENERATED_KEY)
    ]
    if len(generated) < 2:  # noqa: PLR2004 - the column and its key
        return table
    create = table.create.replace(f"{generated[0].raw},\n  ", "", 1)
    create = create.replace(f",\n  {_GENERATED_KEY}", "", 1)
    clauses = tuple(each for each in table.clauses if each not in generated)
    return CanonicalDefinition(table.kind, clauses, create, table.collation)


def with_order(create: str, *, follows: str | None, precedes: str | None) -> str:
    """Return CREATE TRIGGER with FOLLOWS or PRECEDES; without either if both are None."""
    if follows is None and precedes is None:
        return create
    word, other = ("FOLLOWS", follows) if follows is not None else ("PRECEDES", precedes)
    assert other is not None
    for found in _EACH_ROW.finditer(create):
        if found["words"] is not None:
            at = found.end()
            return f"{create[:at]} {word} {quote_identifier(other)}{create[at:]}"
    return create


def _column(item: str, default_collations: Mapping[str, str]) -> str:
    """Return a clause with the collation that the server left out, if it is a column of text."""
    name = _NAME.match(item)
    if name is None or _TEXT_TYPE.match(item, name.end()) is None:
        return item
    at = name.end() + _type_end(item[name.end() :])
    found = _LEFT_OUT.match(item, at)
    return (
        item
        if found is None
        else f"{_explicit(item[: found.end()], default_collations)}{item[found.end() :]}"
    )


def _explicit(text: str, default_collations: Mapping[str, str]) -> str:
    """Write, outside quotes, the collation that another version would not take as the default."""
    collation = default_collations.get("utf8mb4")
    if collation is None:
        return text
    word = " COLLATE=" if "CHARSET=" in _blanked(text) else " COLLATE "
    return _outside_quotes(_LEFT_OUT, rf"\g<words>{word}{collation}", text)


def _schema(create: str, default_collations: Mapping[str, str]) -> str:
    """Return CREATE DATABASE with its collation, and without the default of 8.0.16 and later."""
    text = _alike(create).replace(_DEFAULT_ENCRYPTION, "")
    charset, collate = _CHARSET.search(_blanked(text)), _COLLATE.search(_blanked(text))
    own = _collation_of(
        charset[1] if charset else "", collate[1] if collate else "", default_collations
    )
    for pattern in (_COLLATE, re.compile(f" DEFAULT{_CHARSET.pattern}", re.IGNORECASE)):
        text = _outside_quotes(pattern, "", text)
    return f"{' '.join(text.split())} COLLATE {own}"


def _table(create: str, default_collations: Mapping[str, str]) -> CanonicalDefinition:
    items, rest = _items(create)
    if items:
        begun, end = create.find(items[0], create.find("(\n  ")), len(create) - len(rest)
        items = [_column(each, default_collations) for each in items]
        options, separator, partitions = _before(rest, "PARTITION BY")
        rest = f"{_explicit(options, default_collations)}{separator}{partitions}"
        create = f"{create[:begun]}{_NEXT.join(items)}{create[end - 2 : end]}{rest}"
    plain = _blanked(rest)
    charset, collate = _TABLE_CHARSET.search(plain), _TABLE_COLLATE.search(plain)
    collation = _collation_of(
        charset[1] if charset else "", collate[1] if collate else "", default_collations
    )
    raw, options, partitions = _options(rest)
    clauses = [_clause(item, collation, default_collations) for item in items]
    order = list(ClauseKind)
    # Keys have no order of their own: one that is added later is printed last.
    clauses.sort(
        key=lambda each: (
            order.index(each.kind),
            "" if each.kind is ClauseKind.COLUMN else f"{each.name != 'PRIMARY'}{each.name}",
        )
    )
    compared = f"{options} COLLATE={collation}" if collation else options
    clauses.append(Clause(ClauseKind.OPTIONS, "", raw, compared))
    if partitions:
        # `KEY */ /*!50611 ALGORITHM = 1 */ /*!50100 (a)`: the outer comment is cut off.
        plain = _outside_quotes(_VERSIONED, "", partitions)
        clauses.append(Clause(ClauseKind.PARTITIONS, "", plain, _alike(partitions)))
    return CanonicalDefinition(ObjectKind.TABLE, tuple(clauses), create, collation)


def _items(create: str) -> tuple[list[str], str]:
    """Split the text of SHOW CREATE TABLE into its clauses and what follows them."""
    start = create.find("(\n  ")
    if start < 0:
        return [], create
    items, begun = [], start + 4
    for found in _SEPARATOR.finditer(create, begun):
        if found["next"] is None and found["end"] is None:
            continue
        items.append(create[begun : found.start()])
        begun = found.end()
        if found["end"] is not None:
            break
    return items, create[begun:]


def _options(rest: str) -> tuple[str, str, str]:
    """Return the options of a table as printed, as compared, and its partitions as printed."""
    head, separator, partitions = _before(rest, "PARTITION BY")
    raw = _outside_quotes(_DROPPED, "", head.split("\n")[0] if separator else head)
    text = raw
    for pattern in (_TABLE_CHARSET, _TABLE_COLLATE):
        text = _outside_quotes(pattern, "", text)
    last = f"{separator}{partitions}".rstrip().removesuffix("*/").rstrip()
    return raw.strip(), _alike(text).strip(), last


def _before(text: str, words: str) -> tuple[str, str, str]:
    """Partition a text at words outside quotes."""
    for found in re.finditer(rf"{QUOTED}|(?P<words>{words})", text, re.DOTALL):
        if found["words"] is not None:
            return text[: found.start()], words, text[found.end() :]
    return text, "", ""


def _clause(item: str, collation: str, default_collations: Mapping[str, str]) -> Clause:
    text = _alike(item)
    if item.startswith("`"):
        name = _name_in(item)
        return Clause(
            ClauseKind.COLUMN, name, item, _with_collation(text, collation, default_collations)
        )
    if item.startswith(_KEYS):
        name = "PRIMARY" if item.startswith("PRIMARY") else _name_in(item)
        return Clause(ClauseKind.KEY, name, item, text)
    kind = ClauseKind.FOREIGN_KEY if " FOREIGN KEY " in f" {item}" else ClauseKind.CHECK
    return Clause(kind, _name_in(item), item, text)


def _with_collation(text: str, collation: str, default_collations: Mapping[str, str]) -> str:
    """Write a column's collation, and nothing else about character sets."""
    name = _NAME.match(text)
    assert name is not None, "a column begins with its quoted name"
    rest = text[name.end() :]
    if _TEXT_TYPE.match(rest) is None:
        return text
    outside = _blanked(rest)
    charset, collate = _CHARSET.search(outside), _COLLATE.search(outside)
    own = collation
    if charset or collate:
        own = _collation_of(
            charset[1] if charset else "", collate[1] if collate else "", default_collations
        )
    cuts = sorted((each.span() for each in (charset, collate) if each), reverse=True)
    for start, end in cuts:
        rest = rest[:start] + rest[end:]
    at = _type_end(rest)
    return f"{name[0]}{rest[:at]} COLLATE {own}{rest[at:]}"


def _type_end(rest: str) -> int:
    """Return where the type of a text column ends: after its word, or its parentheses."""
    word = _TEXT_TYPE.match(rest)
    assert word is not None
    if not rest[word.end() :].startswith("("):
        return word.end()
    inside = re.compile(rf"{QUOTED}|(?P<end>\))", re.DOTALL)
    ends = (found.end() for found in inside.finditer(rest, word.end()) if found["end"])
    return next(ends, len(rest))


def _collation_of(charset: str, collate: str, default_collations: Mapping[str, str]) -> str:
    """Return a collation by its current name; the default of a character set if it is not given."""
    if not collate and charset:
        names = ("utf8mb3", "utf8") if charset in {"utf8", "utf8mb3"} else (charset,)
        known = (default_collations[each] for each in names if each in default_collations)
        collate = next(known, f"{charset} default")
    return re.sub(r"^utf8_", "utf8mb3_", collate)


def _alike(text: str) -> str:
    """Replace, outside quotes, what versions print differently."""
    for pattern, replacement in _ALIKE:
        text = _outside_quotes(pattern, replacement, text)
    return text


def _outside_quotes(pattern: re.Pattern[str], replacement: str, text: str) -> str:
    return "".join(
        part if number % 2 else pattern.sub(replacement, part)
        for number, part in enumerate(_PARTS.split(text))
    )


def _blanked(text: str) -> str:
    """Return a text with blanks in place of what is quoted; positions stay."""
    return _PARTS.sub(lambda found: " " * len(found[0]), text)


def _broken(text: str) -> str:
    """Break the one line of a view before its clauses, so that a difference is short."""
    return _outside_quotes(_BREAKS, "\n  ", text)


def _name_in(item: str) -> str:
    found = _NAME.search(item)
    return found[1].replace("``", "`") if found else ""
