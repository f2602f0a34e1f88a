"""`gtid-audit schema` on real servers: each class of differences, and what must not be reported."""

import json
import re
import shlex
import threading
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import Link, Pair, Topology, TopologyPlan, running, wait_for
from gtid_audit.document_types.command_documents import reference_files, schema_of
from tests.gtid_audit.build import run_cli
from topology.definitions.drift_statements import NOT_LOGGED

OBJECTS = (
    "CREATE DATABASE app",
    "CREATE DATABASE gone",
    "CREATE TABLE gone.t (id INT PRIMARY KEY)",
    "CREATE TABLE app.columns_fewer (id INT PRIMARY KEY, a INT, b INT)",
    "CREATE TABLE app.columns_more (id INT PRIMARY KEY, a INT)",
    "CREATE TABLE app.renamed_column (id INT PRIMARY KEY, a VARCHAR(20))",
    "CREATE TABLE app.moved (id INT PRIMARY KEY, a INT, b INT)",
    "CREATE TABLE app.typed (id INT PRIMARY KEY, a VARCHAR(20))",
    "CREATE TABLE app.nullable (id INT PRIMARY KEY, a INT)",
    "CREATE TABLE app.texts (id INT PRIMARY KEY, a VARCHAR(20), b INT) CHARACTER SET utf8",
    "CREATE TABLE app.indexes (id INT PRIMARY KEY, a INT, b INT, KEY lost (a), KEY other (b))",
    "CREATE TABLE app.parents (id INT PRIMARY KEY)",
    (
        "CREATE TABLE app.children (id INT PRIMARY KEY, p INT,"
        " CONSTRAINT fk FOREIGN KEY (p) REFERENCES app.parents (id))"
    ),
    "CREATE TABLE app.engines (id INT PRIMARY KEY) COMMENT 'a' ENGINE=InnoDB",
    "CREATE TABLE app.parts (id INT PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
    "CREATE TABLE app.lost (id INT AUTO_INCREMENT PRIMARY KEY, a INT)",
    "CREATE TABLE app.was_called (id INT PRIMARY KEY, x DATETIME)",
    "CREATE TABLE app.same (id INT PRIMARY KEY, a INT DEFAULT 5, KEY (a))",
    "CREATE VIEW app.shown AS SELECT id FROM app.same",
    "CREATE PROCEDURE app.doing (IN x INT) SELECT x",
    "CREATE FUNCTION app.giving () RETURNS INT DETERMINISTIC RETURN 1",
    "CREATE TRIGGER app.triggered BEFORE INSERT ON app.same FOR EACH ROW SET NEW.a = NEW.a + 1",
    "CREATE EVENT app.nightly ON SCHEDULE EVERY 1 DAY DO SELECT 1",
)
CHANGES = {
    "schema gone": (("DROP DATABASE gone",), ["schema fewer"]),
    "schema own": (("CREATE DATABASE own",), ["schema more"]),
    "table app.columns_fewer": (
        ("ALTER TABLE app.columns_fewer DROP COLUMN b",),
        ["column fewer"],
    ),
    "table app.columns_more": (
        ("ALTER TABLE app.columns_more ADD COLUMN z INT",),
        ["column more"],
    ),
    "table app.renamed_column": (
        ("ALTER TABLE app.renamed_column CHANGE a c VARCHAR(20)",),
        ["column renamed"],
    ),
    "table app.moved": (("ALTER TABLE app.moved MODIFY b INT AFTER id",), ["column moved"]),
    "table app.typed": (("ALTER TABLE app.typed MODIFY a VARCHAR(10)",), ["column type"]),
    "table app.nullable": (
        ("ALTER TABLE app.nullable MODIFY a INT NOT NULL",),
        ["column attribute"],
    ),
    "table app.texts": (
        ("ALTER TABLE app.texts CONVERT TO CHARACTER SET latin1",),
        ["charset"],
    ),
    "table app.indexes": (
        (
            (
                "ALTER TABLE app.indexes DROP INDEX lost, DROP INDEX other, ADD UNIQUE KEY other (b),"
                " ADD KEY own (a, b)"
            ),
        ),
        ["index fewer", "index more", "index different"],
    ),
    "table app.children": (
        ("ALTER TABLE app.children DROP FOREIGN KEY fk",),
        ["constraint fewer"],
    ),
    "table app.engines": (("ALTER TABLE app.engines COMMENT 'b'",), ["table option"]),
    "table app.parts": (("ALTER TABLE app.parts ADD PARTITION PARTITIONS 1",), ["partitions"]),
    "table app.lost": (("DROP TABLE app.lost",), ["table fewer"]),
    "table app.own": (("CREATE TABLE app.own (i INT)",), ["table more"]),
    "table app.was_called": (
        ("RENAME TABLE app.was_called TO app.is_called",),
        ["table renamed"],
    ),
    "view app.shown": (
        ("CREATE OR REPLACE VIEW app.shown AS SELECT a FROM app.same",),
        ["other different"],
    ),
    "procedure app.doing": (("DROP PROCEDURE app.doing",), ["other fewer"]),
    "function app.giving": (
        (
            "DROP FUNCTION app.giving",
            (
                "CREATE DEFINER = nobody@localhost FUNCTION app.giving () RETURNS INT DETERMINISTIC"
                " RETURN 1"
            ),
        ),
        ["definer"],
    ),
    "trigger app.triggered": (("DROP TRIGGER app.triggered",), ["other fewer"]),
    "event app.nightly": (
        ("ALTER EVENT app.nightly ON SCHEDULE EVERY 2 DAY",),
        ["other different"],
    ),
}
# Rows of these stop the applier, or go to another column.
CRITICAL = {
    "schema gone": 1146,
    "table app.lost": 1146,
    "table app.was_called": 1146,
    "table app.typed": 1677,
    "table app.texts": 1677,
    "table app.moved": None,
    "table app.nullable": None,
    "table app.columns_fewer": None,
}


PAGE = Path(__file__).parents[2] / "docs/schema-drift.md"


def validated(command: str, text: str) -> dict[str, Any]:
    """Return a document that has exactly the fields of its schema."""
    found: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator(schema_of(f"schema {command}", is_closed=True)).validate(found)
    return found


def drift(*servers: Server, options: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
    done = run_cli("schema", "drift", *(each.dsn for each in servers), "--json", *options)
    assert done.stdout, done.stderr
    return done.returncode, validated("drift", done.stdout)


def versions(*servers: Server) -> tuple[int, dict[str, Any]]:
    done = run_cli("schema", "versions", *(each.dsn for each in servers), "--json")
    assert done.stdout, done.stderr
    return done.returncode, validated("versions", done.stdout)


def differences(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the differences of the only pair by kind and name."""
    [cluster] = found["clusters"]
    [pair] = cluster["pairs"]
    return {
        f"{each['kind']} {each['schema']}" + (f".{each['name']}" if each["name"] else ""): each
        for each in pair["differences"]
    }


def executed(server: Server) -> str:
    return str(server.value("@@GLOBAL.gtid_executed"))


def not_logged(server: Server, *statements: str) -> None:
    server.execute(NOT_LOGGED, *statements)


def with_drift(pair: Pair) -> None:
    pair.a.execute(*OBJECTS)
    wait_for(pair.b, executed(pair.a))
    for statements, _ in CHANGES.values():
        not_logged(pair.b, *statements)


def check_each_class(pair: Pair) -> None:
    """Every class is found, classed and proved; and the statements repair all of them."""
    with_drift(pair)
    status, found = drift(pair.a, pair.b)
    by_name = differences(found)
    assert {name: each["classes"] for name, each in by_name.items()} == {
        name: classes for name, (_, classes) in CHANGES.items()
    }
    assert {each["grade"] for each in by_name.values()} == {"proved"}
    assert (status, found["verdict"], found["unknown"]) == (2, "CRITICAL", [])
    critical = {
        name: each["rows"]["errno"]
        for name, each in by_name.items()
        if each["severity"] == "critical"
    }
    assert critical == CRITICAL
    assert by_name["table app.was_called"]["name_on_replica"] == "app.is_called"
    repair(pair.b, by_name, missing="CREATE TABLE gone.t (id INT PRIMARY KEY);")
    assert drift(pair.a, pair.b) == (0, found_nothing(pair))


def repair(replica: Server, by_name: dict[str, dict[str, Any]], *, missing: str = "") -> None:
    """Run what is shown, as an operator who has decided to drop what is more."""
    # Foreign keys and triggers come after their tables.
    ordered = sorted(by_name.values(), key=lambda each: each["kind"] != "table")
    script = [NOT_LOGGED]
    for each in ordered:
        script += [re.sub("^-- (?=(?:ALTER|DROP) )", "", line) for line in each["statements"]]
    done = replica.client("\n".join([*script, missing]))
    assert done.returncode == 0, done.stderr


def found_nothing(pair: Pair) -> dict[str, Any]:
    return {
        "schema_version": 1,
        "verdict": "OK",
        "clusters": [
            {
                "cluster": "servers",
                "verdict": "OK",
                "servers": [name_of(pair.a), name_of(pair.b)],
                "pairs": [
                    {
                        "source": name_of(pair.a),
                        "replica": name_of(pair.b),
                        "has_channel": True,
                        "verdict": "OK",
                        "compared_count": len(OBJECTS),
                        "on_the_way_count": 0,
                        "differences": [],
                    }
                ],
            }
        ],
        "unknown": [],
    }


def name_of(server: Server) -> str:
    return f"{server.host}:{server.port}"


def test_each_class_is_found_and_repaired_on_9_7(pair97: Pair) -> None:
    check_each_class(pair97)


@pytest.mark.slow
def test_each_class_is_found_and_repaired_on_5_6(pair56: Pair) -> None:
    check_each_class(pair56)


def test_the_text_shows_the_difference_and_the_statement(pair97: Pair) -> None:
    with_drift(pair97)
    done = run_cli("schema", "drift", pair97.a.dsn, pair97.b.dsn, "--schema", "app")
    assert done.returncode == 2
    for part in (
        "table app.typed  column type · critical · proved",
        "-`a` varchar(20) COLLATE utf8mb4_0900_ai_ci DEFAULT NULL",
        "+`a` varchar(10) COLLATE utf8mb4_0900_ai_ci DEFAULT NULL",
        "the applier stops with 1677",
        "ALTER TABLE `app`.`typed` MODIFY COLUMN `a` varchar(20) DEFAULT NULL;",
        "-- DROP TABLE `app`.`own`;",
        "procedure app.doing  procedure fewer",
    ):
        assert part in done.stdout
    assert "schema gone" not in done.stdout
    dsns = (pair97.a.dsn, pair97.b.dsn)
    shown = run_cli("schema", "versions", *dsns, "--schema", "app").stdout
    [drifted] = [line for line in shown.splitlines() if line.startswith("Next: ")]
    assert drifted == f"Next: gtid-audit schema drift {shlex.join(dsns)} --schema=app"
    assert run_cli(*shlex.split(drifted)[2:]).stdout == done.stdout


@pytest.mark.slow
def test_the_applier_stops_where_the_text_says_so(pair97: Pair) -> None:
    """The prediction and the server agree: 1677 is 13146 in the status of 9.7."""
    with_drift(pair97)
    pair97.a.execute("INSERT INTO app.typed VALUES (1, 'a')")
    until = time.monotonic() + 20
    while not (number := int(pair97.b.replica_status()["Last_SQL_Errno"])):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert number == 13146
    # It stays proved: no DDL that is on its way concerns the tables.
    _, found = drift(pair97.a, pair97.b)
    by_name = differences(found)
    assert by_name["table app.typed"]["grade"] == "proved"
    assert by_name["table app.lost"]["grade"] == "proved"


@pytest.mark.slow
def test_ddl_on_its_way_is_no_proof(pair97: Pair) -> None:
    source, replica = pair97.a, pair97.b
    source.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    source.execute("CREATE TABLE app.u (id INT PRIMARY KEY)")
    wait_for(replica, executed(source))
    replica.execute("STOP REPLICA")
    not_logged(replica, "ALTER TABLE app.u ADD z INT")
    source.execute("ALTER TABLE app.t ADD a INT", "INSERT INTO app.t VALUES (1, 2)")
    source.execute("CREATE TABLE app.copied AS SELECT * FROM app.t")
    status, found = drift(source, replica)
    by_name = differences(found)
    assert (status, found["verdict"]) == (1, "WARNING")
    assert {name: each["grade"] for name, each in by_name.items()} == {
        "table app.t": "likely",
        "table app.copied": "likely",
        "table app.u": "proved",
    }
    # To run them now would stop the applier at the DDL that is on its way.
    assert all(line.startswith("-- ") for line in by_name["table app.t"]["statements"])
    assert not by_name["table app.u"]["statements"][0].startswith("-- Not now")
    [pending] = by_name["table app.t"]["pending"]
    assert pending["statement"] == "ALTER TABLE app.t ADD a INT"
    assert len(by_name["table app.copied"]["pending"]) == 1
    _, seen = versions(source, replica)
    [own, behind] = seen["clusters"][0]["servers"]
    assert [each["statement"] for each in behind["missing"]] == ["ALTER TABLE app.t ADD a INT"]
    assert own["applied"]["statement"] == "ALTER TABLE app.t ADD a INT"
    assert behind["applied"]["statement"] == "CREATE TABLE app.u (id INT PRIMARY KEY)"


@pytest.mark.slow
def test_without_privileges_nothing_is_concluded(pair97: Pair) -> None:
    """The account sees one schema on the source, and none on the replica."""
    with_drift(pair97)
    pair97.a.execute("CREATE USER sees@'%' IDENTIFIED BY ''")
    wait_for(pair97.b, executed(pair97.a))
    for server, grant in ((pair97.a, "SELECT ON app.*"), (pair97.b, "USAGE ON *.*")):
        not_logged(
            server, f"GRANT {grant} TO sees@'%'", "GRANT REPLICATION CLIENT ON *.* TO sees@'%'"
        )
        not_logged(server, "GRANT SELECT ON performance_schema.* TO sees@'%'")
    dsns = [each.dsn.replace("root@", "sees@") for each in (pair97.a, pair97.b)]
    for command in ("drift", "versions"):
        done = run_cli("schema", command, *dsns, "--json")
        found = json.loads(done.stdout)
        assert (done.returncode, found["verdict"]) == (3, "UNKNOWN")
        facts = {(each["server"], each["fact"]) for each in found["unknown"]}
        kinds = ("tables", "views", "routines", "triggers", "events")
        assert facts >= {(name_of(each), kind) for each in (pair97.a, pair97.b) for kind in kinds}
        if command == "drift":
            assert differences(found) == {}
            [reason] = {each["reason"] for each in found["unknown"] if each["fact"] == "schema app"}
            assert reason.startswith("privilege: ")


def test_an_account_that_sees_a_schema_compares_it(pair97: Pair) -> None:
    """With --schema, privileges on that schema are enough for tables."""
    with_drift(pair97)
    pair97.a.execute(
        "CREATE USER sees@'%' IDENTIFIED BY ''",
        "GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON app.* TO sees@'%'",
        "GRANT SELECT ON performance_schema.* TO sees@'%'",
        "GRANT REPLICATION CLIENT, SHOW_ROUTINE ON *.* TO sees@'%'",
    )
    wait_for(pair97.b, executed(pair97.a))
    dsns = [each.dsn.replace("root@", "sees@") for each in (pair97.a, pair97.b)]
    done = run_cli("schema", "drift", *dsns, "--schema", "app", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["unknown"]) == (2, [])
    assert len(differences(found)) == len(CHANGES) - 2  # the schemas


def test_a_filter_explains_what_is_missing(pair97: Pair) -> None:
    source, replica = pair97.a, pair97.b
    replica.execute(
        "STOP REPLICA SQL_THREAD",
        "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = (scratch)",
        "START REPLICA SQL_THREAD",
    )
    source.execute("CREATE DATABASE scratch", "USE scratch", "CREATE TABLE t (id INT)")
    wait_for(replica, executed(source))
    status, found = drift(source, replica)
    replica.execute("STOP REPLICA SQL_THREAD", "CHANGE REPLICATION FILTER REPLICATE_IGNORE_DB = ()")
    assert (status, found["verdict"]) == (0, "OK")
    by_name = differences(found)
    assert by_name
    assert {(each["is_filtered"], each["severity"]) for each in by_name.values()} == {
        (True, "info")
    }
    assert all("filter" in each["causes"][0] for each in by_name.values())


@pytest.mark.slow
def test_a_healthy_pair_under_ddl_has_no_proved_difference(pair97: Pair) -> None:
    """Columns come and go all the time: no reading takes that for drift."""
    source, replica = pair97.a, pair97.b
    source.execute("CREATE DATABASE app")
    for number in range(4):
        source.execute(f"CREATE TABLE app.t{number} (id INT PRIMARY KEY, a INT)")
    ends = threading.Event()

    def change() -> None:
        with source.connect() as connection, connection.cursor() as cursor:
            while not ends.is_set():
                for number in range(4):
                    cursor.execute(f"ALTER TABLE app.t{number} ADD z INT")
                    cursor.execute(f"INSERT INTO app.t{number} (id) VALUES (1)")
                    cursor.execute(f"DELETE FROM app.t{number}")
                    cursor.execute(f"ALTER TABLE app.t{number} DROP z")

    load = threading.Thread(target=change)
    load.start()
    try:
        for _ in range(4):
            status, found = drift(source, replica)
            assert status in (0, 1)
            assert "proved" not in {each["grade"] for each in differences(found).values()}
    finally:
        ends.set()
        load.join()
    wait_for(replica, executed(source))
    assert drift(source, replica)[0] == 0
    assert versions(source, replica)[0] == 0


def with_zones(pair: Pair, *, zones: tuple[str, str], defaults: tuple[str, str]) -> None:
    """Set a default on both servers, each in its own time zone, for its clients too."""
    for server, zone, default in zip((pair.a, pair.b), zones, defaults, strict=True):
        server.execute(f"SET GLOBAL time_zone = '{zone}'")
        not_logged(
            server,
            f"SET SESSION time_zone = '{zone}'",
            "DROP TABLE IF EXISTS app.t",
            f"CREATE TABLE app.t (i INT, m TIMESTAMP NULL DEFAULT '{default}', d DATETIME)",
        )


def moment(server: Server) -> object:
    [[found]] = server.query("SELECT UNIX_TIMESTAMP(DEFAULT(m)) FROM app.t LIMIT 1")
    return found


def check_zones(pair: Pair) -> None:
    pair.a.execute("CREATE DATABASE app")
    wait_for(pair.b, executed(pair.a))
    noon, two = "2020-01-01 12:00:00", "2020-01-01 14:00:00"
    with_zones(pair, zones=("+01:00", "+03:00"), defaults=(noon, two))
    assert drift(pair.a, pair.b)[0] == 0, "one moment, in two texts"
    with_zones(pair, zones=("+01:00", "+03:00"), defaults=(noon, noon))
    status, found = drift(pair.a, pair.b)
    by_name = differences(found)
    assert (status, [*by_name]) == (1, ["table app.t"]), "one text, and two moments"
    repair(pair.b, by_name)
    assert drift(pair.a, pair.b)[0] == 0
    for server in (pair.a, pair.b):
        not_logged(server, "INSERT INTO app.t (i) VALUES (1)")
    assert moment(pair.a) == moment(pair.b)


def test_defaults_of_servers_in_two_zones_are_compared_as_moments(pair97: Pair) -> None:
    check_zones(pair97)


@pytest.mark.slow
def test_defaults_of_5_6_servers_in_two_zones_are_compared_as_moments(pair56: Pair) -> None:
    check_zones(pair56)


def test_the_order_of_two_primaries_does_not_decide(pair97: Pair) -> None:
    """Rows of the server with a column more lose its values on the other one."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE shop", "CREATE TABLE shop.article (id INT PRIMARY KEY, v INT)")
    pair97.settle()
    not_logged(b, "ALTER TABLE shop.article ADD COLUMN extra INT")
    for servers in ((a, b), (b, a)):
        status, found = drift(*servers)
        [pair] = found["clusters"][0]["pairs"]
        ends = (pair["source"], pair["replica"])
        assert (status, ends) == (2, (name_of(b), name_of(a))), found
    b.execute("INSERT INTO shop.article VALUES (2, 1, 42)")
    pair97.settle()
    assert a.query("SELECT * FROM shop.article") == [(2, 1)]
    # A server that commits no rows of its own loses none.
    b.execute("SET GLOBAL read_only = ON")
    assert [drift(*servers)[0] for servers in ((a, b), (b, a))] == [1, 2]
    b.execute("SET GLOBAL read_only = OFF")


def test_servers_without_a_channel_are_compared(pair97: Pair) -> None:
    pair97.a.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    wait_for(pair97.b, executed(pair97.a))
    for server in (pair97.a, pair97.b):
        server.execute("STOP REPLICA", "RESET REPLICA ALL")
    not_logged(pair97.b, "ALTER TABLE app.t ADD a INT")
    _, found = drift(pair97.a, pair97.b)
    [pair] = found["clusters"][0]["pairs"]
    assert (pair["has_channel"], len(pair["differences"])) == (False, 1)


@pytest.mark.slow
def test_a_chain_compares_each_replica_with_its_source(installation97: Installation) -> None:
    plan = TopologyPlan(("a", "b", "c"), (Link("a", "b"), Link("b", "c")))
    with running(installation97, plan) as chain:
        check_chain(chain)


def check_chain(chain: Topology) -> None:
    first, middle, last = chain["a"], chain["b"], chain["c"]
    first.execute("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)")
    wait_for(last, executed(first))
    last.execute("SET GLOBAL super_read_only = OFF", "SET GLOBAL read_only = OFF")
    last.execute("CREATE TABLE app.own (id INT PRIMARY KEY)")
    status, found = drift(last, middle, first)
    [cluster] = found["clusters"]
    names = [name_of(each) for each in (first, middle, last)]
    pairs = {(each["source"], each["replica"]): each for each in cluster["pairs"]}
    assert set(pairs) == {(names[0], names[1]), (names[1], names[2])}
    [one] = pairs[names[1], names[2]]["differences"]
    # No channel leads from the last server back: its own DDL is not on its way.
    assert (status, one["grade"], one["classes"]) == (1, "proved", ["table more"])
    [made_by] = one["made_by"]
    assert made_by["statement"] == "CREATE TABLE app.own (id INT PRIMARY KEY)"
    assert made_by["gtid"] == f"{last.value('@@server_uuid')}:1"


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_unknown(pair97: Pair) -> None:
    dsn = "mysql://root@127.0.0.1:1/"
    for command in ("drift", "versions"):
        done = run_cli("schema", command, pair97.a.dsn, dsn, "--json", "--timeout", "2")
        found = json.loads(done.stdout)
        assert (done.returncode, found["verdict"]) == (3, "UNKNOWN")
        assert any(each["fact"] == "connection" for each in found["unknown"])


@pytest.mark.parametrize(
    ("source", "replica", "value", "errno"),
    [
        ("INT", "BIGINT", "1", 13146),
        ("VARCHAR(10)", "VARCHAR(10) CHARACTER SET latin1", "'a'", 13146),
        pytest.param(*("DATETIME", "DATETIME(3)", "'2026-01-01'", 1105), marks=pytest.mark.slow),
        pytest.param(*("ENUM('a','b')", "ENUM('a','b','c')", "'a'", 0), marks=pytest.mark.slow),
        ("INT", "INT UNSIGNED", "-1", 0),
    ],
)
def test_rows_do_what_was_predicted(
    pair97: Pair, source: str, replica: str, value: str, errno: int
) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE app", f"CREATE TABLE app.t (id INT PRIMARY KEY, a {source})")
    wait_for(b, executed(a))
    not_logged(b, f"ALTER TABLE app.t MODIFY a {replica}")
    [one] = differences(drift(a, b)[1]).values()
    assert (one["rows"]["errno"] is not None) == (errno != 0)
    a.execute(f"INSERT INTO app.t VALUES (1, {value})")
    until = time.monotonic() + 20
    while not b.value(f"GTID_SUBSET('{executed(a)}', @@GLOBAL.gtid_executed)"):
        if int(b.replica_status()["Last_SQL_Errno"]):
            break
        assert time.monotonic() < until
        time.sleep(0.05)
    assert int(b.replica_status()["Last_SQL_Errno"]) == errno
    if not errno and source == "INT":
        assert b.query("SELECT a FROM app.t") == [(2**32 - 1,)]
        assert one["rows"]["effect"] == "values change without an error"


def test_the_commands_of_the_page(pair97: Pair, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    listed = "".join(
        f"      - {{name: {each.name}, host: {each.host}, port: {each.port}}}\n"
        for each in (pair97.a, pair97.b)
    )
    fleet.write_text(f"defaults:\n  user: root\nclusters:\n  - name: shop\n    servers:\n{listed}")
    pair97.a.execute("CREATE DATABASE app")
    wait_for(pair97.b, executed(pair97.a))
    lines = re.findall(r"^gtid-audit (.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) == 4
    for line in lines:
        real = line.replace("mysql://root@db1/?ssl=required", pair97.a.dsn)
        real = real.replace("mysql://root@db2/?ssl=required", pair97.b.dsn)
        done = run_cli(*shlex.split(real.replace("fleet.yaml", str(fleet))))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(" OK ")


@pytest.mark.slow
def test_a_schema_that_no_server_has_is_unknown(pair97: Pair) -> None:
    for command in ("drift", "versions"):
        done = run_cli(
            *("schema", command, pair97.a.dsn, pair97.b.dsn, "--schema", "typo", "--json")
        )
        found = validated(command, done.stdout)
        facts = [each["fact"] for each in found["unknown"]]
        assert (done.returncode, facts) == (3, ["schema typo"])


@pytest.mark.slow
def test_one_server_under_two_names_is_unknown(pair97: Pair) -> None:
    """It would be equal to itself."""
    dsns = (pair97.a.dsn, pair97.a.dsn.replace("127.0.0.1", "localhost"))
    for command in ("drift", "versions"):
        done = run_cli("schema", command, *dsns, "--json")
        found = validated(command, done.stdout)
        assert (done.returncode, [each["fact"] for each in found["unknown"]]) == (
            3,
            ["server_uuid"],
        )


@pytest.mark.parametrize("name", ["versions", "drift"])
def test_the_reference_is_as_generated(name: str) -> None:
    reference = PAGE.parent / f"reference/schema-{name}.schema.json"
    assert reference.read_text() == reference_files()[reference.name], "run `make docs`"


@pytest.mark.parametrize(
    "arguments",
    [("drift",), ("versions",), ("drift", "h"), ("versions", "h", "--cluster", "x")],
)
def test_wrong_usage_ends_in_64(arguments: tuple[str, ...]) -> None:
    done = run_cli("schema", *arguments)
    assert (done.returncode, done.stdout) == (64, "")
    assert "gtid-audit: " in done.stderr
