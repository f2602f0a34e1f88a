"""Three answers, and what decides: commit times, then content, and never a false alarm."""

import struct
from dataclasses import replace

import pytest

from binlog.content import content_digest as digest
from binlog.content.compare import (
    EVENT_BYTES_KEPT,
    Agreement,
    Comparison,
    Version,
    are_one_commit,
    compare_versions,
)
from binlog.content.compared_parts import LeftOut
from binlog.errors import BinlogMisuse
from binlog.event_types import EventType
from binlog.transactions import TransactionKind
from gtid import Gtid, GtidSet, Tsid
from tests.binlog.builders import (
    NOON_SECONDS,
    UUID_A,
    Log,
    query_body,
    rows_body,
    table_map_body,
)
from tests.binlog.logs_in_memory import MemoryLogs

NOON = 1_700_000_000_000_000
LONG = b"\x03"
ALL = GtidSet.parse(f"{UUID_A}:1-9")


def version(log: Log, *, at: int | None = None) -> Version:
    """The one transaction of a log, first committed at a moment."""
    [group] = MemoryLogs({"binlog.000001": bytes(log)}).events_of(ALL)
    found = Version.of(group)
    return replace(found, transaction=replace(found.transaction, original_commit_timestamp=at))


def rows(
    *numbers: int,
    table: str = "t",
    schema: str = "d",
    types: bytes = LONG,
    gno: int = 5,
    seconds: int = 0,
) -> Log:
    log = Log()
    log.gtid(gno)
    log.query("BEGIN")
    _add(log, *numbers, table=table, schema=schema, types=types, seconds=seconds)
    log.xid()
    return log


def _add(
    log: Log,
    *numbers: int,
    table: str,
    schema: str = "d",
    types: bytes = LONG,
    seconds: int = 0,
) -> None:
    log.add(EventType.TABLE_MAP, table_map_body(types, b"", schema=schema, table=table))
    images = b"".join(b"\xfc" + struct.pack("<i", n) * len(types) for n in numbers)
    body = rows_body(images, columns=len(types))
    log.add(EventType.WRITE_ROWS, body, at_seconds=NOON_SECONDS + seconds)


def two_tables() -> Log:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    _add(log, 1, table="t")
    _add(log, 1, table="u")
    log.xid()
    return log


def statement(sql: str, *, inside: bool = True, variables: bytes = b"", seconds: int = 0) -> Log:
    log = Log()
    log.gtid(5)
    if inside:
        log.query("BEGIN")
    body = query_body(sql, variables=variables)
    log.add(EventType.QUERY, body, at_seconds=NOON_SECONDS + seconds)
    if inside:
        log.xid()
    return log


def created_from_rows(sql: str) -> Log:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    log.query(sql)
    _add(log, 1, table="t")
    log.xid()
    return log


def empty() -> Log:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    log.query("COMMIT")
    return log


def failed(sql: str, *, error_code: int) -> Log:
    log = Log()
    log.gtid(5)
    log.add(EventType.QUERY, query_body(sql, error_code=error_code))
    return log


FAILED = failed("CREATE VIEW v", error_code=1050)
WENT_WELL = failed("CREATE VIEW v", error_code=0)
OF_ANOTHER = failed("CREATE VIEW w", error_code=0)
SQL_MODE = b"\x01" + struct.pack("<Q", 4)
SAME, TWICE, DIFFERENT, DRIFTED, SKIPPED, UNKNOWN = Agreement
CASES = [
    # left, right: without times, at one moment, at two; and whether the last is proved
    (rows(1), rows(1), SAME, SAME, TWICE, True),
    (rows(1), rows(2), DIFFERENT, DRIFTED, DIFFERENT, True),
    # A statement that failed on its source and went well on the replica, or was passed by there.
    (FAILED, WENT_WELL, SAME, SAME, DIFFERENT, False),
    (FAILED, OF_ANOTHER, DIFFERENT, SAME, DIFFERENT, True),
    (rows(1), rows(1, table="u"), DIFFERENT, DRIFTED, DIFFERENT, True),
    (rows(1), rows(1, schema="e"), UNKNOWN, UNKNOWN, DIFFERENT, False),  # a rewrite?
    (rows(1), two_tables(), UNKNOWN, SKIPPED, DIFFERENT, False),  # a filter?
    (rows(1), rows(1, 2), DIFFERENT, SKIPPED, DIFFERENT, True),
    (rows(1, 2), rows(2, 3), DIFFERENT, DRIFTED, DIFFERENT, True),
    (rows(1), rows(1, types=LONG * 2), UNKNOWN, UNKNOWN, DIFFERENT, False),  # one more column
    (rows(1), rows(1, 2, types=LONG * 2), UNKNOWN, SKIPPED, DIFFERENT, False),
    (rows(1), statement("INSERT INTO t VALUES (1)"), UNKNOWN, UNKNOWN, DIFFERENT, False),
    (
        rows(1),
        statement("CREATE TABLE t (a INT)", inside=False),
        *(DIFFERENT, UNKNOWN, DIFFERENT, True),
    ),
    (rows(1), empty(), SKIPPED, SKIPPED, DIFFERENT, True),
    # A server that logs rows logs nothing for a statement that changes no row, or temporary tables.
    (statement("DELETE FROM t"), empty(), UNKNOWN, UNKNOWN, DIFFERENT, True),
    (
        statement("CREATE TEMPORARY TABLE t (a INT)", inside=False),
        empty(),
        *(SAME, SAME, DIFFERENT, True),
    ),
    (
        statement("ALTER TABLE t ADD b INT", inside=False),
        empty(),
        *(SKIPPED, SKIPPED, DIFFERENT, True),
    ),
    (empty(), empty(), SAME, SAME, TWICE, True),
    (statement("DELETE FROM t"), statement("DELETE FROM u"), DIFFERENT, SAME, DIFFERENT, True),
    # CREATE TABLE … SELECT as a statement, and as 8.0.21 and later log it with rows.
    (
        statement("CREATE TABLE t AS SELECT 1 AS a", inside=False),
        created_from_rows("CREATE TABLE `t` (\n  `a` int\n) START TRANSACTION"),
        *(UNKNOWN, UNKNOWN, DIFFERENT, False),
    ),
    (
        statement("CREATE TABLE d.t LIKE d.temporary", inside=False),
        statement("CREATE TABLE `t` (\n  `a` int\n)", inside=False),
        *(UNKNOWN, SAME, DIFFERENT, False),
    ),
    (
        statement("CREATE TABLE t LIKE s", inside=False),
        statement("CREATE TABLE u LIKE s", inside=False),
        *(DIFFERENT, SAME, DIFFERENT, True),
    ),
    (
        statement("CREATE TABLE u LIKE s", inside=False),
        statement("CREATE TABLE `t` (\n  `a` int\n)", inside=False),
        *(DIFFERENT, SAME, DIFFERENT, True),
    ),
    (
        statement("DROP TEMPORARY TABLE `d`.`t` /* generated by server */", inside=False),
        statement("DROP TEMPORARY TABLE IF EXISTS `d`.`t` /* generated by server */", inside=False),
        *(SAME, SAME, TWICE, True),
    ),
    # 5.6 that logs rows, of a client's statement in a session with MIXED.
    (
        statement("DROP TEMPORARY TABLE t, `u`", inside=False),
        statement("DROP TEMPORARY TABLE IF EXISTS `d`.`t`,`d`.`u`", inside=False),
        *(SAME, SAME, TWICE, True),
    ),
    (
        statement("DROP TEMPORARY TABLE `e`.`t`", inside=False),
        statement("DROP TEMPORARY TABLE IF EXISTS `d`.`t`", inside=False),
        *(DIFFERENT, SAME, DIFFERENT, True),
    ),
    (
        statement("DROP TEMPORARY TABLE t", inside=False),
        statement("DROP TEMPORARY TABLE IF EXISTS t, u", inside=False),
        *(DIFFERENT, SAME, DIFFERENT, True),
    ),
    # A replica that gives tables a key of its own: sql_generate_invisible_primary_key.
    (
        statement("CREATE TABLE t (a INT)", inside=False),
        statement("CREATE TABLE `t` (`my_row_id` bigint, `a` int)", inside=False),
        *(DIFFERENT, SAME, DIFFERENT, True),
    ),
    (
        statement("DELETE FROM t"),
        statement("DELETE FROM t", variables=SQL_MODE),
        *(UNKNOWN, SAME, DIFFERENT, False),
    ),
    (
        statement("DROP TABLE `t` /* generated by server */", inside=False),
        statement("DROP  TABLE t", inside=False),
        *(UNKNOWN, SAME, DIFFERENT, False),
    ),
    (
        statement("CREATE USER a IDENTIFIED WITH x AS '1'", inside=False),
        statement("CREATE USER a IDENTIFIED WITH x AS '2'", inside=False),
        *(UNKNOWN, SAME, DIFFERENT, False),
    ),
]


@pytest.mark.parametrize("case", CASES)
def test_what_two_versions_say(
    case: tuple[Log, Log, Agreement, Agreement, Agreement, bool],
) -> None:
    left, right, undated, once, twice, proved = case

    def evaluated(ours: int | None, theirs: int | None) -> Comparison:
        forward = compare_versions(version(left, at=ours), version(right, at=theirs))
        back = compare_versions(version(right, at=theirs), version(left, at=ours))
        assert (forward.agreement, forward.is_proved) == (back.agreement, back.is_proved)
        assert forward.reason
        return forward

    for ours, theirs in ((None, None), (NOON, None), (0, NOON)):
        assert evaluated(ours, theirs).agreement is undated
        assert not evaluated(ours, theirs).is_proved
    assert evaluated(NOON, NOON).agreement is once
    found = evaluated(NOON, NOON + 1)
    assert (found.agreement, found.is_proved) == (twice, proved)
    assert not found.is_one_commit
    assert evaluated(NOON, NOON).is_one_commit
    # Names that agree as they are agree however they are compared.
    unsure = compare_versions(version(left, at=NOON), version(right, at=NOON), names_fold=None)
    assert unsure.agreement is once
    assert found.gtid == Gtid(Tsid(UUID_A), 5)
    is_empty = [version(log).content.is_empty for log in (left, right)]
    assert found.has_one_empty == (is_empty[0] != is_empty[1])


TIME_ZONES = [b"\x05" + bytes((len(name),)) + name for name in (b"SYSTEM", b"+05:00")]
CHECKS = [b"\x00" + struct.pack("<I", flags) for flags in (0, 1 << 26)]
# Columns of a table may be set by the clock; most DDL has one result at any time.
BY_THE_CLOCK = (
    "UPDATE t SET a = NOW()",
    "INSERT INTO t (a) VALUES (1)",
    "CREATE TABLE t AS SELECT NOW() AS n",
    "CREATE TABLE t (n DATETIME DEFAULT NOW()) TABLE s",
    "ALTER TABLE t ADD n TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
    "ALTER TABLE t ADD n DATE DEFAULT (curdate())",
    "CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO DELETE FROM t",
)
AT_ANY_TIME = (
    "CREATE DATABASE d",
    "DROP TABLE t",
    "TRUNCATE TABLE t",
    "CREATE TABLE t (a INT, n DATETIME DEFAULT NOW())",
    "CREATE ALGORITHM=UNDEFINED DEFINER=`root`@`localhost` SQL SECURITY DEFINER VIEW `v` AS SELECT 1",
    "CREATE DEFINER=`root`@`localhost` PROCEDURE p() INSERT INTO t VALUES (NOW())",
    "ALTER TABLE t ADD b INT, ADD INDEX (b)",
    "CREATE UNIQUE INDEX i ON t (a)",
)


@pytest.mark.parametrize("sql", [*BY_THE_CLOCK, *AT_ANY_TIME])
def test_equal_statements_at_two_times_are_two_commits(sql: str) -> None:
    """Replicas log the time of their source, so 5.6 shows it as well."""
    one, other = statement(sql), statement(sql, seconds=1)
    for moments in ((None, None), (NOON, NOON + 1)):
        left, right = version(one, at=moments[0]), version(other, at=moments[1])
        found = compare_versions(left, right)
        expected = (TWICE, True) if sql in AT_ANY_TIME else (DIFFERENT, False)
        assert (found.agreement, found.is_proved) == expected
        assert found.is_two_commits
    again = compare_versions(version(one), version(statement(sql)))
    assert (again.agreement, again.is_two_commits) == (SAME, False)


def test_equal_rows_at_two_times_are_two_commits() -> None:
    found = compare_versions(version(rows(1)), version(rows(1, seconds=2)))
    assert (found.agreement, found.is_proved, found.is_two_commits) == (TWICE, True, True)
    one = compare_versions(version(rows(1), at=NOON), version(rows(1, seconds=2), at=NOON))
    assert (one.agreement, one.is_two_commits) == (SAME, False)
    other = compare_versions(version(rows(1)), version(rows(2, seconds=2)))
    assert (other.agreement, other.is_proved) == (DIFFERENT, False)


@pytest.mark.parametrize("variables", [TIME_ZONES, CHECKS])
def test_equal_statements_of_two_sessions_are_not_equal_work(variables: list[bytes]) -> None:
    sql = "INSERT INTO t VALUES ('2026-01-01 00:00:00')"
    one, other = (statement(sql, variables=each) for each in variables)
    found = compare_versions(version(one, at=NOON), version(other, at=NOON + 1))
    assert (found.agreement, found.is_proved, found.is_two_commits) == (DIFFERENT, False, True)
    assert compare_versions(version(one), version(other)).agreement is UNKNOWN
    assert compare_versions(version(one, at=NOON), version(other, at=NOON)).agreement is SAME


def test_what_one_server_alone_logged_of_a_session_proves_nothing() -> None:
    """Within a routine a source logs what any statement before used; a replica does not."""
    sql = "INSERT INTO t VALUES (1)"
    used = TIME_ZONES[0] + b"\x0d\1\2\3" + b"\x08\5\0" + b"\x12\5\0"
    for at in (None, NOON):
        left, right = version(statement(sql, variables=used), at=at), version(statement(sql), at=at)
        assert compare_versions(left, right).agreement is SAME
        assert left.content.digest == right.content.digest


def test_a_view_change_is_every_members_own() -> None:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    log.add(EventType.VIEW_CHANGE, bytes(60))
    log.query("COMMIT")
    found = compare_versions(version(log, at=NOON), version(log, at=NOON + 1))
    assert found.agreement is SAME


def test_a_version_without_its_end_says_nothing() -> None:
    cut = Log()
    cut.gtid(5)
    cut.query("BEGIN")
    _add(cut, 1, table="t")
    for at in (None, NOON):
        for left, right in ((cut, rows(1)), (rows(1), cut), (cut, cut), (cut, empty())):
            found = compare_versions(version(left, at=at), version(right, at=at))
            assert found.agreement is UNKNOWN
            assert "its end is missing in the log" in found.reason


def test_only_one_gtid_is_compared() -> None:
    with pytest.raises(BinlogMisuse):
        compare_versions(version(rows(1)), version(rows(1, gno=6)))
    anonymous = version(rows(1))
    anonymous = replace(anonymous, transaction=replace(anonymous.transaction, gtid=None))
    with pytest.raises(BinlogMisuse):
        compare_versions(anonymous, anonymous)


@pytest.mark.parametrize(
    ("moments", "is_one"),
    [
        ((None, None), False),
        ((NOON, None), False),
        ((0, 0), False),
        ((NOON, NOON + 1), False),
        ((NOON, NOON), True),
    ],
)
def test_one_commit_has_one_moment_in_both_logs(
    moments: tuple[int | None, int | None], *, is_one: bool
) -> None:
    left, right = (version(rows(1), at=at) for at in moments)
    assert are_one_commit(left, right) is are_one_commit(right, left) is is_one


@pytest.mark.parametrize(("more", "is_kept"), [(-1, True), (0, True), (1, False)])
def test_long_events_are_let_go_once_they_are_read(more: int, *, is_kept: bool) -> None:
    def long(characters: int) -> Version:
        return version(statement("DELETE FROM t" + " " * characters, inside=False))

    bare = long(0).events
    assert bare is not None
    size = sum(event.header.event_bytes for event in bare.events)
    found = compare_versions(*(long(EVENT_BYTES_KEPT - size + more) for _ in range(2)))
    assert (found.left.events is not None) is (found.right.events is not None) is is_kept
    assert found.left.content.parts, "its content is still known"
    again = compare_versions(found.left, found.right)
    assert (again.agreement, again.left) == (SAME, found.left)


def test_a_version_is_the_same_before_and_after_it_is_read() -> None:
    read, unread = version(rows(1)), version(rows(1))
    assert read.content.parts
    assert replace(read, events=None) == replace(unread, events=None)


def test_kinds_decide_only_where_no_form_of_logging_explains_them() -> None:
    def of(kind: TransactionKind) -> Version:
        made = version(rows(2))
        return replace(made, transaction=replace(made.transaction, kind=kind))

    for kind in TransactionKind:
        found = compare_versions(version(rows(1)), of(kind))
        decides = kind in (TransactionKind.DDL, TransactionKind.INCIDENT)
        assert found.reason.startswith("one is ") is decides, kind
    both = compare_versions(of(TransactionKind.DDL), of(TransactionKind.DDL))
    assert both.agreement is SAME


def test_statements_of_one_commit_that_are_not_as_many_prove_nothing() -> None:
    two = Log()
    two.gtid(5)
    two.query("BEGIN")
    two.query("DELETE FROM t")
    two.query("DELETE FROM u")
    two.xid()
    found = compare_versions(version(two, at=NOON), version(statement("DELETE FROM v"), at=NOON))
    assert found.agreement is UNKNOWN


def test_the_log_that_has_less_is_named() -> None:
    found = compare_versions(version(rows(1, 2), at=NOON), version(rows(2), at=NOON))
    assert (found.agreement, found.has_less) == (SKIPPED, LeftOut.RIGHT)
    assert found.reason.endswith("one version has 1 of 2 rows of d.t")
    found = compare_versions(version(empty(), at=NOON), version(rows(2), at=NOON))
    assert (found.agreement, found.has_less) == (SKIPPED, LeftOut.LEFT)
    assert not found.is_proved
    found = compare_versions(version(rows(2), at=NOON), version(empty(), at=NOON))
    assert (found.agreement, found.has_less) == (SKIPPED, LeftOut.RIGHT)


def test_rows_without_a_logged_column_cannot_be_counted() -> None:
    blank = Log()
    blank.gtid(5)
    blank.query("BEGIN")
    _add(blank, table="t")
    blank.xid()
    found = compare_versions(version(blank, at=NOON), version(rows(1), at=NOON))
    assert found.agreement is not SKIPPED


def test_before_commit_times_another_server_id_is_another_commit() -> None:
    cases = [
        (rows(1), rows(1), TWICE),
        (rows(1), rows(2), DIFFERENT),
        (rows(1), empty(), DIFFERENT),  # committed empty by hand on the other server
        (rows(1), rows(1, types=LONG * 2), DIFFERENT),
    ]
    for ours, theirs, expected in cases:
        there = version(theirs)
        there = replace(there, transaction=replace(there.transaction, server_id=4711))
        found = compare_versions(version(ours), there)
        assert found.agreement is expected
        assert found.is_proved == (theirs is not cases[3][1])
        assert "4711" in found.reason
        # The moment of one commit outweighs it: `mysqlbinlog | mysql` passes the moment on.
        dated = replace(there.transaction, original_commit_timestamp=NOON)
        found = compare_versions(version(ours, at=NOON), replace(there, transaction=dated))
        assert found.agreement is not DIFFERENT


def test_names_in_another_letter_case_are_the_same_where_a_server_folds_them() -> None:
    upper, lower = rows(1, table="T", schema="Shop"), rows(1, table="t", schema="shop")
    for moments in ((None, None), (NOON, NOON), (NOON, NOON + 1)):
        left, right = version(upper, at=moments[0]), version(lower, at=moments[1])
        two = moments[0] != moments[1]
        folds = compare_versions(left, right, names_fold=True)
        assert folds.agreement is (TWICE if two else SAME)
        exact = compare_versions(left, right, names_fold=False)
        assert exact.agreement not in (SAME, TWICE)
        assert "lower_case_table_names" not in exact.reason
        unsure = compare_versions(left, right, names_fold=None)
        assert unsure.agreement is UNKNOWN
        assert "lower_case_table_names" in unsure.reason
        other = version(rows(2, table="t", schema="shop"), at=moments[1])
        assert compare_versions(left, other, names_fold=True).agreement in (DIFFERENT, DRIFTED)
        assert compare_versions(left, other, names_fold=None).agreement in (DIFFERENT, DRIFTED)


def test_a_clients_words_are_not_folded() -> None:
    """Letter case may be all that two texts differ in: only names are folded, not what is in them."""
    left, right = statement("DELETE FROM t WHERE a = 'X'"), statement("DELETE FROM t WHERE a = 'x'")
    assert compare_versions(version(left), version(right), names_fold=True).agreement is DIFFERENT
    words = "DROP TABLE `{}` /* generated by server */"
    left, right = (statement(words.format(name), inside=False) for name in "Tt")
    assert compare_versions(version(left), version(right), names_fold=True).agreement is SAME
    assert compare_versions(version(left), version(right)).agreement is not SAME


def statements(*each: tuple[str, int]) -> Log:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    for sql, error_code in each:
        log.add(EventType.QUERY, query_body(sql, error_code=error_code))
    log.xid()
    return log


@pytest.mark.parametrize(
    "words", ["CREATE USER", "ALTER USER", "DROP USER", "GRANT", "REVOKE", "SET PASSWORD"]
)
def test_a_server_words_statements_on_accounts_anew(words: str) -> None:
    left, right = (statement(f"{words} a x '{n}'", inside=False) for n in (1, 2))
    found = compare_versions(version(left), version(right))
    assert (found.agreement, found.reason) == (UNKNOWN, "a statement is worded differently")


@pytest.mark.parametrize("more", [("DELETE FROM u", 0), ("DELETE FROM t", 0)])
def test_one_statement_more_is_other_work(more: tuple[str, int]) -> None:
    left, right = statements(("DELETE FROM t", 0)), statements(("DELETE FROM t", 0), more)
    found = compare_versions(version(left), version(right))
    assert (found.agreement, found.reason) == (DIFFERENT, "the number of statements differs")


def inserting(identifier: int) -> Log:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    log.add(EventType.INTVAR, struct.pack("<BQ", 2, identifier))
    log.add(EventType.QUERY, query_body("INSERT INTO t VALUES (NULL)"))
    log.xid()
    return log


def test_what_is_logged_with_a_statement_is_part_of_it() -> None:
    found = compare_versions(version(inserting(7)), version(inserting(8)))
    assert (found.agreement, found.reason) == (
        DIFFERENT,
        "the values logged with a statement differ",
    )
    assert compare_versions(version(inserting(7)), version(inserting(7))).agreement is SAME
    left, right = statement("DELETE FROM t"), statement("DELETE FROM t", variables=SQL_MODE)
    found = compare_versions(version(left), version(right))
    assert found.reason.startswith("a statement ran with different settings")


def test_names_fold_only_where_both_are_words_of_a_server() -> None:
    ours, theirs = (
        statement("DROP TABLE `T` /* generated by server */", inside=False),
        statement("DROP TABLE `t`", inside=False),
    )
    for left, right in ((ours, theirs), (theirs, ours)):
        assert compare_versions(version(left), version(right)).agreement is DIFFERENT


def test_fewer_rows_of_a_rewritten_schema_are_not_skipped_rows() -> None:
    left, right = version(rows(1), at=NOON), version(rows(1, 2, schema="e"), at=NOON)
    assert compare_versions(left, right).agreement is UNKNOWN
    assert compare_versions(right, left).agreement is UNKNOWN


def test_other_work_on_the_same_rows_is_different() -> None:
    deleted = Log()
    deleted.gtid(5)
    deleted.query("BEGIN")
    deleted.add(EventType.TABLE_MAP, table_map_body(LONG, b"", schema="d", table="t"))
    image = b"\xfc" + struct.pack("<i", 1)
    deleted.add(EventType.DELETE_ROWS, rows_body(image, columns=1))
    deleted.xid()
    found = compare_versions(version(rows(1)), version(deleted))
    assert (found.agreement, found.reason) == (DIFFERENT, "the changes to the tables differ")


def test_an_error_explains_nothing_where_parts_were_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(digest, "PARTS_MAX", 1)
    short = statements(("DELETE FROM t", 1050))
    long = statements(("DELETE FROM t", 0), ("DELETE FROM u", 0))
    assert (
        compare_versions(version(short), version(statements(("DELETE FROM t", 0)))).agreement
        is SAME
    )
    for left, right in ((short, long), (long, short)):
        assert compare_versions(version(left), version(right)).agreement is not SAME


def many_tables(*names: str) -> Log:
    log = Log()
    log.gtid(5)
    log.query("BEGIN")
    for name in names:
        _add(log, 1, table=name)
    log.xid()
    return log


def test_parts_in_another_order_are_not_called_the_same() -> None:
    def of(*words: str) -> Log:
        log = Log()
        log.gtid(5)
        log.query("BEGIN")
        for word in words:
            if word == "row":
                _add(log, 1, table="t")
            else:
                log.add(EventType.QUERY, query_body(word))
        log.xid()
        return log

    for left, right in (
        (of("row", "DELETE FROM u"), of("DELETE FROM u", "row")),
        (many_tables("t", "u"), many_tables("u", "t")),
    ):
        for ours, theirs in ((None, None), (NOON, NOON)):
            found = compare_versions(version(left, at=ours), version(right, at=theirs))
            assert found.agreement is UNKNOWN


def test_what_is_beyond_the_kept_parts_is_not_called_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(digest, "PARTS_MAX", 2)
    kept = ("t", "u")
    left, right = many_tables(*kept, "v"), many_tables(*kept, "w")
    for fold in (False, True, None):
        for ours, theirs in ((None, None), (NOON, NOON)):
            found = compare_versions(
                version(left, at=ours), version(right, at=theirs), names_fold=fold
            )
            assert found.agreement is UNKNOWN
        found = compare_versions(
            version(left, at=NOON), version(right, at=NOON + 1), names_fold=fold
        )
        assert (found.agreement, found.is_proved) in ((DIFFERENT, False), (UNKNOWN, False))
    same = many_tables(*kept, "v")
    assert compare_versions(version(left), version(same)).agreement is SAME
