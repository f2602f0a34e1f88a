"""What scripts ask about tables: the answers of real servers, to accounts that may see less."""

from collections.abc import Iterator

import pytest

from compose.native.installation import Installation
from compose.native.server import Server
from compose.native.shapes import single
from repair.sql.table_questions import has_no_triggers, sees_triggers

# (account, privilege, on what, sees the triggers of shop_1.t, and of shop_1.u)
ACCOUNTS = (
    ("'nobody'@'%'", "SELECT", "*.*", False, False),
    ("'all'@'%'", "ALL", "*.*", True, True),
    ("'everywhere'@'127.0.0.1'", "TRIGGER", "*.*", True, True),
    ("'schema'@'%'", "TRIGGER", "shop_1.*", True, True),
    ("'pattern'@'%'", "TRIGGER", "`shop\\_%`.*", True, True),
    ("'elsewhere'@'%'", "TRIGGER", "other.*", False, False),
    ("'table'@'%'", "TRIGGER", "shop_1.t", True, False),
    ("'o''brien@home'@'%'", "TRIGGER", "shop_1.t", True, False),
)


@pytest.fixture(scope="module", params=["installation97", "installation56"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    installation: Installation = request.getfixturevalue(request.param)
    with single(installation) as started:
        started.execute(
            "CREATE DATABASE shop_1",
            "CREATE TABLE shop_1.t (a INT)",
            "CREATE TABLE shop_1.u (a INT)",
            "CREATE TRIGGER shop_1.fires BEFORE INSERT ON shop_1.t FOR EACH ROW SET NEW.a = 1",
            *(f"CREATE USER {account}" for account, *_ in ACCOUNTS),
            *(f"GRANT {what} ON {where} TO {account}" for account, what, where, *_ in ACCOUNTS),
        )
        yield started


def told(server: Server, account: str, *conditions: str) -> list[str]:
    user = account.rpartition("@")[0][1:-1].replace("''", "'")
    done = server.client(
        f"SELECT {', '.join(conditions)};", f"--user={user}", "--skip-column-names"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("case", ACCOUNTS, ids=lambda case: case[0])
def test_who_sees_triggers(server: Server, case: tuple[str, str, str, bool, bool]) -> None:
    account, _, _, *expected = case
    sees = told(server, account, *(sees_triggers("shop_1", table) for table in "tu"))
    assert sees == [str(int(each)) for each in expected]


def test_a_table_has_triggers_for_whoever_sees_them(server: Server) -> None:
    questions = [has_no_triggers("shop_1", table) for table in "tu"]
    assert told(server, "'table'@'%'", *questions) == ["0", "1"]
    assert told(server, "'nobody'@'%'", *questions) == ["1", "1"]
