"""DDL in the binary logs of servers, and whether it can explain that two definitions differ.

1. Two readings of a replica and its source are not made at one moment. A transaction that only one
   of them has executed may be the cause of a difference: it is still on its way. So a difference
   counts as proved only if no such transaction concerns the object.
2. A statement concerns an object if it contains the object's name as a word, or that of a table
   that the object depends on. It also does if it creates, changes or drops the object's schema.
   That may be too many statements, never too few: a name must be written to be changed. A
   statement on objects of another kind does not: ALTER DATABASE changes no column.
3. What could not be searched (purged, or behind a limit) may contain such a statement.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from binlog.transactions import STATEMENT_CHARACTERS_MAX
from gtid import GtidSet
from topology.definitions.canonical import CanonicalDefinition, ClauseKind
from topology.definitions.schema_objects import ObjectKey, ObjectKind
from topology.readings.logged_ddl import COMMENT, LoggedDdl

_OF_SCHEMA: Final = re.compile(r"^\s*(?:CREATE|ALTER|DROP)\s+(?:DATABASE|SCHEMA)\b", re.IGNORECASE)
_USER: Final = r"(?:'[^']*'|`[^`]*`|[^\s@'`]+)"
# A statement whose words up to the kind of its object are all known ones.
_OF_KIND: Final = re.compile(
    r"^\s*(?P<verb>CREATE|ALTER|DROP|RENAME)\s+"
    r"(?:(?:OR\s+REPLACE|ONLINE|OFFLINE|IGNORE|UNIQUE|FULLTEXT|SPATIAL"
    rf"|DEFINER\s*=\s*{_USER}(?:\s*@\s*{_USER})?|ALGORITHM\s*=\s*\w+|SQL\s+SECURITY\s+\w+)\s+)*"
    r"(?P<kind>TABLES?|INDEX|VIEW|PROCEDURE|FUNCTION|TRIGGER|EVENT|DATABASE|SCHEMA)\b",
    re.IGNORECASE,
)
_UPGRADES_NAME: Final = re.compile(r"\bUPGRADE\s+DATA\s+DIRECTORY\s+NAME\b", re.IGNORECASE)
# ALTER TABLE and RENAME TABLE rename views too; the triggers of a table go with it.
_CHANGED_BY: Final = {
    **dict.fromkeys(
        ("TABLE", "TABLES", "INDEX"),
        frozenset({ObjectKind.TABLE, ObjectKind.VIEW, ObjectKind.TRIGGER}),
    ),
    **{
        each.value.upper(): frozenset({each})
        for each in ObjectKind
        if each not in {ObjectKind.TABLE, ObjectKind.SCHEMA}
    },
    **dict.fromkeys(("DATABASE", "SCHEMA"), frozenset({ObjectKind.SCHEMA})),
}
_REFERENCES: Final = re.compile(r" REFERENCES (?:`(?:[^`]|``)+`\.)?`((?:[^`]|``)+)`")
_TRIGGER_ON: Final = re.compile(
    r"\b(?:BEFORE|AFTER)\s+(?:INSERT|UPDATE|DELETE)\s+ON\s+(?:`?[^`.\s]+`?\.)?`?([^`\s]+)`?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class DdlSearch:
    """What a search in a server's logs found: all DDL of `searched`, in the order of the log."""

    server: str
    searched: GtidSet
    found: tuple[LoggedDdl, ...] = ()
    why_unread: str = ""  # why the rest of what was wanted is not in `searched`

    def within(self, gtids: GtidSet) -> tuple[LoggedDdl, ...]:
        """Return the DDL with these GTIDs."""
        return tuple(each for each in self.found if each.gtid in gtids)


@dataclass(frozen=True, slots=True)
class NewestDdl:
    """What a search from the newest log backwards found: the DDL of the newest log that has any.

    `oldest_log` is the oldest one that was read to its end. `failure` is the error that ended the
    search; a limit is none.
    """

    server: str
    found: tuple[LoggedDdl, ...]
    oldest_log: str
    failure: str = ""


@dataclass(frozen=True, slots=True)
class OnTheWay:
    """Transactions that only one of two servers had executed, and what is known about them.

    `is_complete`: all of them were searched.
    """

    gtids: GtidSet
    ddl: tuple[LoggedDdl, ...]
    is_complete: bool
    why_unread: str = ""

    def concerning(
        self, key: ObjectKey, definitions: Iterable[CanonicalDefinition]
    ) -> tuple[LoggedDdl, ...]:
        """Return the DDL that may have changed an object."""
        names = names_of(key, definitions)
        return tuple(each for each in self.ddl if concerns(each, key, names))


def on_the_way(gtids: GtidSet, searches: Sequence[DdlSearch]) -> OnTheWay:
    """Return what is known about transactions that only one server had executed."""
    searched = GtidSet.union_of(each.searched for each in searches)
    found = {ddl.gtid: ddl for each in searches for ddl in each.within(gtids)}
    is_complete = gtids <= searched
    reasons = [each.why_unread for each in searches if each.why_unread]
    return OnTheWay(
        gtids,
        tuple(found.values()),
        is_complete,
        "" if is_complete else (reasons[0] if reasons else "no log was searched"),
    )


def names_of(key: ObjectKey, definitions: Iterable[CanonicalDefinition]) -> frozenset[str]:
    """Return the names whose DDL can change an object: its own, and those that it depends on."""
    names = {key.name or key.schema}
    for definition in definitions:
        for clause in definition.of(ClauseKind.FOREIGN_KEY):
            names |= {each.replace("``", "`") for each in _REFERENCES.findall(clause.raw)}
        if key.kind is ObjectKind.TRIGGER:
            names |= triggered_tables(definition)
    return frozenset(names)


def triggered_tables(trigger: CanonicalDefinition) -> frozenset[str]:
    """Return the table of a trigger, and what else in its text looks like one."""
    found = _TRIGGER_ON.findall(trigger.create)
    return frozenset(each.replace("``", "`") for each in found)


def concerns(ddl: LoggedDdl, key: ObjectKey, names: frozenset[str]) -> bool:
    """Return whether a transaction may have changed an object with these names."""
    if ddl.is_unread:
        return True
    if not ddl.defines:
        return False
    text = ddl.statement
    if len(text) >= STATEMENT_CHARACTERS_MAX:
        return True  # it was cut
    if not all(map(str.isascii, names)) and (not text.isascii() or "\\x" in text):
        return True  # its session may have had a character set other than UTF-8
    if key.kind not in _kinds_changed_by(text):
        return False
    is_of_schema = _OF_SCHEMA.match(COMMENT.sub(" ", text)) is not None
    searched = names | {key.schema} if is_of_schema else names
    return any(_contains(text, name) for name in searched)


def _kinds_changed_by(statement: str) -> frozenset[ObjectKind]:
    """Return the kinds of objects that a statement can change; all of them if it is not known."""
    text = COMMENT.sub(" ", statement)
    found = _OF_KIND.match(text)
    if found is None:
        return frozenset(ObjectKind)
    kind, verb = found["kind"].upper(), found["verb"].upper()
    is_schema = kind in {"DATABASE", "SCHEMA"}
    if is_schema and (verb == "DROP" or _UPGRADES_NAME.search(text)):
        return frozenset(ObjectKind)
    return _CHANGED_BY[kind]


def _contains(text: str, name: str) -> bool:
    quoted = name.replace("`", "``")
    word = re.compile(
        rf"(?<![\w$])(?:{re.escape(name)}|{re.escape(quoted)})(?![\w$])", re.IGNORECASE
    )
    return word.search(text) is not None
