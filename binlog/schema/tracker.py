"""Follows a server's tables through its binary log, event by event.

How it works
------------
The state is a `Catalogue`: databases, temporary tables, and for each table the latest entry: KNOWN
with its definition, UNKNOWN with a reason, or ABSENT. `take` receives an event and returns the
entries that it makes. It reads no file and queries no server; payloads must be decompressed.

* A statement is applied only if every word is understood and all facts that it depends on are
  known. Otherwise its tables become UNKNOWN there. If even they cannot be read, all tables do.
* Each TABLE_MAP is compared with the definition before its rows are read. A misfit makes the table
  UNKNOWN. If the TABLE_MAP has full metadata, a misfit or unknown table becomes KNOWN from it.

    CREATE TABLE t (a INT, b INT)    KNOWN: a int, b int
    ALTER TABLE t DROP a             KNOWN: b int
    ALTER TABLE t, a new syntax      UNKNOWN: expected an action of ALTER TABLE, found: …
    TABLE_MAP t, full metadata       KNOWN, from the metadata

Invariant: a definition is never guessed, because a wrong one assigns values to wrong columns. The
types in a TABLE_MAP alone are not enough: two INT columns that changed places look the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binlog.events import Event, FormatDescription, GtidLog, Query, TableMap
from binlog.schema.apply import altered, definition_of
from binlog.schema.changes import (
    AlterDatabase,
    AlterTable,
    Change,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTables,
    NoChange,
    RenameTables,
    RenameTo,
    TableName,
)
from binlog.schema.charset_names import CHARSET_OF_COLLATION
from binlog.schema.check import misfit
from binlog.schema.column_types import Timestamps
from binlog.schema.logged_statements import LoggedStatement, version_number
from binlog.schema.metadata import definition_from_table_map
from binlog.schema.sql_words import ANY_VERSION, CannotFollow
from binlog.schema.table_definitions import TableDefinition
from binlog.schema.table_history import (
    STATEMENT_SHOWN_MAX,
    Catalogue,
    Database,
    Entry,
    Place,
    Source,
    State,
    TableKey,
    TemporaryTable,
)

_ER_BAD_TABLE_ERROR = 1051
NEVER_SEEN = "the followed log has contained no statement on it"


@dataclass(frozen=True, slots=True)
class SchemaFacts:
    """Facts about a server that its log does not contain."""

    # Whether a TIMESTAMP without NULL is nullable, if the log does not contain it (before 8.0).
    timestamps: Timestamps = Timestamps.UNKNOWN
    # lower_case_table_names: names are compared in lower case.
    folds_names: bool = False


@dataclass(frozen=True, slots=True)
class _Said:
    """One statement, its event, and how it reads a TIMESTAMP without NULL."""

    event: Event
    query: Query
    statement: LoggedStatement
    timestamps: Timestamps

    @property
    def text(self) -> str:
        return self.statement.text


class SchemaTracker:
    """The tables of one server at the place of the last event that was taken."""

    def __init__(self, catalogue: Catalogue | None = None, *, facts: SchemaFacts) -> None:
        self.catalogue = catalogue or Catalogue()
        self._facts = facts
        self._gtid: str | None = None
        self._version = ANY_VERSION
        self._checked: dict[TableKey, tuple[TableDefinition, TableMap]] = {}
        self._changes: list[Entry] = []

    def take(self, event: Event) -> tuple[Entry, ...]:
        """Process the next event; return the entries it makes, in order. Raises MalformedBody."""
        self._changes = []
        match event.body:
            case FormatDescription() as description:
                self._version = version_number(description)
            case GtidLog(gtid=gtid):
                self._gtid = str(gtid) if gtid is not None else None
            case Query() as query:
                self._take_statement(event, query)
            case TableMap() as table:
                self._take_table_map(event, table)
            case _:
                pass
        return tuple(self._changes)

    def lose_all(self, place: Place, why: str) -> tuple[Entry, ...]:
        """Make every table unknown, because events before this place are missing."""
        self._changes = []
        self._lose(self.catalogue.entries, place, why, statement="")
        self.catalogue.databases.clear()
        return tuple(self._changes)

    def adopt(self, entry: Entry, definition: TableDefinition | None, source: Source) -> Entry:
        """Replace an unknown definition by one from another source; None: the table is absent."""
        assert self.catalogue.entries.get(entry.key) is entry, "nothing has changed since"
        state = State.ABSENT if definition is None else State.KNOWN
        known = replace(entry, state=state, source=source, definition=definition, why="")
        self.catalogue.entries[entry.key] = known
        return known

    # ---- statements

    def _take_statement(self, event: Event, query: Query) -> None:
        statement = LoggedStatement.of(query, server_version=self._version)
        if statement is None:
            return
        place = Place(event.file, event.start)
        said = _Said(event, query, statement, self._timestamps(query))
        try:
            self._apply(_change_of(said), said, place)
        except CannotFollow as unclear:
            self._lose_named(said, place, unclear.why)

    def _timestamps(self, query: Query) -> Timestamps:
        explicit = query.explicit_defaults_for_timestamp
        if explicit is None:
            return self._facts.timestamps
        return Timestamps.NULLABLE if explicit else Timestamps.NOT_NULL

    def _lose_named(self, said: _Said, place: Place, why: str) -> None:
        try:
            names = said.statement.named_tables()
        except CannotFollow:
            self._lose(self.catalogue.entries, place, why, statement=said.text)
            self.catalogue.databases.clear()
            return
        keys = [self._key(name, said.query) for name in names]
        self._lose(
            [key for key in keys if not self._is_temporary(key, said)], place, why, said.text
        )

    def _lose(self, keys: Iterable[TableKey], place: Place, why: str, statement: str) -> None:
        for key in sorted(keys):
            self._note(key, place, Source.STATEMENT, why=why, statement=statement)

    def _apply(self, change: Change, said: _Said, place: Place) -> None:
        match change:
            case CreateTable():
                self._create(change, said, place)
            case AlterTable():
                self._alter(change, said, place)
            case DropTables():
                self._drop(change, said, place)
            case RenameTables(pairs=pairs):
                for old, new in pairs:
                    self._rename(
                        self._key(old, said.query), self._key(new, said.query), said, place
                    )
            case CreateDatabase():
                self._create_database(change, said)
            case AlterDatabase(name=name, charset=charset):
                self._alter_database(self._fold(name or said.query.schema), charset)
            case DropDatabase(name=name):
                self._drop_database(self._fold(name), said, place)
            case NoChange():
                pass

    def _create(self, create: CreateTable, said: _Said, place: Place) -> None:
        key = self._key(create.name, said.query)
        if create.is_temporary:
            self.catalogue.temporary.add(_temporary(key, said))
            return
        held = self.catalogue.entries.get(key)
        if create.if_not_exists and not self._is_absent(key):
            if held is None:
                why = "CREATE TABLE IF NOT EXISTS, and it is not known whether the table existed"
                self._note(key, place, Source.STATEMENT, why=why, statement=said.text)
            return  # it existed: nothing was done
        if create.like is not None:
            definition = self._like(create.like, key, said)
        else:
            definition = definition_of(
                replace(create, name=TableName(key.schema, key.table)),
                schema=key.schema,
                database_charset=self._database_charset(key.schema),
                timestamps=said.timestamps,
            )
        self._note(key, place, Source.STATEMENT, definition=definition, statement=said.text)

    def _like(self, name: TableName, key: TableKey, said: _Said) -> TableDefinition:
        model = self._key(name, said.query)
        held = self.catalogue.entries.get(model)
        if held is None or held.definition is None or self._is_temporary(model, said):
            raise CannotFollow(why=f"CREATE TABLE LIKE {model}, whose definition is not known")
        # Foreign keys are not copied (docs, "CREATE TABLE ... LIKE Statement").
        return replace(held.definition, schema=key.schema, table=key.table, foreign_keys=())

    def _alter(self, alter: AlterTable, said: _Said, place: Place) -> None:
        key = self._key(alter.name, said.query)
        if not alter.actions or self._is_temporary(key, said):
            return
        held = self.catalogue.entries.get(key)
        renames = [action for action in alter.actions if isinstance(action, RenameTo)]
        if len(renames) < len(alter.actions):
            if held is None or held.state is State.ABSENT:
                self._note(key, place, Source.STATEMENT, why=NEVER_SEEN, statement=said.text)
            elif held.definition is not None:
                self._note(
                    key,
                    place,
                    Source.STATEMENT,
                    definition=altered(
                        held.definition,
                        alter,
                        database_charset=self._database_charset(key.schema),
                        timestamps=said.timestamps,
                    ),
                    statement=said.text,
                )
        for action in renames:
            self._rename(key, self._key(action.name, said.query), said, place)

    def _rename(self, old: TableKey, new: TableKey, said: _Said, place: Place) -> None:
        if self._is_temporary(old, said):
            self.catalogue.temporary.remove(_temporary(old, said))
            self.catalogue.temporary.add(_temporary(new, said))
            return
        held = self.catalogue.entries.get(old)
        if held is None and self._is_absent(old):
            return  # a view: all tables of this database are known
        text = said.text
        self._note(old, place, Source.STATEMENT, statement=text)
        if held is None or held.definition is None:
            why = held.why if held is not None and held.why else NEVER_SEEN
            self._note(new, place, Source.STATEMENT, why=why, statement=text)
            return
        moved = replace(held.definition, schema=new.schema, table=new.table)
        self._note(new, place, Source.STATEMENT, definition=moved, statement=text)

    def _drop(self, drop: DropTables, said: _Said, place: Place) -> None:
        for name in drop.names:
            key = self._key(name, said.query)
            if self._is_temporary(key, said):
                self.catalogue.temporary.remove(_temporary(key, said))
            elif not drop.is_temporary:
                self._note(key, place, Source.STATEMENT, statement=said.text)

    def _create_database(self, create: CreateDatabase, said: _Said) -> None:
        name = self._fold(create.name)
        if create.if_not_exists:
            return  # if it existed, nothing changed; if not, only its default charset is lost
        server = CHARSET_OF_COLLATION.get(said.query.collation_server or 0)
        self.catalogue.databases[name] = Database(create.charset or server, is_whole=True)

    def _alter_database(self, name: str, charset: str | None) -> None:
        held = self.catalogue.databases.get(name, Database(None, is_whole=False))
        if charset is not None:
            self.catalogue.databases[name] = replace(held, charset=charset)

    def _drop_database(self, name: str, said: _Said, place: Place) -> None:
        self.catalogue.databases.pop(name, None)
        for key, held in sorted(self.catalogue.entries.items(), key=lambda item: item[0]):
            if key.schema == name and held.state is not State.ABSENT:
                self._note(key, place, Source.STATEMENT, statement=said.text)

    # ---- rows

    def _take_table_map(self, event: Event, table: TableMap) -> None:
        key = TableKey(self._fold(table.schema), self._fold(table.table))
        place = Place(event.file, event.start)
        held = self.catalogue.entries.get(key)
        if held is not None and held.definition is not None:
            if self._is_checked(key, held.definition, table):
                return
            why = misfit(held.definition, table)
            if why is None:
                self._checked[key] = (held.definition, table)
                return
        else:
            why = held.why if held is not None and held.why else NEVER_SEEN
        try:
            definition = definition_from_table_map(table)
        except CannotFollow:
            if held is None or held.state is not State.UNKNOWN:
                self._note(key, place, Source.TABLE_MAP, why=why)
            return
        self._note(key, place, Source.TABLE_MAP, definition=definition)

    def _is_checked(self, key: TableKey, definition: TableDefinition, table: TableMap) -> bool:
        checked = self._checked.get(key)
        return (
            checked is not None
            and checked[0] is definition
            and replace(checked[1], table_id=table.table_id) == table
        )

    # ---- leaves

    def _note(
        self,
        key: TableKey,
        place: Place,
        source: Source,
        *,
        definition: TableDefinition | None = None,
        why: str = "",
        statement: str = "",
    ) -> None:
        state = State.KNOWN if definition is not None else State.UNKNOWN if why else State.ABSENT
        entry = Entry(
            key=key,
            place=place,
            state=state,
            source=source,
            definition=definition,
            why=why,
            gtid=self._gtid,
            statement=statement[:STATEMENT_SHOWN_MAX],
        )
        self.catalogue.entries[key] = entry
        self._changes.append(entry)

    def _key(self, name: TableName, query: Query) -> TableKey:
        """Return the key of a table name; the default schema is that of the session."""
        return TableKey(self._fold(name.schema or query.schema), self._fold(name.table))

    def _fold(self, name: str) -> str:
        return name.lower() if self._facts.folds_names else name

    def _is_absent(self, key: TableKey) -> bool:
        """Return whether the table certainly does not exist."""
        held = self.catalogue.entries.get(key)
        if held is not None:
            return held.state is State.ABSENT
        database = self.catalogue.databases.get(key.schema)
        return database is not None and database.is_whole

    def _is_temporary(self, key: TableKey, said: _Said) -> bool:
        return _temporary(key, said) in self.catalogue.temporary

    def _database_charset(self, schema: str) -> str | None:
        database = self.catalogue.databases.get(schema)
        return database.charset if database is not None else None


def _change_of(said: _Said) -> Change:
    """Parse a statement. Raises CannotFollow for one that failed: it may be applied in part."""
    change = said.statement.change()
    error = said.query.error_code
    if isinstance(change, NoChange):
        return change
    if said.statement.broken:
        raise CannotFollow(why=said.statement.broken)
    # A DROP TABLE with a missing table still drops the others: afterwards none of them exists.
    if error and not (error == _ER_BAD_TABLE_ERROR and isinstance(change, DropTables)):
        raise CannotFollow(why=f"the statement ended with error {error} on its server")
    return change


def _temporary(key: TableKey, said: _Said) -> TemporaryTable:
    return TemporaryTable(said.event.header.server_id, said.query.thread_id, key)
