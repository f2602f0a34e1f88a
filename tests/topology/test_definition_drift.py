"""The core that compares definitions: canonical text, classes, privileges, proof."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from gtid import Gtid, GtidSet
from topology.adapters.definition_statements import digest_queries, limits_statement
from topology.catalogue.findings import Grade, Severity, Verdict
from topology.definitions.canonical import CanonicalDefinition, canonical_definition
from topology.definitions.compared_clauses import changes_between
from topology.definitions.compared_pairs import ConnectedServer, pairs_of
from topology.definitions.ddl_searches import DdlSearch, NewestDdl, concerns, on_the_way
from topology.definitions.drift_statements import changing, creating
from topology.definitions.object_drift import ObjectPair, PairDrift, PairFacts, ServerSide
from topology.definitions.pair_drift import differing, drift_between
from topology.definitions.row_effects import RowEffect, consequence_of
from topology.definitions.schema_objects import (
    ObjectDigest,
    ObjectKey,
    ObjectKind,
    ServerObjects,
    SetsAround,
)
from topology.definitions.schema_versions import VersionFacts, apart, versions_of
from topology.definitions.visibility import Visibility
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.version import ServerVersion

A = "aaaaaaaa-0000-0000-0000-000000000001"
UUIDS = [UUID(int=number) for number in range(1, 6)]
KEY = ObjectKey(ObjectKind.TABLE, "app", "t")
SEES = Visibility.of_grants(["GRANT ALL PRIVILEGES ON *.* TO `root`@`%`"])
OLD = {"utf8mb4": "utf8mb4_general_ci", "utf8": "utf8_general_ci", "latin1": "latin1_swedish_ci"}
NEW = {
    "utf8mb4": "utf8mb4_0900_ai_ci",
    "utf8mb3": "utf8mb3_general_ci",
    "latin1": OLD["latin1"],
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def table(
    *clauses: str, options: str = "ENGINE=InnoDB DEFAULT CHARSET=latin1"
) -> CanonicalDefinition:
    text = "CREATE TABLE `t` (\n  " + ",\n  ".join(clauses) + f"\n) {options}"
    return canonical_definition(ObjectKind.TABLE, text, NEW)


def classes(source: CanonicalDefinition, replica: CanonicalDefinition) -> list[str]:
    return [each.drift_class.value for each in changes_between(source, replica)]


def test_versions_write_one_definition_in_different_ways() -> None:
    old = canonical_definition(
        ObjectKind.TABLE,
        "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n  `y` year(4) DEFAULT NULL,\n"
        "  `a` varchar(10) CHARACTER SET utf8 DEFAULT 'int(11)',\n  `b` text\n"
        ") ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb4 ROW_FORMAT=COMPACT"
        " COMMENT='AUTO_INCREMENT=9'",
        OLD,
    )
    new = canonical_definition(
        ObjectKind.TABLE,
        "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `y` year DEFAULT NULL,\n"
        "  `a` varchar(10) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT 'int(11)',\n"
        "  `b` text COLLATE utf8mb4_general_ci\n"
        ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci"
        " COMMENT='AUTO_INCREMENT=9'",
        NEW,
    )
    assert old.lines == new.lines
    assert "DEFAULT 'int(11)'" in old.lines[2]
    assert "COMMENT='AUTO_INCREMENT=9'" in old.lines[-1]


def test_whether_an_event_is_enabled_is_not_compared() -> None:
    forms = {
        canonical_definition(
            ObjectKind.EVENT,
            f"CREATE EVENT `e` ON SCHEDULE EVERY 1 DAY ON COMPLETION {word} {status} DO SELECT 1",
            NEW,
        ).lines
        for status in ("ENABLE", "DISABLE", "DISABLE ON SLAVE", "DISABLE ON REPLICA")
        for word in ("PRESERVE", "NOT PRESERVE")
    }
    assert len(forms) == 2


@pytest.mark.parametrize(
    ("source", "replica", "expected"),
    [
        (("`a` int", "`b` int"), ("`a` int",), ["column fewer"]),
        (("`a` int",), ("`a` int", "`b` int"), ["column more"]),
        (("`a` int", "`b` int"), ("`a` int", "`c` int"), ["column renamed"]),
        (("`a` int", "`b` int"), ("`a` int", "`c` text"), ["column fewer", "column more"]),
        (("`a` int", "`b` int"), ("`b` int", "`a` int"), ["column moved"]),
        (("`a` int",), ("`a` bigint",), ["column type"]),
        (("`a` int NOT NULL",), ("`a` int",), ["column attribute"]),
        (("`a` text",), ("`a` text CHARACTER SET utf8mb4",), ["charset"]),
        (("`a` int", "KEY `k` (`a`)"), ("`a` int",), ["index fewer"]),
        (("`a` int", "KEY `k` (`a`)"), ("`a` int", "UNIQUE KEY `k` (`a`)"), ["index different"]),
        (
            ("`a` int", "KEY `k` (`a`)", "KEY `l` (`a`)"),
            ("`a` int", "KEY `l` (`a`)", "KEY `k` (`a`)"),
            [],
        ),
        (("`a` int",), ("`a` int", "CONSTRAINT `c` CHECK ((`a` > 1))"), ["constraint more"]),
    ],
)
def test_each_difference_has_its_class(
    source: tuple[str, ...], replica: tuple[str, ...], expected: list[str]
) -> None:
    assert classes(table(*source), table(*replica)) == expected


def test_what_deletes_is_a_comment_and_the_default_charset_comes_first() -> None:
    source = table("`a` varchar(10)", "`b` int")
    replica = table("`a` varchar(5)", "`x` text", options="ENGINE=InnoDB DEFAULT CHARSET=utf8mb4")
    assert changing(KEY, changes_between(source, replica), source, replica, event_status="") == (
        "ALTER TABLE `app`.`t` ENGINE=InnoDB DEFAULT CHARSET=latin1;",
        "ALTER TABLE `app`.`t` ADD COLUMN `b` int AFTER `a`;",
        "ALTER TABLE `app`.`t` MODIFY COLUMN `a` varchar(10);",
        "-- ALTER TABLE `app`.`t` DROP COLUMN `x`;",
    )


@pytest.mark.parametrize(
    ("column", "is_moment"),
    [
        ("`a` timestamp NOT NULL DEFAULT '2020-01-01 08:00:00'", True),
        ("`a` timestamp(3) NULL DEFAULT '2020-01-01 08:00:00.500'", True),
        ("`a` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP", False),
        ("`a` datetime DEFAULT '2020-01-01 08:00:00'", False),
    ],
)
def test_the_default_of_a_timestamp_is_written_in_utc(column: str, is_moment: bool) -> None:
    source, replica = table("`i` int", column), table("`i` int")
    statements = (
        changing(KEY, changes_between(source, replica), source, replica, event_status=""),
        creating(KEY, source)[1:],
    )
    for shown in statements:
        assert (shown[0] == "SET SESSION time_zone = '+00:00';") is is_moment
        assert column in shown[-1]


def test_a_backslash_escapes_in_the_session_that_takes_a_text_back() -> None:
    """The server may have NO_BACKSLASH_ESCAPES; it would double each backslash."""
    modes = "SET SESSION sql_mode = REPLACE(@@SESSION.sql_mode, 'NO_BACKSLASH_ESCAPES', '');"
    column = r"`a` varchar(9) DEFAULT 'a\\\\b'"
    source, replica = table("`i` int", column), table("`i` int")
    assert creating(KEY, source)[1] == modes
    changed = changing(KEY, changes_between(source, replica), source, replica, event_status="")
    assert changed[0] == modes
    assert modes not in creating(KEY, replica)


@pytest.mark.parametrize(
    ("client", "text", "is_shown"),
    [("latin1", "é", False), ("latin1", "e", True), ("utf8mb3", "é", True)],
)
def test_a_text_is_not_shown_that_a_session_would_take_for_another(
    client: str, text: str, is_shown: bool
) -> None:
    key = ObjectKey(ObjectKind.VIEW, "app", "v")
    view = canonical_definition(
        ObjectKind.VIEW,
        f"CREATE VIEW `app`.`v` AS select '{text}' AS `a`",
        NEW,
        session={"character_set_client": client},
    )
    other = canonical_definition(ObjectKind.VIEW, "CREATE VIEW `app`.`v` AS select 1 AS `a`", NEW)
    for statements in (
        creating(key, view),
        changing(key, changes_between(view, other), view, other, event_status=""),
    ):
        assert (" AS select " in statements[-1]) is is_shown
        assert is_shown or "copy it with mysqldump" in statements[0]


@pytest.mark.parametrize(
    ("version", "is_stored"), [("5.6.24", False), ("5.7.44", False), ("8.0.11", True)]
)
def test_digests_are_read_in_utc_or_not_used(version: str, is_stored: bool) -> None:
    """8.0 and later show a default as it was written, in whatever zone that was."""
    assert "SET SESSION time_zone = '+00:00'," in limits_statement(1)
    [columns] = [
        each for each in digest_queries(ServerVersion.parse(version), ()) if each.part == "columns"
    ]
    assert ("MAX(DATA_TYPE = 'timestamp'" in columns.statement) is is_stored


@pytest.mark.parametrize(
    ("source", "replica", "conversions", "effect", "errno"),
    [
        ("`a` int", "`a` bigint", "", RowEffect.STOPS, 1677),
        ("`a` int", "`a` bigint", "ALL_NON_LOSSY", RowEffect.CONVERTED, None),
        ("`a` int", "`a` bigint", None, RowEffect.UNKNOWN, None),
        ("`a` bigint", "`a` int", "ALL_NON_LOSSY", RowEffect.STOPS, 1677),
        ("`a` datetime", "`a` datetime(3)", "ALL_NON_LOSSY,ALL_LOSSY", RowEffect.STOPS, 1677),
        ("`a` int", "`a` int unsigned", "", RowEffect.WRONG_VALUE, None),
        ("`a` int", "`a` int NOT NULL", "", RowEffect.WRONG_VALUE, None),
        ("`a` enum('a','b')", "`a` enum('b','a')", "", RowEffect.WRONG_VALUE, None),
        ("`a` enum('a','b')", "`a` enum('a','b','c')", "", RowEffect.APPLIED, None),
        ("`a` int", "`b` int", "", RowEffect.APPLIED, None),
    ],
)
def test_what_rows_do(
    source: str, replica: str, conversions: str | None, effect: RowEffect, errno: int | None
) -> None:
    found = consequence_of(table(source), table(replica), schema="app", conversions=conversions)
    assert (found.effect, found.errno) == (effect, errno)


def test_values_go_to_another_column_only_if_positions_differ() -> None:
    ours = table("`a` int", "`b` int")
    moved = consequence_of(ours, table("`b` int", "`a` int"), schema="app", conversions="")
    assert moved.effect is RowEffect.WRONG_COLUMN
    more = table("`a` int", "`b` int", "`c` int")
    assert not consequence_of(ours, more, schema="app", conversions="").is_severe


def test_values_of_columns_that_the_replica_does_not_have_are_lost() -> None:
    ours, theirs = table("`a` int", "`b` int", "`c` int"), table("`a` int")
    found = consequence_of(ours, theirs, schema="app", conversions="")
    assert (found.effect, found.is_severe) == (RowEffect.LOST, True)
    assert found.why == "the replica has no column `b`, `c`"
    generated = table("`a` int", "`b` int GENERATED ALWAYS AS (`a`) VIRTUAL")
    assert not consequence_of(generated, theirs, schema="app", conversions="").is_severe


@pytest.mark.parametrize(
    ("source", "replica", "errors"),
    [
        ("", "CONSTRAINT `c` CHECK ((`a` > 1))", (3819, 3822)),
        ("", "CONSTRAINT `c` FOREIGN KEY (`a`) REFERENCES `p` (`i`)", (1452, 1826)),
        ("CONSTRAINT `c` CHECK ((`a` > 0))", "CONSTRAINT `c` CHECK ((`a` > 1))", (3819,)),
        ("", "CONSTRAINT `c` CHECK ((`a` > 1)) /*!80016 NOT ENFORCED */", None),
        ("CONSTRAINT `c` CHECK ((`a` > 1))", "", None),
    ],
)
def test_a_constraint_of_the_replica_stops_the_applier(
    source: str, replica: str, errors: tuple[int, ...] | None
) -> None:
    ours, theirs = (table("`a` int", *([each] if each else [])) for each in (source, replica))
    one, other = (
        ServerSide(objects(name, digest=name), {KEY: each}, conversions="")
        for name, each in (("a", ours), ("b", theirs))
    )
    [found] = drift_between(one, other, [ObjectPair(KEY, KEY)], QUIET).differences
    if errors is None:
        assert (found.rows.effect, found.severity) == (RowEffect.APPLIED, Severity.WARNING)
    else:
        assert (found.errors, found.severity) == (errors, Severity.CRITICAL)
        assert f"stop the applier with {errors[0]}: " in found.rows_text


def test_what_privileges_show() -> None:
    some = Visibility.of_grants(
        [
            r"GRANT SELECT, SHOW VIEW ON *.* TO `u`@`%`",
            r"REVOKE SELECT ON `secret`.* FROM `u`@`%`",
            r"GRANT TRIGGER ON `app\_1`.* TO `u`@`%`",
            r"GRANT EVENT ON `app%`.* TO `u`@`%`",
            r"GRANT EVENT, SELECT ON `other`.`t` TO `u`@`%`",
        ]
    )
    assert some.shows("table", "app")
    assert not some.shows("table", "secret")
    assert not some.shows_everywhere("table")
    assert some.shows("procedure", "app")
    # Of several patterns that match, the server uses one: both must have the privilege.
    assert not some.shows("trigger", "app_1")
    assert not some.shows("trigger", "appx1")
    assert some.shows("event", "app2")
    assert not some.shows("event", "other")
    assert SEES.shows_everywhere("event")
    literal = Visibility.of_grants(["GRANT EVENT ON `app%`.* TO `u`@`%`"], are_literal=True)
    assert literal.shows("event", "app%")
    assert not literal.shows("event", "app2")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("ALTER TABLE t ADD a INT", True),
        ("alter table `app`.`T` add a int", True),
        ("ALTER TABLE t1 ADD a INT", False),
        ("DROP DATABASE app", True),
        ("DROP SCHEMA IF EXISTS app", True),
        ("ALTER DATABASE app CHARACTER SET ascii", False),
        ("CREATE DATABASE app", False),
        ("ALTER DATABASE `#mysql50#app` UPGRADE DATA DIRECTORY NAME", True),
        ("CREATE OR REPLACE DEFINER=`root`@`%` SQL SECURITY DEFINER VIEW v AS SELECT 1 t", False),
        ("/* x */ CREATE DEFINER=`a b`@`%` TRIGGER x BEFORE INSERT ON t FOR EACH ROW DO 0", False),
        ("CREATE UNIQUE INDEX i ON t (a)", True),
        ("RENAME TABLES u TO t", True),
        ("/*!50003 CREATE*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW DO 0 */", True),
        ("DROP TABLE app.u", False),
        ("ALTER TABLE parent RENAME p2", True),
        ("GRANT SELECT ON app.t TO x", False),
        ("ALTER TABLE u COMMENT '" + "x" * 20_000, True),  # it may have been cut
    ],
)
def test_which_ddl_concerns_an_object(statement: str, expected: bool) -> None:
    names = frozenset({"t", "parent"})
    assert (
        concerns(LoggedDdl(Gtid.parse(f"{A}:1"), NOW, statement[:16_384]), KEY, names) == expected
    )


def test_which_ddl_of_a_schema_changes_the_schema() -> None:
    schema = ObjectKey(ObjectKind.SCHEMA, "app")
    ddl = LoggedDdl(Gtid.parse(f"{A}:1"), NOW, "ALTER DATABASE app CHARACTER SET ascii")
    assert concerns(ddl, schema, frozenset({"app"}))


def objects(
    name: str, visibility: Visibility = SEES, digest: str = "1", **more: str
) -> ServerObjects:
    found = {KEY: ObjectDigest(digest), ObjectKey(ObjectKind.SCHEMA, "app"): ObjectDigest("s")}
    found |= {
        ObjectKey(ObjectKind.TABLE, "app", key): ObjectDigest(each) for key, each in more.items()
    }
    return ServerObjects(name, visibility, SetsAround(GtidSet(), GtidSet()), objects=found)


def compared(
    facts: PairFacts,
    *,
    replica: CanonicalDefinition | None,
    visibility: Visibility = SEES,
    has_gtids: bool = True,
) -> PairDrift:
    source = ServerSide(objects("a"), {KEY: table("`a` int")}, has_gtids=has_gtids)
    other = ServerSide(
        objects("b", visibility, "2"), {KEY: replica}, has_gtids=has_gtids, conversions=""
    )
    return drift_between(source, other, [ObjectPair(KEY, KEY)], facts)


QUIET = PairFacts(on_the_way(GtidSet(), ()))


def test_a_missing_table_is_critical_if_it_is_proved() -> None:
    [one] = compared(QUIET, replica=None).differences
    assert (one.grade, one.severity, one.rows.errno) == (Grade.PROVED, Severity.CRITICAL, 1146)
    assert compared(QUIET, replica=None).verdict is Verdict.CRITICAL
    assert compared(QUIET, replica=table("`a` int")).verdict is Verdict.OK


def test_what_the_account_cannot_see_is_unknown() -> None:
    found = compared(QUIET, replica=None, visibility=Visibility())
    assert (found.differences, found.verdict) == ((), Verdict.UNKNOWN)
    [(server, fact)] = found.unknown
    assert (server, fact.fact) == ("b", "table app.t")


def test_each_benign_cause_takes_the_proof_away() -> None:
    way = GtidSet.parse(f"{A}:1-2")
    ddl = LoggedDdl(Gtid.parse(f"{A}:1"), NOW, "ALTER TABLE t ADD b INT")
    other = LoggedDdl(Gtid.parse(f"{A}:1"), NOW, "ALTER TABLE u ADD b INT")
    hidden = LoggedDdl(Gtid.parse(f"{A}:1"), NOW, "", is_unread=True)
    part = DdlSearch("a", GtidSet.parse(f"{A}:1"), why_unread="purged")
    theirs = table("`a` int", "`b` int")
    facts = {
        "pending": PairFacts(on_the_way(way, [DdlSearch("a", way, (ddl,))])),
        "unread": PairFacts(on_the_way(way, [DdlSearch("a", way, (hidden,))])),
        "purged": PairFacts(on_the_way(way, [part])),
        "filters": PairFacts(QUIET.way, filtered=None),
    }
    for each in facts.values():
        [one] = compared(each, replica=theirs).differences
        assert (one.grade, one.severity) == (Grade.LIKELY, Severity.WARNING)
        assert one.causes
    others = {
        "third server": (on_the_way(way, [DdlSearch("c", way, (ddl,))]), True),
        "other table": (on_the_way(way, [DdlSearch("c", way, (other,))]), False),
        "not searched": (on_the_way(way, [part]), True),
    }
    for each_way, is_doubt in others.values():
        third = PairFacts(QUIET.way, from_others=(("c", each_way),))
        [one] = compared(third, replica=theirs).differences
        assert one.grade is (Grade.LIKELY if is_doubt else Grade.PROVED)
        assert one.pending == ()  # it stays S2
        assert (
            any(
                "on its way from c" in cause or "on their way from c" in cause
                for cause in one.causes
            )
            is is_doubt
        )
        assert one.statements[0].startswith("-- Not now") is is_doubt
    above = PairFacts(QUIET.way, unread_above=("c:3306",))
    [one] = compared(above, replica=theirs).differences
    assert (one.grade, len(one.causes)) == (Grade.LIKELY, 1)
    assert "did not compare c:3306, from which transactions can reach a or b" in one.causes[0]
    [one] = compared(QUIET, replica=theirs, has_gtids=False).differences
    assert one.grade is Grade.LIKELY
    unrelated = PairFacts(on_the_way(way, [DdlSearch("a", way, (other,))]))
    [one] = compared(unrelated, replica=theirs).differences
    assert (one.grade, one.causes) == (Grade.PROVED, ())
    filtered = PairFacts(QUIET.way, filtered=frozenset({KEY}))
    assert compared(filtered, replica=theirs).verdict is Verdict.OK


def test_objects_of_a_schema_that_is_missing_are_one_difference() -> None:
    empty = ServerObjects("b", SEES, SetsAround(GtidSet(), GtidSet()))
    keys = [pair.source for pair in differing(objects("a"), empty)]
    assert keys == [ObjectKey(ObjectKind.SCHEMA, "app")]
    assert differing(objects("a"), objects("b")) == ()


def test_names_fold_if_one_server_folds_them() -> None:
    upper = ObjectKey(ObjectKind.TABLE, "app", "T")
    folding = ServerObjects(
        "b",
        SEES,
        SetsAround(GtidSet(), GtidSet()),
        folds_names=True,
        objects={upper: ObjectDigest("1"), ObjectKey(ObjectKind.SCHEMA, "app"): ObjectDigest("s")},
    )
    assert differing(objects("a"), folding) == ()


def server(name: str, number: int, *sources: int) -> ConnectedServer:
    return ConnectedServer(name, UUIDS[number], tuple(UUIDS[each] for each in sources))


def test_pairs_follow_channels() -> None:
    chain = [server("c", 2, 1), server("b", 1, 0), server("a", 0)]
    found = {(each.source, each.replica): each for each in pairs_of(chain)}
    assert set(found) == {("a", "b"), ("b", "c")}
    assert not any(each.may_return for each in found.values())
    [mutual] = pairs_of([server("a", 0, 1), server("b", 1, 0)])
    assert (mutual.source, mutual.is_mutual, mutual.may_return) == ("a", True, True)
    [siblings] = pairs_of([server("a", 0, 3), server("b", 1, 3)])
    assert (siblings.has_channel, siblings.may_return) == (False, True)
    [below] = pairs_of([server("a", 0, 3), server("b", 1, 0)])
    assert below.may_return  # over a server that was not read


def test_what_comes_from_above_may_still_reach_the_source() -> None:
    """In a chain the middle may have lost what the end of the chain has (a crash)."""
    connecting = ConnectedServer("b", UUIDS[1], (), ("x:3306",))
    for middle, receives in (
        (server("b", 1, 0), True),
        (server("b", 1, 4), True),  # from a server that was not read
        (connecting, True),
        (server("b", 1), False),
    ):
        pairs = pairs_of([server("a", 0), middle, server("c", 2, 1)])
        [pair] = [each for each in pairs if each.replica == "c"]
        assert (pair.source, pair.source_receives) == ("b", receives)


def test_versions_count_ddl_that_a_server_has_not_executed() -> None:
    executed = [GtidSet.parse(f"{A}:1-9"), GtidSet.parse(f"{A}:1-5")]
    facts = [
        VersionFacts("a", executed[0], GtidSet(), None, "x"),
        VersionFacts("b", executed[1], GtidSet.parse(f"{A}:1-7"), None, "x"),
    ]
    ddl = [
        LoggedDdl(Gtid.parse(f"{A}:{number}"), NOW, f"ALTER TABLE t ADD c{number} INT")
        for number in (4, 7, 9)
    ]
    grant = LoggedDdl(Gtid.parse(f"{A}:8"), NOW, "GRANT SELECT ON a.b TO c")
    wanted, common = apart(facts)
    assert (str(wanted), str(common)) == (f"{A}:6-9", f"{A}:1-5")
    search = DdlSearch("a", wanted, (ddl[1], grant, ddl[2]))
    newest = NewestDdl("a", (ddl[0],), "binlog.000001")
    found = versions_of(facts, [search], newest, unknown=(), read_at=NOW)
    first, second = found.servers
    assert (first.applied, first.missing) == (ddl[2], ())
    assert (second.applied, second.received) == (ddl[0], ddl[1])
    assert second.missing == (ddl[1], ddl[2])
    assert found.verdict is Verdict.WARNING
    part = DdlSearch("a", GtidSet(), why_unread="purged")
    assert versions_of(facts, [part], newest, unknown=(), read_at=NOW).verdict is Verdict.UNKNOWN


def test_a_collation_is_written_where_another_version_has_another_default() -> None:
    """`DEFAULT CHARSET=utf8mb4` of 5.6 is another collation on 9.7."""
    text = (
        "CREATE TABLE `t` (\n  `a` varchar(9) CHARACTER SET utf8mb4 DEFAULT 'CHARACTER SET utf8mb4',\n"
        "  `b` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,\n"
        "  `c` varchar(9) CHARACTER SET latin1 DEFAULT NULL,\n"
        "  `d` varchar(9) DEFAULT NULL COMMENT ' CHARACTER SET utf8mb4',\n"
        "  KEY `CHARACTER SET utf8mb4` (`a`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
        " COMMENT=' DEFAULT CHARSET=utf8mb4'\n/*!50100 PARTITION BY KEY (a) */"
    )
    shown = canonical_definition(ObjectKind.TABLE, text, OLD)
    written = text.replace(
        "9) CHARACTER SET utf8mb4 DEFAULT",
        "9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci DEFAULT",
    ).replace(
        "InnoDB DEFAULT CHARSET=utf8mb4",
        "InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci",
    )
    assert shown.create == written
    assert shown.lines == canonical_definition(ObjectKind.TABLE, written, NEW).lines
    replica = canonical_definition(ObjectKind.TABLE, text, NEW)
    changed = changing(KEY, changes_between(shown, replica), shown, replica, event_status="")
    assert "DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci" in changed[0]
    assert "`a` varchar(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci" in changed[1]
    schema = ObjectKey(ObjectKind.SCHEMA, "app")
    create = "CREATE DATABASE `app` /*!40100 DEFAULT CHARACTER SET utf8mb4 */"
    [made] = creating(schema, canonical_definition(ObjectKind.SCHEMA, create, OLD))
    assert made == create.replace("utf8mb4 */", "utf8mb4 COLLATE utf8mb4_general_ci */;")
