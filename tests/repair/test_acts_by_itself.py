"""Which statements create what acts by itself."""

import pytest

from repair.sql.acts_by_itself import Acting, acting

D = b"CREATE DEFINER=`root`@`local host` "


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        (D + b"TRIGGER `x` BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1", ("d", "t")),
        (
            D + b"TRIGGER IF NOT EXISTS x AFTER DELETE ON `e`.`on t` FOR EACH ROW DO 1",
            ("e", "on t"),
        ),
        (D + b"TRIGGER x AFTER DELETE ON e . t\n FOR EACH\tROW FOLLOWS y DO 1", ("e", "t")),
        (b"create trigger `a``b` after update on `e``e`.t for each row do 1", ("e`e", "t")),
        (D + b"TRIGGER odd /* ON t FOR */", ("", "")),
    ],
)
def test_a_trigger_and_its_table(sql: bytes, name: tuple[str, str]) -> None:
    found = acting("d", sql, "shown")
    assert found == Acting("shown", is_event=False, schema=name[0], table=name[1])
    assert found.fires_on([("f", "t"), (name[0].upper(), name[1].upper())])
    assert found.fires_on([("f", "f")]) is (not name[1])
    assert not found.fires_on([])


@pytest.mark.parametrize(
    "sql",
    [
        b"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO SELECT 1",
        D + b"EVENT IF NOT EXISTS e ON SCHEDULE AT NOW() DO SELECT 1",
        b"CREATE DEFINER = CURRENT_USER EVENT e ON SCHEDULE AT NOW() DO SELECT 1",
        b"CREATE DEFINER='a b'@'%' EVENT e ON SCHEDULE AT NOW() DO SELECT 1",
        D + b"/* what comes is not known */ EVENT e",
    ],
)
def test_an_event(sql: bytes) -> None:
    found = acting("d", sql, "shown")
    assert found == Acting("shown", is_event=True)
    assert not found.fires_on([("d", "t")])


@pytest.mark.parametrize(
    "sql",
    [
        b"CREATE TABLE event (a INT)",
        b"CREATE DATABASE `trigger`",
        D + b"PROCEDURE p() SELECT 1",
        D + b"FUNCTION f() RETURNS INT RETURN 1",
        D + b"SQL SECURITY DEFINER VIEW v AS SELECT 1",
        b"CREATE OR REPLACE VIEW v AS SELECT 1",
        b"ALTER TABLE t ADD event INT",
    ],
)
def test_what_does_nothing_until_it_is_used(sql: bytes) -> None:
    assert acting("d", sql, "shown") is None
