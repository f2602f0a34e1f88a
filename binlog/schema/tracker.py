"""Follows a server's tables through its binary log, event by event.

How it works
------------
The state is a `Catalogue`: databases, temporary tables, and for each table the latest entry: KNOWN
with its definition, UNKNOWN with a reason, or ABSENT. `take` receives an event and returns the
entries that it makes. It reads no file and queries no server; payloads must be decompressed.

    event               what it changes
    FORMAT_DESCRIPTION  the version that wrote the log: it decides which /*!NNNNN comments are code
    GTID                the GTID that the next entries get
    QUERY               entries, databases and temporary tables, if it is DDL
    TABLE_MAP           the entry of its table, if it does not fit, or is unknown
    any other           nothing

* A statement is applied only if every word is understood and all facts that it depends on are
  known. Otherwise its tables become UNKNOWN there. If even they cannot be read, all tables do.
* Each TABLE_MAP is compared with the definition before its rows are read. A misfit makes the table
  UNKNOWN. If the TABLE_MAP has full metadata, a misfit or unknown table becomes KNOWN from it.

    CREATE TABLE t (a INT, b INT)    KNOWN: a int, b int
    ALTER TABLE t DROP a             KNOWN: b int
    ALTER TABLE t, a new syntax      UNKNOWN: expected an action of ALTER TABLE, found: …
    ALTER TABLE t ADD c INT          no entry: it stays UNKNOWN, with the first reason
    TABLE_MAP t, full metadata       KNOWN, from the metadata

Invariants:
1. A definition is never guessed, because a wrong one assigns values to wrong columns.
2. `catalogue` changes only by the entries that are returned, by the databases and by the temporary
   tables. A store of the entries can return to any place (table_history.py).
3. A table without an entry is not ABSENT. The log may begin after its CREATE TABLE. It is ABSENT
   only if the log created its database, so that all its tables are known (`Database.is_whole`).
4. A statement that changed nothing makes no entry: CREATE TABLE IF NOT EXISTS of a table that
   exists, or a statement on a temporary table, which hides the other one in its session.

Three statements show why the present entry, and not the text, decides. First, RENAME TABLE a TO x,
b TO a, x TO b exchanges two tables. Each pair is applied to the result of the one before, so `a`
gets the definition of `b`. Second, CREATE TABLE n LIKE m copies the entry of `m` at that place. If
`m` is UNKNOWN there, so is `n`. Third, DROP TABLE with a table that is missing ends with error 1051
and drops the others. Any other error of a statement makes its tables UNKNOWN: the server may have
applied a part of it.

Simpler ways fail:
* The types in a TABLE_MAP alone are not enough: two INT columns that changed places look the same.
  So a definition that fits is kept, but none is made from types without names.
* SHOW CREATE TABLE shows the table now. For older rows it is right only if no DDL is between, which
  is what this module finds out.
* To skip a clause that is not understood would be right for most clauses, and silently wrong for
  one that adds, drops or moves a column. An unknown definition costs only a query to a server.
* A statement's text does not show its database, the default of TIMESTAMP columns, or the session of
  a temporary table. They are in the event (tracked_statement.py), or are facts of an old server.
"""

from collections.abc import Iterable
from dataclasses import replace

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
from binlog.schema.logged_statements import LoggedStatement, version_number
from binlog.schema.metadata import definition_from_table_map
from binlog.schema.schema_facts import SchemaFacts
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
)
from binlog.schema.tracked_statement import TrackedStatement

NEVER_SEEN = "the followed log has contained no statement on it"


class SchemaTracker:
    """The tables of one server at the place of the last event that was taken."""

    def __init__(self, catalogue: Catalogue | None = None, *, facts: SchemaFacts) -> None:
        # The state at the place of the last event: the latest entry of each table.
        self.catalogue = catalogue or Catalogue()
        self._facts = facts
        # Of the transaction that the events belong to; None if it is anonymous.
        self._gtid: str | None = None
        # Of the server that wrote the log. A log without a description has comments of any version.
        self._version = ANY_VERSION
        # By table: the last definition and TABLE_MAP that were compared, and fitted.
        self._checked: dict[TableKey, tuple[TableDefinition, TableMap]] = {}
        # The entries of the event that is being taken, in order.
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
        """Make every table unknown, because events before this place are missing.

        No database is whole any more: the missing events may have created tables in it.
        """
        self._changes = []
        self._lose(self.catalogue.entries, place, why, statement="")
        self.catalogue.databases.clear()
        return tuple(self._changes)

    def adopt(self, entry: Entry, definition: TableDefinition | None, source: Source) -> Entry:
        """Replace an unknown definition by one from another source; None: the table is absent.

        The entry keeps its place: the source shows what has been valid since then. After the source
        answered, the caller read the log to its end, and found no later entry of the table.
        """
        assert self.catalogue.entries.get(entry.key) is entry, "nothing has changed since"
        state = State.ABSENT if definition is None else State.KNOWN
        known = replace(entry, state=state, source=source, definition=definition, why="")
        self.catalogue.entries[entry.key] = known
        return known

    # ---- statements

    def _take_statement(self, event: Event, query: Query) -> None:
        """Apply a statement, or lose what it may have changed."""
        statement = LoggedStatement.of(query, server_version=self._version)
        if statement is None:
            return
        place = Place(event.file, event.start)
        said = TrackedStatement(event, query, statement, self._facts.timestamps_of(query))
        try:
            self._apply(said.change(), said, place)
        except CannotFollow as unclear:
            self._lose_named(said, place, unclear.why)

    def _lose_named(self, said: TrackedStatement, place: Place, why: str) -> None:
        """Make the tables of a statement unknown; all tables if its names cannot be read."""
        try:
            names = said.statement.named_tables()
        except CannotFollow:
            self._lose(self.catalogue.entries, place, why, statement=said.text)
            self.catalogue.databases.clear()
            return
        keys = [self._key(name, said.query) for name in names]
        self._lose(
            [key for key in keys if not said.sees_temporary(key, self.catalogue)],
            place,
            why,
            said.text,
        )

    def _lose(self, keys: Iterable[TableKey], place: Place, why: str, statement: str) -> None:
        """Note tables as UNKNOWN, in the order of their names: the same log, the same entries."""
        for key in sorted(keys):
            self._note(key, place, Source.STATEMENT, why=why, statement=statement)

    def _apply(self, change: Change, said: TrackedStatement, place: Place) -> None:
        """Apply a change that was understood as a whole. Raises CannotFollow if a fact is missing.

        Nothing is noted before the missing fact is found, except by the parts of one statement that
        are independent: the pairs of RENAME TABLE.
        """
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

    def _create(self, create: CreateTable, said: TrackedStatement, place: Place) -> None:
        """Note the new table. A logged CREATE TABLE replaces what the entry had.

        IF NOT EXISTS is also logged where the table existed. Without an entry, both are possible.
        """
        key = self._key(create.name, said.query)
        if create.is_temporary:
            self.catalogue.temporary.add(said.temporary(key))
            return
        held = self.catalogue.entries.get(key)
        if create.if_not_exists and not self.catalogue.is_absent(key):
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
                database_charset=self.catalogue.charset_of(key.schema),
                timestamps=said.timestamps,
            )
        self._note(key, place, Source.STATEMENT, definition=definition, statement=said.text)

    def _like(self, name: TableName, key: TableKey, said: TrackedStatement) -> TableDefinition:
        """Return the copy of a definition under another name. Raises CannotFollow."""
        model = self._key(name, said.query)
        held = self.catalogue.entries.get(model)
        if held is None or held.definition is None or said.sees_temporary(model, self.catalogue):
            raise CannotFollow(why=f"CREATE TABLE LIKE {model}, whose definition is not known")
        # Foreign keys are not copied (docs, "CREATE TABLE ... LIKE Statement").
        return replace(held.definition, schema=key.schema, table=key.table, foreign_keys=())

    def _alter(self, alter: AlterTable, said: TrackedStatement, place: Place) -> None:
        """Apply the actions to the definition, and then the new name, if there is one.

        An UNKNOWN table keeps its entry, with the first reason, also under a new name.
        """
        key = self._key(alter.name, said.query)
        if not alter.actions or said.sees_temporary(key, self.catalogue):
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
                        database_charset=self.catalogue.charset_of(key.schema),
                        timestamps=said.timestamps,
                    ),
                    statement=said.text,
                )
        for action in renames:
            self._rename(key, self._key(action.name, said.query), said, place)

    def _rename(self, old: TableKey, new: TableKey, said: TrackedStatement, place: Place) -> None:
        """Move an entry to another name: the old name is ABSENT, also if nothing is known of it."""
        if said.sees_temporary(old, self.catalogue):
            self.catalogue.temporary.remove(said.temporary(old))
            self.catalogue.temporary.add(said.temporary(new))
            return
        held = self.catalogue.entries.get(old)
        if held is None and self.catalogue.is_absent(old):
            return  # a view: all tables of this database are known
        text = said.text
        self._note(old, place, Source.STATEMENT, statement=text)
        if held is None or held.definition is None:
            why = held.why if held is not None and held.why else NEVER_SEEN
            self._note(new, place, Source.STATEMENT, why=why, statement=text)
            return
        moved = replace(held.definition, schema=new.schema, table=new.table)
        self._note(new, place, Source.STATEMENT, definition=moved, statement=text)

    def _drop(self, drop: DropTables, said: TrackedStatement, place: Place) -> None:
        """Note each table as ABSENT, or forget it where the session has a temporary one.

        A server logs DROP TEMPORARY TABLE also for tables that it never logged.
        """
        for name in drop.names:
            key = self._key(name, said.query)
            if said.sees_temporary(key, self.catalogue):
                self.catalogue.temporary.remove(said.temporary(key))
            elif not drop.is_temporary:
                self._note(key, place, Source.STATEMENT, statement=said.text)

    def _create_database(self, create: CreateDatabase, said: TrackedStatement) -> None:
        """From here on all tables of the database are known: a table without an entry is absent."""
        name = self._fold(create.name)
        if create.if_not_exists:
            return  # if it existed, nothing changed; if not, only its default charset is lost
        server = CHARSET_OF_COLLATION.get(said.query.collation_server or 0)
        self.catalogue.databases[name] = Database(create.charset or server, is_whole=True)

    def _alter_database(self, name: str, charset: str | None) -> None:
        """Keep the new default charset. It is that of later tables; present ones do not change."""
        held = self.catalogue.databases.get(name, Database(None, is_whole=False))
        if charset is not None:
            self.catalogue.databases[name] = replace(held, charset=charset)

    def _drop_database(self, name: str, said: TrackedStatement, place: Place) -> None:
        """Note each table of the database as ABSENT. Tables without an entry need none."""
        self.catalogue.databases.pop(name, None)
        for key, held in sorted(self.catalogue.entries.items(), key=lambda item: item[0]):
            if key.schema == name and held.state is not State.ABSENT:
                self._note(key, place, Source.STATEMENT, statement=said.text)

    # ---- rows

    def _take_table_map(self, event: Event, table: TableMap) -> None:
        """Compare a table with what its rows need, and learn it from full metadata if it fails.

        An entry that is UNKNOWN already keeps its reason: it is nearer to the cause.
        """
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
        """Return whether this TABLE_MAP fitted this definition before, but for its table id.

        A log has one for each statement, and nearly all are alike: the comparison costs more.
        """
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
        """Make the entry of a table: KNOWN with a definition, UNKNOWN with a reason, or ABSENT."""
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
        """Return the key of a table name; the default schema is that of the session.

        A log has names as clients wrote them. Servers that fold names take `T` and `t` as one.
        """
        return TableKey(self._fold(name.schema or query.schema), self._fold(name.table))

    def _fold(self, name: str) -> str:
        return name.lower() if self._facts.folds_names else name
