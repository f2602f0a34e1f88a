"""Guards on real servers: a failed condition stops the client, and changes nothing even if forced."""

import pytest

from compose.native.server import Server
from repair.sql.guard import GUARD_CHARACTERS_MAX, Guard

_UUID = "22222222-2222-2222-2222-222222222222"


@pytest.fixture(params=["mysql56", "mysql97"])
def server(request: pytest.FixtureRequest) -> Server:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Server)
    return found


def _script(condition: str, message: str) -> str:
    guard = "\n".join(Guard(condition, message).statements())
    return f"SET @go = 1;\n{guard}\nSELECT 'went on' AS said;\n"


@pytest.mark.parametrize("condition", ["1 = 1", "GTID_SUBSET('', @@GLOBAL.gtid_executed)"])
def test_a_true_condition_lets_the_script_go_on(server: Server, condition: str) -> None:
    done = server.client(_script(condition, "no"))
    assert done.returncode == 0
    assert "went on" in done.stdout


@pytest.mark.parametrize("condition", ["1 = 0", "NULL", "@never_set"])
def test_any_other_stops_it_and_shows_the_whole_message(server: Server, condition: str) -> None:
    message = 'it\'s not "here"; ' + "x" * 150 + " the end"
    done = server.client(_script(condition, message))
    assert done.returncode != 0
    assert message in done.stderr
    assert "went on" not in done.stdout


def test_a_message_may_be_as_long_as_the_limit(server: Server) -> None:
    message = "m" * (GUARD_CHARACTERS_MAX - 3) + "end"
    assert message in server.client(_script("FALSE", message)).stderr


def test_a_longer_message_is_cut_where_it_can_be_seen() -> None:
    guard = Guard("FALSE", "m" * (GUARD_CHARACTERS_MAX + 1))
    assert len(guard.message) == GUARD_CHARACTERS_MAX
    assert guard.message.endswith("...")


def test_an_error_in_the_condition_stops_it(server: Server) -> None:
    done = server.client(_script("no_such_function()", "no"))
    assert done.returncode != 0
    assert "went on" not in done.stdout


def test_a_set_of_owned_gtids_is_seen_whatever_the_thread(server: Server) -> None:
    """The guard of an injection reads gtid_owned as a set, with the thread ids moved away."""
    from gtid import GtidSet
    from repair.sql.script import not_owned

    owned, free = GtidSet.parse(f"{_UUID}:7"), GtidSet.parse(f"{_UUID}:8")
    with server.connect() as holder, holder.cursor() as cursor:
        cursor.execute(f"SET SESSION gtid_next = '{_UUID}:7'")
        try:
            assert server.value(not_owned("s", owned).condition) == 0
            assert server.value(not_owned("s", free).condition) == 1
            assert server.value(not_owned("s", owned | free).condition) == 0
        finally:
            cursor.execute("ROLLBACK")
            cursor.execute("SET SESSION gtid_next = 'AUTOMATIC'")
