"""What the tracker makes of statements and rows no server need be asked for."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlog.event_types import EventType
from binlog.events import Event
from binlog.scan import scan_events
from binlog.schema.apply import altered
from binlog.schema.changes import AlterTable, NoChange
from binlog.schema.column_types import Timestamps
from binlog.schema.documents import definition_document, definition_of_document
from binlog.schema.grammar import named_tables, read_statement
from binlog.schema.schema_facts import SchemaFacts
from binlog.schema.show_create import definition_from_create
from binlog.schema.table_definitions import CannotFollow, TableDefinition
from binlog.schema.table_history import (
    Entry,
    Place,
    Source,
    State,
    TableKey,
    definition_if_known,
    entry_at,
)
from binlog.schema.tracker import NEVER_SEEN, SchemaTracker
from tests.binlog.builders import Log, query_body, table_map_body

T = TableKey("d", "t")
LONG = 3


def events_of(*statements: str | bytes, version: str = "9.7.4") -> list[Event]:
    """Statements as a server would log them; bytes are the body of a TABLE_MAP."""
    log = Log(version=version)
    for number, statement in enumerate(statements, 1):
        log.gtid(number)
        if isinstance(statement, bytes):
            log.add(EventType.TABLE_MAP, statement)
        else:
            log.query(statement)
    return list(scan_events([bytes(log)], file="binlog.000007"))


def tracked(
    *statements: str | bytes, facts: SchemaFacts | None = None, version: str = "9.7.4"
) -> tuple[SchemaTracker, list[Entry]]:
    tracker = SchemaTracker(facts=facts or SchemaFacts())
    entries = [e for event in events_of(*statements, version=version) for e in tracker.take(event)]
    return tracker, entries


def after(*statements: str | bytes, key: TableKey = T, **how: object) -> Entry | None:
    tracker, _ = tracked(*statements, **how)  # type: ignore[arg-type]
    return tracker.catalogue.entries.get(key)


def names(entry: Entry | None) -> list[str]:
    assert entry is not None
    assert entry.definition is not None, entry.why
    return [column.name for column in entry.definition.columns]


def why(entry: Entry | None) -> str:
    assert entry is not None
    assert entry.state is State.UNKNOWN
    return entry.why


CREATE = "CREATE TABLE t (a int, b int, c int)"


@pytest.mark.parametrize(
    ("alter", "expected"),
    [
        ("ADD x int", "a b c x"),
        ("ADD x int FIRST, ADD y int AFTER x", "x y a b c"),
        ("ADD COLUMN (x int, y int)", "a b c x y"),
        ("DROP b, ADD b int", "a c b"),
        ("MODIFY c int FIRST", "c a b"),
        ("CHANGE a z int AFTER c", "b c z"),
        ("RENAME COLUMN a TO b, RENAME COLUMN b TO a", "b a c"),
        ("CHANGE a A bigint", "A b c"),
        ("MODIFY a int AFTER c, MODIFY b int AFTER a", "c a b"),
        ("ALTER a SET DEFAULT 1, ALGORITHM=INPLACE", "a b c"),
        ("ORDER BY a, b, ADD x int", "a b c x"),
        ("DROP a, ADD x int AFTER b", "b x c"),
    ],
)
def test_the_order_of_columns(alter: str, expected: str) -> None:
    assert names(after(CREATE, f"ALTER TABLE t {alter}")) == expected.split()


@pytest.mark.parametrize(
    ("statements", "primary", "unique"),
    [
        (["ADD UNIQUE (a), ADD UNIQUE (a, b), ADD KEY (a)"], "", "a:a a_2:a,b"),
        (["ADD KEY (a)", "ADD UNIQUE (a)"], "", "a_2:a"),
        (["ADD PRIMARY KEY (c, a), ADD UNIQUE u (b)", "DROP c"], "a", "u:b"),
        (["ADD UNIQUE u (b, c)", "DROP b, CHANGE c z int"], "", "u:z"),
        (["ADD UNIQUE u (b)", "DROP b"], "", ""),
        (["ADD UNIQUE u (b)", "RENAME KEY u TO w", "DROP CONSTRAINT w"], "", ""),
        (["MODIFY a int PRIMARY KEY, MODIFY b int UNIQUE"], "a", "b:b"),
        (["ADD PRIMARY KEY (a)", "DROP PRIMARY KEY"], "", ""),
        (
            ["ADD UNIQUE ((a + 1)), ADD UNIQUE ((b + 1))"],
            "",
            "functional_index: functional_index_2:",
        ),
        (["ADD FULLTEXT f (a), ADD SPATIAL INDEX s (b), DROP KEY f"], "", ""),
    ],
)
def test_keys(statements: list[str], primary: str, unique: str) -> None:
    entry = after(CREATE, *(f"ALTER TABLE t {each}" for each in statements))
    if "DROP KEY f" in statements[-1]:
        assert why(entry) == "there is no key f"  # a statement drops what was there before it
        return
    assert entry is not None
    assert entry.definition is not None, entry.why
    assert ",".join(entry.definition.primary_key) == primary
    keys = [f"{key.name}:{','.join(key.columns)}" for key in entry.definition.unique_keys]
    assert " ".join(keys) == unique


def test_indexes_as_statements_of_their_own() -> None:
    entry = after(
        CREATE,
        "CREATE UNIQUE INDEX u USING BTREE ON t (a, b(3)) COMMENT 'x' LOCK=NONE",
        "CREATE FULLTEXT INDEX f ON t (c) WITH PARSER ngram",
        "CREATE INDEX k ON t (c DESC) INVISIBLE",
        "DROP INDEX k ON d.t ALGORITHM=INPLACE",
    )
    assert entry is not None
    assert entry.definition is not None, entry.why
    [key] = entry.definition.unique_keys
    assert (key.name, key.columns, key.is_exact) == ("u", ("a", "b"), False)
    assert [key.name for key in entry.definition.plain_keys] == ["f"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("ALTER TABLE t ADD x hologram", "expected a type, not hologram"),
        ("ALTER TABLE t SPARKLE", "expected an action of ALTER TABLE"),
        ("ALTER TABLE t DROP nobody", "there is no column nobody"),
        ("ALTER TABLE t DROP KEY nobody", "there is no key nobody"),
        ("ALTER TABLE t ADD x int AFTER nobody", "there is no column nobody (in AFTER)"),
        ("ALTER TABLE t DROP a, MODIFY a int", "one column changed twice"),
        ("ALTER TABLE t ADD x text", "takes its character set from the database"),
        ("ALTER TABLE t CONVERT TO CHARACTER SET DEFAULT", "default character set of d"),
        ("ALTER TABLE t ADD x timestamp", "explicit_defaults_for_timestamp"),
        ("CREATE TABLE t (a int) SELECT 1", "come from elsewhere"),
        ("CREATE TABLE t LIKE nobody", "CREATE TABLE LIKE d.nobody, whose definition is not known"),
        ("ALTER TABLE t ADD x int, /* open", "ends inside a comment"),
    ],
)
def test_what_is_not_certain_is_unknown_from_there_on(statement: str, reason: str) -> None:
    tracker, entries = tracked(CREATE, statement)
    assert reason in why(tracker.catalogue.entries[T])
    assert entries[-1].statement == statement
    assert [entry.place.position for entry in entries] == sorted(
        entry.place.position for entry in entries
    )
    # What comes after does not make it known, but for a statement that says all.
    assert why(after(CREATE, statement, "ALTER TABLE t ADD y int"))
    assert names(after(CREATE, statement, "DROP TABLE t", "CREATE TABLE t (z int)")) == ["z"]


def test_a_statement_whose_tables_cannot_be_read_makes_all_unknown() -> None:
    tracker, _ = tracked("CREATE DATABASE d", CREATE, "CREATE TABLE u (a int)", "DROP TABLE 5.5")
    assert {entry.state for entry in tracker.catalogue.entries.values()} == {State.UNKNOWN}
    assert tracker.catalogue.databases == {}


def test_a_statement_that_failed_on_its_server() -> None:
    log = Log()
    log.query(CREATE)
    log.query("ALTER TABLE t ADD x int", error_code=1317)
    log.query("CREATE TABLE u (a int)")
    log.query("DROP TABLE u, nobody", error_code=1051)
    tracker = SchemaTracker(facts=SchemaFacts())
    for event in scan_events([bytes(log)], file="binlog.000001"):
        tracker.take(event)
    assert why(tracker.catalogue.entries[T]) == "the statement ended with error 1317 on its server"
    assert tracker.catalogue.entries[TableKey("d", "u")].state is State.ABSENT


def test_if_not_exists() -> None:
    maybe = "CREATE TABLE IF NOT EXISTS t (z int)"
    assert "whether the table existed" in why(after(maybe))
    assert names(after("CREATE DATABASE d", maybe)) == ["z"]
    assert names(after(CREATE, maybe)) == ["a", "b", "c"]
    assert names(after(CREATE, "DROP TABLE t", maybe)) == ["z"]
    assert after("CREATE DATABASE IF NOT EXISTS d", maybe) is not None
    assert "whether the table existed" in why(after("CREATE DATABASE IF NOT EXISTS d", maybe))


def test_temporary_tables_hide_others_and_are_not_tracked() -> None:
    tracker, entries = tracked(
        CREATE, "CREATE TEMPORARY TABLE t (x int)", "ALTER TABLE t ADD y int", "DROP TABLE t"
    )
    assert names(tracker.catalogue.entries[T]) == ["a", "b", "c"]
    assert len(entries) == 1
    assert tracker.catalogue.temporary == set()


def test_renames_are_atomic_and_carry_what_is_known() -> None:
    tracker, _ = tracked(CREATE, "CREATE TABLE u (x int)", "RENAME TABLE t TO v, u TO t, v TO u")
    assert names(tracker.catalogue.entries[T]) == ["x"]
    assert names(tracker.catalogue.entries[TableKey("d", "u")]) == ["a", "b", "c"]
    assert tracker.catalogue.entries[TableKey("d", "v")].state is State.ABSENT
    assert why(after("RENAME TABLE nobody TO t")) == NEVER_SEEN
    assert after("CREATE DATABASE d", "RENAME TABLE view TO t") is None


def test_databases() -> None:
    latin = "CREATE DATABASE d CHARACTER SET latin1"
    entry = after(latin, "CREATE TABLE t (a varchar(3))")
    assert entry is not None
    assert entry.definition is not None
    assert entry.definition.columns[0].charset == "latin1"
    gone = after(latin, CREATE, "DROP DATABASE d")
    assert gone is not None
    assert gone.state is State.ABSENT


def test_timestamps_and_names_depend_on_the_server() -> None:
    create = "CREATE TABLE T (a TIMESTAMP, B INT)"
    folding = SchemaFacts(Timestamps.NOT_NULL, folds_names=True)
    entry = after(create, facts=folding)
    assert entry is not None
    assert entry.definition is not None
    assert [column.is_nullable for column in entry.definition.columns] == [False, True]
    assert after(create, key=TableKey("d", "T"), facts=SchemaFacts(Timestamps.NULLABLE))


def test_a_row_event_that_does_not_fit_makes_the_table_unknown_before_its_rows() -> None:
    create = "CREATE TABLE t (a int NOT NULL, b int NOT NULL, c int NOT NULL)"
    two = table_map_body(bytes((LONG, LONG)), b"")
    three = table_map_body(bytes((LONG, LONG, LONG)), b"")
    assert names(after(create, three)) == ["a", "b", "c"]
    misfit = after(create, two)
    assert "Column count doesn't match value count: the definition has 3 columns" in why(misfit)
    assert misfit is not None
    assert misfit.source is Source.TABLE_MAP
    other = table_map_body(bytes((LONG, 8, LONG)), b"")
    assert "column 2, b, is int; the log has type 8" in why(after(create, other))
    assert why(after(two)) == NEVER_SEEN
    _, entries = tracked(two, two, two)
    assert len(entries) == 1
    assert "column 1, a, may not be NULL in the log" in why(after(CREATE, three))


def test_the_entry_that_holds_at_a_place() -> None:
    _, entries = tracked(CREATE, "ALTER TABLE t ADD x int", "DROP TABLE t")
    first, second, third = entries
    assert entry_at(entries, Place("binlog.000006", 10**9)) is None
    assert entry_at(entries, first.place) is first
    assert entry_at(entries, Place("binlog.000007", second.place.position - 1)) is first
    assert entry_at(entries, Place("binlog.000008", 4)) is third
    assert (
        definition_if_known(entry_at(entries, second.place), T, second.place) is second.definition
    )
    with pytest.raises(CannotFollow, match=r"not tracked at binlog\.000001:4"):
        definition_if_known(
            entry_at(entries, Place("binlog.000001", 4)), T, Place("binlog.000001", 4)
        )
    with pytest.raises(CannotFollow, match="the table does not exist since"):
        definition_if_known(entry_at(entries, third.place), T, third.place)
    assert Place("binlog.1000000", 4).order > Place("binlog.999999", 10**9).order


def test_statements_that_define_nothing_are_not_read() -> None:
    for statement in (
        "INSERT INTO t VALUES ('CREATE TABLE t (a int)')",
        "/* app */ UPDATE t SET a = 1",
        "BEGIN",
        "",
        "CREATE DEFINER=`a`@`b` VIEW v AS SELECT 1",
        "CREATE OR REPLACE SPATIAL REFERENCE SYSTEM 4120 NAME 'x' DEFINITION 'y'",
        "DROP FUNCTION IF EXISTS f",
        "ALTER USER u",
        "RENAME USER a TO b",
        "TRUNCATE TABLE t",
    ):
        assert isinstance(read_statement(statement), NoChange), statement


def test_a_definition_is_its_document() -> None:
    definition = definition_from_create(
        "CREATE TABLE `t` (`a` enum('x','y') NOT NULL, `b` int GENERATED ALWAYS AS (1) VIRTUAL"
        " /*!80023 INVISIBLE */, `c` bigint unsigned, PRIMARY KEY (`a`), UNIQUE KEY `u` (`c`),"
        " KEY `k` (`b`), CONSTRAINT `f` FOREIGN KEY (`c`) REFERENCES `p` (`c`)) CHARSET=latin1",
        schema="d",
    )
    again = definition_of_document(definition_document(definition))
    assert again == definition
    assert again.plain_keys == definition.plain_keys
    assert again.foreign_keys == definition.foreign_keys == (("c",),)


WORDS_OF_DDL = (
    "CREATE ALTER TABLE t u ( ) , ; ` ' \" /* */ /*!80000 -- ADD DROP COLUMN KEY PRIMARY int"
    " varchar(3) NOT NULL DEFAULT 1 AFTER FIRST RENAME TO MODIFY CHANGE a b CHARACTER SET utf8"
    " LIKE SELECT PARTITION BY UNIQUE enum('a') . 5 = CONVERT FOREIGN IF EXISTS"
)
WORDS = st.lists(
    st.sampled_from(WORDS_OF_DDL.split()),
    max_size=25,
)


@given(WORDS)
def test_any_text_is_a_change_or_cannot_be_followed(words: list[str]) -> None:
    base = definition_from_create("CREATE TABLE t (a int, b varchar(3)) CHARSET=utf8", schema="d")
    for text in (" ".join(words), "ALTER TABLE t " + " ".join(words)):
        try:
            change = read_statement(text)
            if isinstance(change, AlterTable):
                made = altered(base, change, database_charset=None)
                assert isinstance(made, TableDefinition)
        except CannotFollow as unclear:
            assert unclear.why  # noqa: PT017 - either answer is right
        try:
            named_tables(text)
        except CannotFollow as unclear:
            assert unclear.why  # noqa: PT017


def test_foreign_keys_that_come_later() -> None:
    one = after(CREATE, "ALTER TABLE t ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES p (a)")
    two = after(CREATE, "ALTER TABLE t ADD (x int, FOREIGN KEY (b, c) REFERENCES p (b, c))")
    for entry, expected in ((one, (("a",),)), (two, (("b", "c"),))):
        assert entry is not None
        assert entry.definition is not None
        assert entry.definition.foreign_keys == expected


def test_a_view_that_is_renamed_is_no_table() -> None:
    tracker, _ = tracked("CREATE DATABASE d", "CREATE VIEW v AS SELECT 1", "ALTER TABLE v RENAME w")
    assert not tracker.catalogue.entries.keys() & {TableKey("d", "v"), TableKey("d", "w")}


def test_a_statement_is_in_its_clients_character_set() -> None:
    log = Log()
    log.gtid(1)
    latin1 = b"\x04" + struct.pack("<HHH", 8, 8, 8)
    sql = "CREATE TABLE t (größe int)".encode("latin-1")
    log.add(EventType.QUERY, query_body(sql, variables=latin1))
    tracker = SchemaTracker(facts=SchemaFacts())
    for event in scan_events([bytes(log)], file="binlog.000007"):
        tracker.take(event)
    assert names(tracker.catalogue.entries.get(T)) == ["größe"]
