"""Reads the definitions of one live server: digests of all, and the text of those that differ.

1. It only reads. `DefinitionReader` uses one connection for both, so the second part sees a server
   that is the same one, or fails.
2. The sets before and after each part are read with it: pair_drift.py needs them as a proof. The
   GTIDs that sessions own count as executed after the part: a commit may have changed a definition
   already.
3. information_schema omits silently what the account may not see. So the privileges are read first,
   and each kind that is not seen completely is an UnreadFact.
4. An object that SHOW CREATE does not find is absent (None). Any other error is an UnreadFact.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Self

import pymysql

from binlog.adapters.shown_definitions import shown_definition
from gtid import GtidSet
from topology.adapters.answered_rows import (
    UNEXPECTED,
    FactsOfConnection,
    NotShown,
    Row,
    rows_of,
    text_of,
    unexpected_answer,
)
from topology.adapters.connection import Connection, connect
from topology.adapters.definition_statements import (
    DEFAULT_COLLATIONS,
    GRANTS,
    GROUP_BYTES_MAX,
    SESSION_COLUMNS,
    SETTINGS,
    SHOWN_AS,
    DigestQuery,
    digest_queries,
    limits_statement,
    orders_triggers,
    show_create,
    triggers_beside,
)
from topology.adapters.settled_sets import read_settled
from topology.adapters.unread import unread_fact
from topology.adapters.vendor_facts import read_version
from topology.definitions.canonical import CanonicalDefinition, canonical_definition
from topology.definitions.schema_objects import (
    ObjectDigest,
    ObjectKey,
    ObjectKind,
    ServerObjects,
    SetsAround,
)
from topology.definitions.visibility import Visibility, needed_for
from topology.readings.snapshot import UnreadFact, UnreadReason
from topology.readings.target import ServerTarget
from topology.readings.vendors import row_of
from topology.readings.version import ServerVersion

_FALSE: Final = ("", "OFF", "0")


@dataclass(frozen=True, slots=True)
class ReadDefinitions:
    """The definitions that were read in full, the sets around them, and what was not read."""

    definitions: Mapping[ObjectKey, CanonicalDefinition | None]
    sets: SetsAround
    unread: tuple[UnreadFact, ...] = ()


@dataclass(slots=True)
class _ServerFacts:
    """What the reader knows of its server after the first statements."""

    version: ServerVersion
    settings: Mapping[str, str]
    visibility: Visibility
    default_collations: Mapping[str, str] = field(default_factory=dict)


class DefinitionReader:
    """Reads the definitions of one server over one connection."""

    def __init__(self, target: ServerTarget, *, seconds_max: float) -> None:
        """`seconds_max` limits connecting, and each answer."""
        self._target = target
        self._facts = FactsOfConnection(seconds_max)
        self._connection: Connection | None = None
        self._server: _ServerFacts | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection, if any."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def unread(self) -> tuple[UnreadFact, ...]:
        """Return what could not be read, except single definitions."""
        return tuple(self._facts.unread)

    @property
    def version(self) -> ServerVersion | None:
        """Return the server's version, once it was read."""
        return self._server.version if self._server else None

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the settings that matter for definitions; empty if they were not read."""
        return self._server.settings if self._server else {}

    def read_objects(self, schemas: Sequence[str] = ()) -> ServerObjects | None:
        """Return a digest of every definition; None if one of the statements failed.

        `schemas`: only of these. Never raises for what the server does; `unread` lists it.
        """
        facts = self._facts
        try:
            if not self._opened():
                return None
            assert self._server is not None
            before = facts.take("gtid_executed", lambda: self._sets()[1])
            rows: list[tuple[DigestQuery, list[Row]]] = []
            for query in digest_queries(self._server.version, schemas):
                answer = facts.take(_fact(query), partial(self._rows, query.statement))
                if answer is not None:
                    rows.append((query, answer))
            after = facts.take("gtid_executed", self._sets)
        except (pymysql.MySQLError, OSError):
            assert facts.unread, "a lost connection is noted"
            return None
        if facts.unread or before is None or after is None:
            return None
        return ServerObjects(
            server=self._target.name,
            visibility=self._server.visibility,
            sets=SetsAround(before, after[0] | after[1]),
            folds_names=self._server.settings.get("lower_case_table_names", "0") != "0",
            objects=_objects(rows, self._target.name, self._bytes_max()),
            unread=tuple(_not_seen(self._server.visibility, schemas)),
        )

    def read_definitions(self, keys: Iterable[ObjectKey]) -> ReadDefinitions | None:
        """Return the text of these objects; None if the connection is lost."""
        assert self._server is not None, "the objects were read before"
        definitions: dict[ObjectKey, CanonicalDefinition | None] = {}
        unread: list[UnreadFact] = []
        facts = self._facts
        try:
            before = facts.take("gtid_executed", lambda: self._sets()[1])
            for key in keys:
                self._read_one(key, definitions, unread)
            after = facts.take("gtid_executed", self._sets)
        except (pymysql.MySQLError, OSError) as error:
            facts.unread += unread or [unread_fact("definitions", error, timed_out=False)]
            return None
        if before is None or after is None:
            return None
        return ReadDefinitions(definitions, SetsAround(before, after[0] | after[1]), tuple(unread))

    def _opened(self) -> bool:
        """Connect and read what decides about the other statements; return whether it worked."""
        facts, seconds = self._facts, self._facts.seconds_max
        self._connection = facts.take(
            "connection", lambda: connect(self._target, timeout_seconds_max=seconds)
        )
        if self._connection is None:
            return False
        version = facts.take("version", self._version)
        if version is None:
            return False
        facts.take("session", self._set_limits)
        settings = facts.take("settings", self._settings)
        collations = facts.take("collations", self._collations)
        if settings is None or collations is None:
            return False
        is_literal = settings.get("partial_revokes", "OFF") not in _FALSE
        visibility = facts.take("privileges", lambda: self._visibility(is_literal=is_literal))
        if visibility is None:
            return False
        self._server = _ServerFacts(version, settings, visibility, collations)
        return True

    def _version(self) -> ServerVersion:
        assert self._connection is not None
        version, vendor = read_version(self._connection)
        if row_of(vendor).unevaluated:
            raise NotShown(f"{vendor.value} {version} shows its definitions in other ways")
        self._facts.vendor = vendor
        return ServerVersion.parse(version)

    def _set_limits(self) -> None:
        assert self._connection is not None
        with self._connection.cursor() as cursor:
            cursor.execute(limits_statement(self._facts.seconds_max))

    def _settings(self) -> dict[str, str]:
        rows = self._rows(SETTINGS, "Variable_name")
        return {text_of(row["Variable_name"]).lower(): text_of(row["Value"]) for row in rows}

    def _collations(self) -> dict[str, str]:
        rows = self._rows(DEFAULT_COLLATIONS, "charset")
        return {text_of(row["charset"]): text_of(row["collation"]) for row in rows}

    def _visibility(self, *, is_literal: bool) -> Visibility:
        lines = [text_of(value) for row in self._rows(GRANTS) for value in row.values()]
        return Visibility.of_grants(lines, are_literal=is_literal)

    def _sets(self) -> tuple[GtidSet, GtidSet]:
        """Return the GTIDs that sessions own, and those executed, read in this order."""
        assert self._connection is not None
        return read_settled(self._connection)

    def _bytes_max(self) -> int:
        packet = int(self.settings.get("max_allowed_packet", GROUP_BYTES_MAX))
        return min(packet, GROUP_BYTES_MAX)

    def _read_one(
        self,
        key: ObjectKey,
        definitions: dict[ObjectKey, CanonicalDefinition | None],
        unread: list[UnreadFact],
    ) -> None:
        assert self._connection is not None
        assert self._server is not None
        try:
            row = shown_definition(self._connection, show_create(key)).row
        except UNEXPECTED as error:
            unread.append(unexpected_answer(key.label, error))
            return
        except pymysql.MySQLError as error:
            unread.append(unread_fact(key.label, error, timed_out=False))
            if unread[-1].reason is UnreadReason.UNREACHABLE:
                raise
            return
        shown = SHOWN_AS[key.kind].lower()
        if shown not in row:  # absent, or a view where a table was
            definitions[key] = None
        elif row[shown] is None:
            why = f"GRANT {needed_for(key.kind.value)}"
            unread.append(UnreadFact(key.label, UnreadReason.PRIVILEGE, why))
        else:
            create = text_of(row[shown])
            triggers: tuple[str, ...] = ()
            if key.kind is ObjectKind.TRIGGER and orders_triggers(self._server.version):
                triggers = self._triggers_beside(key)
            definitions[key] = canonical_definition(
                key.kind,
                create,
                self._server.default_collations,
                session={name: text_of(row[name]) for name in SESSION_COLUMNS if name in row},
                triggers=triggers,
                name=key.name,
            )

    def _triggers_beside(self, key: ObjectKey) -> tuple[str, ...]:
        """Return the triggers of the table, timing and event of a trigger, in action order."""
        rows = self._rows(triggers_beside(key), "name", "place")
        return tuple(
            text_of(row["name"]) for row in sorted(rows, key=lambda row: int(row["place"]))
        )

    def _rows(self, statement: str, *expected: str) -> list[Row]:
        assert self._connection is not None
        return rows_of(self._connection, statement, *expected)


def _fact(query: DigestQuery) -> str:
    return "routines" if "(" in query.part else f"definitions: {query.part}"


def _not_seen(visibility: Visibility, schemas: Sequence[str]) -> Iterable[UnreadFact]:
    """Yield the kinds of which the account may not see every object."""
    for kind in (each.value for each in ObjectKind):
        if kind in {"schema", "function"}:  # as tables, and as procedures
            continue
        if schemas:
            is_seen = all(visibility.shows(kind, each) for each in schemas)
        else:
            is_seen = visibility.shows_everywhere(kind)
        if not is_seen:
            named = "routines" if kind == "procedure" else f"{kind}s"
            why = f"the account may not see all of them: GRANT {needed_for(kind)}"
            yield UnreadFact(named, UnreadReason.PRIVILEGE, why)


def _objects(
    rows: Iterable[tuple[DigestQuery, list[Row]]], server: str, bytes_max: int
) -> dict[ObjectKey, ObjectDigest]:
    """Join the digests of the parts of each object."""
    parts: dict[ObjectKey, list[str]] = {}
    sizes: dict[ObjectKey, int] = {}
    columns: dict[ObjectKey, int] = {}
    for query, answer in rows:
        for row in answer:
            key = ObjectKey(
                ObjectKind(text_of(row["kind"])),
                text_of(row["schema_name"]),
                text_of(row["name"]),
            )
            if query.is_grouped and key not in parts:
                continue  # the columns of a view
            count, size = int(row["parts"]), int(row["bytes"])
            digest = text_of(row["digest"])
            is_cut = not digest or (query.is_grouped and size + count > bytes_max)
            if is_cut or int(row["is_hidden"] or 0):
                digest = f"only in full on {server}"  # equal to no other: it is read in full
            parts.setdefault(key, []).append(f"{query.part} {count} {digest}")
            sizes[key] = sizes.get(key, 0) + size
            if query.part == "columns":
                columns[key] = count
    return {
        key: ObjectDigest(
            hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest(),
            sizes[key],
            columns.get(key, 0),
        )
        for key, texts in parts.items()
    }
