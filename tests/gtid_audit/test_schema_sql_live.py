"""The SQL of `schema drift`, run by the real client: what it leaves on the replica, and in order."""

import time

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair, wait_for
from tests.gtid_audit.test_schema_drift_live import (
    differences,
    drift,
    executed,
    not_logged,
    versions,
)
from topology.definitions.drift_statements import NOT_LOGGED

pytestmark = pytest.mark.slow  # a rare shape: make nightly

EVENT = "CREATE EVENT app.e ON SCHEDULE EVERY 1 SECOND DO INSERT INTO app.log VALUES ()"
STATUS = "SELECT STATUS FROM information_schema.EVENTS WHERE EVENT_NAME = 'e'"


def run_as_shown(source: Server, replica: Server, *, decided: bool = False) -> str:
    """Run the SQL of all differences, in the order of the document; return the SQL.

    `decided`: as an operator who drops what is more.
    """
    _, found = drift(source, replica)
    lines = [line for each in differences(found).values() for line in each["statements"]]
    if decided:
        lines = [line.replace("-- ALTER TABLE", "ALTER TABLE") for line in lines]
    text = "\n".join([NOT_LOGGED, *lines, ""])
    done = replica.client(text)
    assert done.returncode == 0, f"{done.stderr}\n{text}"
    return text


def with_objects(pair: Pair, *statements: str) -> tuple[Server, Server]:
    pair.a.execute("CREATE DATABASE app", "USE app", *statements)
    wait_for(pair.b, executed(pair.a))
    return pair.a, pair.b


def check_events(pair: Pair, words: str) -> None:
    log = "CREATE TABLE app.log (id INT AUTO_INCREMENT PRIMARY KEY)"
    off = "CREATE EVENT app.off ON SCHEDULE EVERY 1 DAY DISABLE DO SELECT 1"
    source, replica = with_objects(pair, log, EVENT, off)
    # An applier writes DISABLE ON REPLICA for both: no difference.
    assert (drift(source, replica)[0], versions(source, replica)[0]) == (0, 0)
    for change in (
        "ALTER EVENT app.e COMMENT 'ON COMPLETION PRESERVE ENABLE'",
        "ALTER EVENT app.e ENABLE COMMENT 'x'",
        "DROP EVENT app.e",
    ):
        not_logged(replica, change)
        text = run_as_shown(source, replica)
        assert f"PRESERVE {words} DO" in text
        assert "-- Not ENABLE: the event would run on the replica" in text
        assert ("decide which server runs it" in text) == (" ENABLE COMMENT" in change)
        assert replica.query(STATUS) != [("ENABLED",)]
        assert drift(source, replica)[0] == 0


def test_an_event_stays_disabled_on_a_9_7_replica(pair97: Pair) -> None:
    check_events(pair97, "DISABLE ON REPLICA")


@pytest.mark.slow
def test_an_event_stays_disabled_on_a_5_6_replica(pair56: Pair) -> None:
    check_events(pair56, "DISABLE ON SLAVE")


def test_an_event_is_disabled_where_no_role_is_known(pair97: Pair) -> None:
    source, replica = with_objects(pair97, EVENT.replace("app.log VALUES ()", "app.no VALUES (1)"))
    for server in (source, replica):
        server.execute("STOP REPLICA", "RESET REPLICA ALL")
    not_logged(replica, "DROP EVENT app.e")
    assert "is not known: the event is created disabled" in run_as_shown(source, replica)
    assert replica.query(STATUS) == [("DISABLED",)]


TABLES = (
    "CREATE TABLE par (id INT PRIMARY KEY)",
    (
        "CREATE TABLE chi (id INT PRIMARY KEY, p INT,"
        " CONSTRAINT fk FOREIGN KEY (p) REFERENCES par (id) ON DELETE CASCADE)"
    ),
    (
        "CREATE TABLE `x REFERENCES ``y` (id INT PRIMARY KEY, `a REFERENCES ``b` INT,"
        " CONSTRAINT `c REFERENCES ``d` FOREIGN KEY (`a REFERENCES ``b`) REFERENCES par (id))"
    ),
)
# What differs on the replica. Without an order, the server refuses the SQL: 1046, 1061, 1553.
CHANGED = (
    ("ALTER TABLE app.chi DROP FOREIGN KEY fk",),
    ("ALTER TABLE app.chi DROP FOREIGN KEY fk", "ALTER TABLE app.chi DROP INDEX fk"),
    (
        "ALTER TABLE app.chi DROP FOREIGN KEY fk",
        "ALTER TABLE app.chi DROP INDEX fk, ADD INDEX other (p)",
        "ALTER TABLE app.chi ADD CONSTRAINT fk FOREIGN KEY (p) REFERENCES app.par (id)",
    ),
    (
        "ALTER TABLE app.par ADD q INT, ADD KEY q (q)",
        "ALTER TABLE app.par ADD CONSTRAINT own FOREIGN KEY (q) REFERENCES app.par (id)",
    ),
    ("ALTER TABLE app.`x REFERENCES ``y` DROP FOREIGN KEY `c REFERENCES ``d`",),
)


def check_tables(pair: Pair) -> None:
    source, replica = with_objects(pair, *TABLES)
    for statements in CHANGED:
        not_logged(replica, *statements)
        text = run_as_shown(source, replica, decided=True)
        assert drift(source, replica)[0] == 0, text


def test_indexes_and_foreign_keys_in_order_on_9_7(pair97: Pair) -> None:
    check_tables(pair97)


@pytest.mark.slow
def test_indexes_and_foreign_keys_in_order_on_5_6(pair56: Pair) -> None:
    check_tables(pair56)


def trigger(name: str, place: str = "", *, adds: int = 1) -> str:
    event = f"CREATE TRIGGER app.{name} BEFORE INSERT ON app.t FOR EACH ROW {place}"
    return f"{event} SET NEW.b = NEW.b * 2 + {adds}"


DROP_ALL = tuple(f"DROP TRIGGER app.{name}" for name in ("ta", "tb", "tc"))
TRIGGERS = {
    "the first is missing": ("DROP TRIGGER app.tb",),
    "the second is missing": ("DROP TRIGGER app.ta",),
    "two are missing": ("DROP TRIGGER app.tb", "DROP TRIGGER app.tc"),
    "all are missing": DROP_ALL,
    "another order": (*DROP_ALL, trigger("ta", adds=2), trigger("tb"), trigger("tc", adds=3)),
    "another text": (*DROP_ALL, trigger("tb"), trigger("ta", adds=7), trigger("tc", adds=3)),
    "the first has another text": (
        "DROP TRIGGER app.tb",
        trigger("tb", "PRECEDES ta", adds=9),
    ),
    "another event": (
        "DROP TRIGGER app.tb",
        "CREATE TRIGGER app.tb BEFORE UPDATE ON app.t FOR EACH ROW SET NEW.b = 1",
    ),
}


@pytest.mark.slow
def test_triggers_are_created_in_their_order(pair97: Pair) -> None:
    source, replica = with_objects(
        pair97,
        "CREATE TABLE t (id INT PRIMARY KEY, b INT)",
        trigger("ta", adds=2),
        trigger("tb", "PRECEDES ta"),
        trigger("tc", adds=3),
    )
    order = (
        "SELECT TRIGGER_NAME, ACTION_ORDER, ACTION_STATEMENT FROM information_schema.TRIGGERS"
        " WHERE TRIGGER_SCHEMA = 'app' ORDER BY 1"
    )
    for case, statements in TRIGGERS.items():
        not_logged(replica, *statements)
        text = run_as_shown(source, replica)
        assert replica.query(order) == source.query(order), f"{case}: {text}"
        assert drift(source, replica)[0] == 0


def test_a_column_that_the_replica_does_not_have_loses_its_values(pair97: Pair) -> None:
    source, replica = with_objects(pair97, "CREATE TABLE t (id INT PRIMARY KEY, v INT, w INT)")
    not_logged(replica, "ALTER TABLE app.t DROP COLUMN w")
    status, found = drift(source, replica)
    [one] = differences(found).values()
    assert (status, one["rows"]["effect"]) == (2, "values are lost without an error")
    source.execute("INSERT INTO app.t VALUES (1, 2, 3)")
    wait_for(replica, executed(source))
    assert replica.query("SELECT * FROM app.t") == [(1, 2)]


def test_a_check_of_the_replica_stops_the_applier(pair97: Pair) -> None:
    source, replica = with_objects(pair97, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    not_logged(replica, "ALTER TABLE app.t ADD CONSTRAINT ck CHECK (v > 5)")
    status, found = drift(source, replica)
    [one] = differences(found).values()
    assert (status, one["rows"]["errno"], one["errors"]) == (2, 3819, [3819, 3822])
    source.execute("INSERT INTO app.t VALUES (1, 2)")
    until = time.monotonic() + 20
    while not (number := int(replica.replica_status()["Last_SQL_Errno"])):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert number == 3819


def check_views(pair: Pair) -> None:
    source, replica = with_objects(
        pair,
        "CREATE TABLE z_parent (id INT PRIMARY KEY)",
        (
            "CREATE TABLE a_child (id INT PRIMARY KEY, p INT,"
            " CONSTRAINT fk FOREIGN KEY (p) REFERENCES z_parent (id))"
        ),
        "CREATE FUNCTION f () RETURNS INT DETERMINISTIC RETURN 1",
        "CREATE VIEW vc AS SELECT f() AS x, id FROM z_parent",
        "CREATE VIEW vb AS SELECT x FROM vc",
        "CREATE VIEW va AS SELECT vb.x, 'it''s `app`.`va`' AS y FROM vb",
    )
    not_logged(
        replica,
        "USE app",
        "DROP VIEW va, vb, vc",
        "DROP FUNCTION f",
        "DROP TABLE a_child, z_parent",
    )
    run_as_shown(source, replica)
    assert drift(source, replica)[0] == 0


def test_what_is_used_is_created_first_on_9_7(pair97: Pair) -> None:
    check_views(pair97)


@pytest.mark.slow
def test_what_is_used_is_created_first_on_5_6(pair56: Pair) -> None:
    check_views(pair56)


@pytest.mark.slow
def test_only_ddl_of_the_kind_is_named(pair97: Pair) -> None:
    source, replica = with_objects(pair97, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    source.execute("STOP REPLICA", "RESET REPLICA ALL")
    replica.execute("ALTER DATABASE app CHARACTER SET ascii")
    not_logged(replica, "ALTER TABLE app.t ADD z INT")
    by_name = differences(drift(source, replica)[1])
    assert len(by_name["schema app"]["made_by"]) == 1
    assert by_name["table app.t"]["made_by"] == []


@pytest.mark.parametrize("option", ["CHARACTER SET utf8mb4", "CHARACTER SET latin1"])
def test_collations_of_5_6_are_those_on_9_7(pair56: Pair, pair97: Pair, option: str) -> None:
    """utf8mb4 alone is another collation there; no channel is needed to compare the two."""
    old, new = pair56.a, pair97.a
    text = "CHARACTER SET utf8mb4"
    not_logged(
        new,
        "CREATE DATABASE app CHARACTER SET utf8mb4",
        "CREATE TABLE app.changed (i INT PRIMARY KEY, b INT) CHARACTER SET utf8mb4",
    )
    not_logged(
        old,
        f"CREATE DATABASE app {option}",
        f"CREATE TABLE app.made (i INT PRIMARY KEY, a VARCHAR(9) {text}, b VARCHAR(9)) {option}",
        f"CREATE TABLE app.changed (i INT PRIMARY KEY, a VARCHAR(9) {text}, b INT) {option}",
        f"CREATE DATABASE own {option}",
    )
    assert differences(drift(old, new)[1]).keys() >= {"schema own", "table app.changed"}
    run_as_shown(old, new)
    assert differences(drift(old, new)[1]) == {}
