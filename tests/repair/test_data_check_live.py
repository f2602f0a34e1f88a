"""A data check of real servers: every type of value, a replica that is behind, writes meanwhile."""

from dataclasses import replace
from pathlib import Path

import pytest

from compose.native.load import schema_of, write_load
from compose.native.server import Server
from compose.native.shapes import Pair
from repair.adapters.compare_rows import SameServer, check_data
from repair.data_check.check_limits import CheckLimits, CheckScope
from repair.data_check.checked_data import CheckedData
from topology.catalogue.findings import Verdict
from topology.readings.target import ServerTarget

OF_D = CheckScope(databases=frozenset({"d"}))
BRIEF = CheckLimits(behind_seconds_max=1)
# A type, and two values that a comparison of what the server shows by default may take for equal.
VALUES = (
    ("INT", "NULL", "0"),
    ("VARCHAR(9)", "NULL", "''"),
    ("VARCHAR(9) CHARACTER SET latin1", "'é'", "'e'"),
    ("VARCHAR(9) COLLATE utf8mb4_general_ci", "'a'", "'A'"),
    ("VARCHAR(9)", "'a'", "'a '"),
    ("VARCHAR(9) CHARACTER SET gbk", "x'a140'", "'?'"),
    ("VARCHAR(9) CHARACTER SET cp1251", "x'98'", "'?'"),
    ("TEXT CHARACTER SET big5", "x'a15a'", "x'a1c3'"),
    ("FLOAT", "16777215", "16777214"),
    ("DOUBLE", "0.1e0", "0.1e0 + 1e-16"),
    ("DOUBLE", "-2.3027782228163463e146", "-2.302778222816346e146"),  # one text in 9.7
    ("DECIMAL(20,10)", "1", "1.0000000001"),
    ("DATETIME(6)", "'2020-01-01'", "'2020-01-01 00:00:00.000001'"),
    ("TIMESTAMP NULL", "NULL", "'2020-01-01'"),
    ("BLOB", "x'00'", "x'0000'"),
    ("VARBINARY(9)", "x'c3a9'", "x'e9'"),
    ("BIT(9)", "b'100000000'", "b'000000000'"),
    ("TEXT", "'x'", "NULL"),
    ("ENUM('a','b')", "'a'", "NULL"),
    ("ENUM('','a')", "''", "0"),  # both are the text ''
    ("SET('a','b')", "'a'", "'a,b'"),
    ("SET('','a')", "1", "0"),
    ("POINT", "POINT(1, 2)", "POINT(1, 3)"),
    ("YEAR", "2000", "1999"),
)
JSON = (
    ("JSON", "'[1, 2]'", "'[2, 1]'"),
    ("JSON", "JSON_OBJECT('a', CAST('2020-01-01' AS DATE))", "JSON_OBJECT('a', '2020-01-01')"),
    ("JSON", "CAST(CAST('2020-01-01' AS DATE) AS JSON)", "'\"2020-01-01\"'"),
    # One text and one size.
    ("JSON", "JSON_OBJECT('a', 12345.25)", "'{\"a\": 12345.25}'"),
    ("JSON", "JSON_ARRAY(1, JSON_ARRAY(12345.25))", "'[1, [12345.25]]'"),
    ("JSON", "JSON_ARRAY(12345.25, 54321.25e0)", "JSON_ARRAY(12345.25e0, 54321.25)"),
    ("JSON", "JSON_OBJECT('a', CAST(1 AS UNSIGNED))", "'{\"a\": 1}'"),
)


def target(server: Server) -> ServerTarget:
    return ServerTarget(server.name, server.host, server.port, user="root")


def checked(pair: Pair, scope: CheckScope = OF_D, limits: CheckLimits = BRIEF) -> CheckedData:
    said: list[str] = []
    a, b = target(pair.a), target(pair.b)
    return check_data(a, b, scope, limits=limits, say=said.append)


def on_one(server: Server, *statements: str) -> None:
    """Change rows without the binary log, as a fault does."""
    server.execute("SET SESSION sql_log_bin = 0", *statements)


@pytest.fixture(params=["pair97", "pair56"])
def pair(request: pytest.FixtureRequest) -> Pair:
    found: Pair = request.getfixturevalue(request.param)
    return found


def test_every_type_of_value_is_compared(pair: Pair) -> None:
    values = (*VALUES, *(JSON if pair.a.version > (5, 7) else ()))
    columns = ", ".join(f"c{number} {of}" for number, (of, _, _) in enumerate(values))
    ours = ", ".join(one for _, one, _ in values)
    pair.a.execute("CREATE DATABASE d", f"CREATE TABLE d.t (id INT PRIMARY KEY, {columns})")
    for number in range(len(values) + 1):
        pair.a.execute(f"INSERT INTO d.t VALUES ({number}, {ours})")
    pair.settle()
    assert checked(pair).verdict is Verdict.OK
    for number, (_, _, other) in enumerate(values):
        # An UPDATE does not store a JSON document that compares as equal.
        for value in ("NULL", other):
            changed = f"UPDATE d.t SET c{number} = {value} WHERE id = {number}"
            on_one(pair.b, "SET SESSION sql_mode = ''", changed)
    found = checked(pair)
    [table] = found.tables
    assert found.verdict is Verdict.CRITICAL
    assert sorted(int(each.key[0]) for each in table.listed) == [*range(len(values))]


def test_a_gap_that_an_update_leaves_in_a_document_is_no_difference(pair97: Pair) -> None:
    pair97.a.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.t (id INT PRIMARY KEY, j JSON)",
        f'INSERT INTO d.t VALUES (1, \'{{"a": "{"x" * 50}"}}\')',
    )
    pair97.settle()
    pair97.a.execute("UPDATE d.t SET j = JSON_SET(j, '$.a', 'y')")
    pair97.settle()
    on_one(pair97.b, 'REPLACE INTO d.t VALUES (1, \'{"a": "y"}\')')
    sizes = [each.value("JSON_STORAGE_SIZE(j) FROM d.t") for each in (pair97.a, pair97.b)]
    assert sizes[0] != sizes[1]
    assert checked(pair97).verdict is Verdict.OK


def test_versions_that_print_a_double_differently_are_compared(
    mysql97: Server, mysql56: Server
) -> None:
    """Their values are equal, and their texts are not."""
    numbers = ("-2.3027782228163463e146", "1.3426467937449615e-8", "1e300 / 3", "-0e0", "5e-324")
    values = ", ".join(f"({id_}, {each}, {id_} * 0.1e0)" for id_, each in enumerate(numbers))
    both = (mysql97, mysql56)
    for server in both:
        on_one(
            server,
            "CREATE DATABASE doubles",
            "CREATE TABLE doubles.t (id INT PRIMARY KEY, x DOUBLE, f FLOAT)",
            f"INSERT INTO doubles.t VALUES {values}",
        )
    scope = CheckScope(databases=frozenset({"doubles"}))
    try:
        found = check_data(target(mysql97), target(mysql56), scope, limits=BRIEF, say=print)
        assert [each.verdict for each in found.tables] == [Verdict.OK]
        shown = [each.query("SELECT CAST(x AS CHAR) FROM doubles.t ORDER BY id") for each in both]
        assert shown[0] != shown[1]
    finally:
        for server in both:
            on_one(server, "DROP DATABASE doubles")


@pytest.mark.mysql
def test_what_is_not_compared_is_unknown_and_what_is_absent_is_shown(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE DATABASE d",
        "CREATE TABLE d.same (id INT PRIMARY KEY)",
        "CREATE TABLE d.here (id INT PRIMARY KEY)",
        "CREATE TABLE d.no_key (id INT)",
        "CREATE TABLE d.other (id INT PRIMARY KEY)",
        "INSERT INTO d.no_key VALUES (1), (1), (NULL)",
    )
    pair97.settle()
    on_one(b, "DROP TABLE d.here", "ALTER TABLE d.other ADD c INT")
    on_one(b, "DELETE FROM d.no_key WHERE id = 1 LIMIT 1")
    found = {each.table: each for each in checked(pair97).tables}
    assert found["same"].verdict is Verdict.OK
    assert found["here"].missing_on == "b"
    assert "only one of the servers has the column c" in found["other"].unread
    assert found["other"].verdict is Verdict.UNKNOWN
    assert (found["no_key"].key, found["no_key"].different) == ("", 1)
    assert checked(pair97, CheckScope(frozenset({("d", "same")}))).verdict is Verdict.OK
    nothing = checked(pair97, CheckScope(frozenset({("d", "nothing")})))
    assert nothing.unread == "neither server shows d.nothing to this account"
    with pytest.raises(SameServer):
        check_data(target(a), target(a), OF_D, limits=BRIEF, say=print)


def test_a_table_that_the_account_does_not_see_is_unknown(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE USER part@'%'",
        "CREATE DATABASE d",
        "CREATE TABLE d.t (k INT PRIMARY KEY, w INT)",
        "CREATE TABLE d.u (k INT PRIMARY KEY)",
        "INSERT INTO d.t VALUES (1, 1)",
        "GRANT SELECT (k) ON d.t TO part@'%'",
        "GRANT SELECT ON d.u TO part@'%'",
    )
    pair97.settle()
    on_one(b, "UPDATE d.t SET w = 2", "REVOKE SELECT ON d.u FROM part@'%'")
    left, right = (replace(target(each), user="part") for each in (a, b))
    found = check_data(left, right, OF_D, limits=BRIEF, say=print)
    assert found.verdict is Verdict.UNKNOWN
    assert ["does not show all of it" in each.unread for each in found.tables] == [True, True]


def test_a_table_that_is_on_its_way_is_not_missing(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.old (k INT PRIMARY KEY)")
    pair97.settle()
    b.execute("STOP REPLICA SQL_THREAD")
    a.execute("CREATE TABLE d.t (k INT PRIMARY KEY)", "DROP TABLE d.old")
    found = checked(pair97)
    assert found.verdict is Verdict.UNKNOWN
    assert ["b has not executed" in each.unread for each in found.tables] == [True, True]
    b.execute("START REPLICA SQL_THREAD")
    assert checked(pair97, limits=CheckLimits()).verdict is Verdict.OK


def test_a_record_of_another_definition_counts_for_nothing(pair97: Pair, tmp_path: Path) -> None:
    a, b = pair97.a, pair97.b
    a.execute(
        "CREATE DATABASE d", "CREATE TABLE d.t (k INT PRIMARY KEY)", "INSERT INTO d.t VALUES (7)"
    )
    pair97.settle()

    def recorded() -> CheckedData:
        record = tmp_path / "record"
        return check_data(target(a), target(b), OF_D, limits=BRIEF, record=record, say=print)

    assert recorded().verdict is Verdict.OK
    a.execute("ALTER TABLE d.t ADD w INT DEFAULT 5")
    pair97.settle()
    on_one(b, "UPDATE d.t SET w = 6")
    assert recorded().verdict is Verdict.CRITICAL


def test_a_replica_that_is_behind_is_not_different(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    b.execute(b.dialect.stop_replica)
    a.execute("INSERT INTO d.t VALUES (1)")
    found = checked(pair97)
    assert found.verdict is Verdict.UNKNOWN
    assert "b has not executed" in found.tables[0].whys[0]
    b.execute(b.dialect.start_replica)
    assert checked(pair97, limits=CheckLimits()).verdict is Verdict.OK


def test_a_gap_is_compared_as_it_is_and_named(pair97: Pair) -> None:
    """Nothing delivers it: to wait for it would show no row."""
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    b.execute(b.dialect.stop_replica)
    a.execute("INSERT INTO d.t VALUES (1)", "CREATE TABLE d.u (id INT PRIMARY KEY)")
    found = checked(pair97, limits=CheckLimits(as_they_are=True))
    assert found.verdict is Verdict.CRITICAL
    assert "b has not executed 2 transactions of a: " in found.apart
    table, fewer = found.tables
    assert [each.key for each in table.listed] == [("1",)]
    assert (fewer.table, fewer.missing_on) == ("u", "b")
    b.execute(b.dialect.start_replica)
    pair97.settle()
    found = checked(pair97, limits=CheckLimits(as_they_are=True))
    assert (found.verdict, found.apart) == (Verdict.OK, "")


@pytest.mark.slow
def test_rows_that_clients_write_are_not_different_and_faults_are_found(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v INT)")
    for first in range(0, 6_000, 1_000):
        rows = ", ".join(f"({first + number}, 0)" for number in range(1_000))
        a.execute(f"INSERT INTO d.t VALUES {rows}")
    pair97.settle()
    with write_load([a, b], pause_seconds=0.02):
        for _ in range(5):
            a.execute("UPDATE d.t SET v = v + 1 WHERE id % 3 = 0")
            everything = checked(pair97, CheckScope(), CheckLimits())
            assert [each.table for each in everything.tables if each.different] == []
        on_one(b, "DELETE FROM d.t WHERE id = 1234", "UPDATE d.t SET v = -1 WHERE id = 5")
        written = {(schema_of(each), "written") for each in (a, b)}
        found = checked(pair97, CheckScope(frozenset({("d", "t")} | written)), CheckLimits())
        [table] = [each for each in found.tables if each.different]
        assert sorted(each.key for each in table.listed) == [("1234",), ("5",)]
