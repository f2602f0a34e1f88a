"""Which statements a script may do again, and what of a statement a plan shows."""

import pytest

from repair.sql.unguarded import checks_nothing

ADDING = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT)",
    "create database d",
    "CREATE UNIQUE INDEX i ON t (a)",
    "CREATE DEFINER=`root`@`%` TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET @a = (SELECT 1)",
    "CREATE USER 'a'@'%' IDENTIFIED WITH 'caching_sha2_password' AS 'x'",
    "GRANT SELECT ON d.* TO 'a'@'%'",
    "ALTER TABLE t ADD COLUMN c INT",
    "ALTER TABLE `a b`.`t``x` ADD KEY (c)",
    "SAVEPOINT `s`",
    "ROLLBACK TO `s`",
)
OTHERS = (
    "TRUNCATE TABLE d.n",
    "DROP TABLE `t`",
    "DROP DATABASE d",
    "RENAME TABLE a TO b",
    "ALTER TABLE t DROP COLUMN c",
    "ALTER TABLE t ADD COLUMN c INT, DROP COLUMN d",
    "ALTER TABLE t ADD COLUMN c INT, ENGINE=BLACKHOLE",
    "ALTER TABLE t ADD c INT /*!50100 , DROP d */",
    "ALTER IGNORE TABLE t ADD UNIQUE (a)",
    "ALTER TABLE t MODIFY a TINYINT",
    "ALTER USER a IDENTIFIED BY 'x'",
    "CREATE OR REPLACE VIEW v AS SELECT 1",
    "CREATE  OR /**/ REPLACE VIEW v AS SELECT 1",
    "CREATE TEMPORARY TABLE t (a INT)",
    "CREATE TABLE t SELECT * FROM u",
    "CREATE TABLE t TABLE u",
    "GRANT USAGE ON *.* TO a IDENTIFIED BY PASSWORD '*0'",
    "INSERT INTO t SELECT * FROM u",
    "UPDATE t SET n = n + 1",
    "DELETE FROM t",
    "/* a comment */ TRUNCATE t",
    "",
)


@pytest.mark.parametrize("sql", ADDING)
def test_what_only_adds_may_be_done_again(sql: str) -> None:
    assert not checks_nothing(sql.encode())


@pytest.mark.parametrize("sql", OTHERS)
def test_what_may_change_other_work_is_not_done_again(sql: str) -> None:
    assert checks_nothing(sql.encode())
