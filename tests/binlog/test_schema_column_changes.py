"""Which statements change the columns of a table, so that its definition of now is not that of then."""

import pytest

from binlog.schema.column_changes import ColumnChanges, LogPlace
from tests.binlog.test_schema_tracker import events_of

# The session's current schema in these logs is d.
CHANGES_T = [
    "ALTER TABLE t MODIFY b int FIRST",
    "ALTER TABLE T CHANGE a a int AFTER b",
    "ALTER TABLE d.t MODIFY e enum('b','a')",
    "ALTER TABLE t ADD c int FIRST",
    "ALTER TABLE t DROP COLUMN a",
    "ALTER TABLE t ADD KEY (a), RENAME COLUMN a TO b",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
    "ALTER TABLE t RENAME TO t2",
    "ALTER TABLE t2 RENAME TO t",
    "RENAME TABLE t2 TO t3, t TO t2, t3 TO t",
    "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE x WITHOUT VALIDATION",
    "ALTER TABLE x EXCHANGE PARTITION p0 WITH TABLE T",
    "ALTER TABLE t DISCARD PARTITION p0 TABLESPACE",
    "ALTER TABLE t IMPORT PARTITION ALL TABLESPACE",
    "ALTER TABLE t IMPORT TABLESPACE",
    "DROP TABLE t",
    "DROP TABLE IF EXISTS x, t",
    "CREATE TABLE t (b int, a int)",
    "CREATE TABLE t LIKE t2",
    "DROP DATABASE d",
    "DROP DATABASE D",
    "ALTER TABLE t SOMETHING NEW",
    "ALTER SOMETHING NEW",
]
LEAVES_T = [
    "ALTER TABLE t ADD KEY (a), DROP KEY b, RENAME KEY c TO e",
    "ALTER TABLE t COMMENT 'x', ENGINE = InnoDB",
    "ALTER TABLE t DEFAULT CHARACTER SET latin1",
    "ALTER TABLE other MODIFY b int FIRST",
    "ALTER TABLE e.t MODIFY b int FIRST",
    "ALTER TABLE t2 SOMETHING NEW",
    "CREATE INDEX i ON t (a)",
    "DROP INDEX i ON t",
    "CREATE TABLE IF NOT EXISTS t (b int)",
    "CREATE TEMPORARY TABLE t (b int)",
    "DROP TEMPORARY TABLE t",
    "TRUNCATE TABLE t",
    "ALTER TABLE t TRUNCATE PARTITION p0",
    "ALTER TABLE x EXCHANGE PARTITION p0 WITH TABLE e.t",
    "DROP DATABASE e",
    "CREATE VIEW v AS SELECT 1",
    "INSERT INTO t VALUES (1)",
]


def changes(*statements: str) -> ColumnChanges:
    found = ColumnChanges()
    for event in events_of(*statements):
        found.take(event, log=3)
    return found


@pytest.mark.parametrize("statement", CHANGES_T)
def test_a_change_is_found(statement: str) -> None:
    found = changes(statement).behind("d", "t", LogPlace(0, 0))
    assert found is not None
    assert found.startswith("binlog.000007:")


@pytest.mark.parametrize("statement", LEAVES_T)
def test_what_changes_no_column_is_none(statement: str) -> None:
    assert changes(statement).behind("d", "t", LogPlace(0, 0)) is None


def test_only_what_lies_behind_counts() -> None:
    alter = "ALTER TABLE t DROP COLUMN a"
    events = events_of("INSERT INTO t VALUES (1)", alter, "INSERT INTO t VALUES (1)")
    found = changes("INSERT INTO t VALUES (1)", alter, "INSERT INTO t VALUES (1)")
    [at] = [event for event in events if getattr(event.body, "sql", b"") == alter.encode()]
    assert found.behind("d", "t", LogPlace(3, at.start))
    assert found.behind("d", "t", LogPlace(2, at.end))
    assert found.behind("d", "t", LogPlace(3, at.end)) is None
    assert found.behind("d", "t", LogPlace(4, 0)) is None
