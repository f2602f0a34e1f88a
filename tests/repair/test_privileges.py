"""From which version on an account needs which privilege; and rows that differ, as text."""

import pytest

from repair.content.row_versions import RowsRead, RowVersions
from repair.repair_plan import differing_rows, shown_version
from repair.sql.privileges import StatementKind, privilege_guards, requirements, trial
from tests.repair.cases import a_finding, a_table
from topology.readings.version import ServerVersion

SESSION = "SYSTEM_VARIABLES_ADMIN or SESSION_VARIABLES_ADMIN or SUPER"
SYSTEM = "SYSTEM_VARIABLES_ADMIN or SUPER"
APPLIER = f"REPLICATION_APPLIER or {SESSION}"


@pytest.mark.parametrize(
    ("kind", "needed"),
    [
        ("STEER_CHANNEL", {"5.7.44": "SUPER", "8.0.0": "REPLICATION_SLAVE_ADMIN or SUPER"}),
        ("SET_GTID_PURGED", {"5.7.44": "SUPER", "8.0.0": SYSTEM}),
        ("SET_SQL_LOG_BIN", {"5.7.44": "SUPER", "8.0.0": SYSTEM, "8.0.13": SYSTEM, "8.0.14": SESSION}),
        (
            "SET_GTID_NEXT",
            {"5.7.44": "SUPER", "8.0.13": SYSTEM, "8.0.14": SESSION, "8.0.17": SESSION, "8.0.18": APPLIER},
        ),
        ("RESET_LOGS", {"5.6.24": "RELOAD", "9.7.4": "RELOAD"}),
    ],
)  # fmt: skip
def test_privileges_change_with_the_version(kind: str, needed: dict[str, str]) -> None:
    for version, text in needed.items():
        found = requirements([StatementKind[kind]], ServerVersion.parse(version))
        assert [str(each) for each in found] == [text], version


def test_super_does_not_replace_the_privilege_for_tags() -> None:
    found = requirements([StatementKind.SET_TAGGED_GTID_NEXT], ServerVersion(9, 7, 4))
    names = [each.one_of for each in found]
    assert ("TRANSACTION_GTID_TAG",) in names
    assert all("SUPER" not in each for each in names)


@pytest.mark.parametrize(("version", "has_roles"), [("5.7.44", False), ("8.0.0", True)])
def test_a_guard_passes_where_a_role_may_hide_a_privilege(version: str, *, has_roles: bool) -> None:
    kinds = [StatementKind.RESET_LOGS, StatementKind.READ_CHANNELS]
    [guard] = privilege_guards("a", kinds, ServerVersion.parse(version))
    assert ("CURRENT_ROLE()" in guard.condition) is has_roles
    assert "'RELOAD'" in guard.condition
    assert guard.message.startswith("a: this account needs RELOAD; grant it")


@pytest.mark.parametrize(
    ("kinds", "lines"),
    [
        ((), []),
        (("STEER_CHANNEL",), []),
        (("SET_GTID_NEXT",), ["AUTOMATIC"]),
        (("SET_TAGGED_GTID_NEXT",), ["AUTOMATIC:trial", "AUTOMATIC"]),
    ],
)
def test_what_a_script_sets_is_tried_first(kinds: tuple[str, ...], lines: list[str]) -> None:
    found = trial([StatementKind[each] for each in kinds])
    assert found == tuple(f"SET SESSION gtid_next = '{each}';" for each in lines)


def test_what_the_session_of_a_statement_has_is_tried_where_the_version_knows_it() -> None:
    found = trial([StatementKind.SET_GTID_NEXT, StatementKind.SET_RESTRICTED])
    assert found == (
        "SET SESSION gtid_next = 'AUTOMATIC';",
        "/*!80013 SET SESSION sql_require_primary_key = @@SESSION.sql_require_primary_key */;",
        (
            "/*!80030 SET SESSION sql_generate_invisible_primary_key ="
            " @@SESSION.sql_generate_invisible_primary_key */;"
        ),
    )


def test_a_differing_row_shows_both_versions() -> None:
    changed = RowVersions(a_table(), "`id` = 1", (1, 5), (1, 6), (("n", "5", "6"),))
    gone = RowVersions(a_table(), "`id` = 2", (2, None), None, (("n", None, None),))
    found = list(differing_rows(a_finding("E4", "a:1"), RowsRead((changed, gone))))
    assert [(each.source, each.replica, each.where) for each in found] == [
        ("a", "b", "`id` = 1"),
        ("a", "b", "`id` = 2"),
    ]
    assert [shown_version(each.source_row) for each in found] == ["n: 5", "n: NULL"]
    assert [shown_version(each.replica_row) for each in found] == ["n: 6", "there is no such row"]
