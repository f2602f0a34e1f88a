"""Options of the client under which it would cut or change a script's statements."""

import pytest

from compose.native.shapes import Pair, wait_for
from repair.render import render_files
from repair.sql.replay_script import Direction
from tests.repair.live import examine, executed, rows
from tests.repair.row_rounds import executed as executed_set
from tests.repair.row_rounds import replayed, script

# Unit tests and digests hold the same claims in `make test`.
pytestmark = pytest.mark.slow

ERRANT = (
    "SET NAMES utf8mb4",
    "CREATE DATABASE `表`",
    "CREATE TABLE `表`.`数 é表` (`列` INT PRIMARY KEY, w VARCHAR(9)) /* keep this */",
    "INSERT INTO `表`.`数 é表` VALUES (1, '表')",
)
OTHERS = {
    "--default-character-set=gbk": "in another character set than UTF-8",
    "--default-character-set=sjis": "in another character set than UTF-8",
    "--skip-comments": "removes comments from statements",
}


@pytest.fixture(params=["pair97", "pair56"])
def one_way(request: pytest.FixtureRequest) -> Pair:
    pair: Pair = request.getfixturevalue(request.param)
    pair.a.execute(pair.a.dialect.stop_replica, pair.a.dialect.reset_replica)
    return pair


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_client_that_would_change_a_statement_changes_nothing(
    one_way: Pair, force: tuple[str, ...]
) -> None:
    a, b = one_way.a, one_way.b
    b.execute(*ERRANT)
    plan = examine(one_way).plan({"E1": "redo_on_source"})
    files = render_files(plan)
    for step in plan.steps:
        for option, words in OTHERS.items():
            done = a.client(files[step.file_name], option, *force)
            assert words in done.stderr, option
            assert "is done" not in done.stdout
            assert executed(a) == ""
        for check in step.checks:
            wrong = b.client(files[step.check_name(check)], "--default-character-set=gbk")
            assert wrong.returncode != 0
    for step in plan.steps:
        done = a.client(files[step.file_name], "--default-character-set=latin1", "--comments")
        assert done.returncode == 0, done.stderr
    wait_for(b, executed(a))
    assert executed(a) == executed(b)
    assert rows(a, "`表`.`数 é表`") == rows(b, "`表`.`数 é表`")


def test_so_does_a_script_that_was_made_by_hand(one_way: Pair) -> None:
    a, b = one_way.a, one_way.b
    before = executed_set(b)
    b.execute(*ERRANT[:3])
    transactions = replayed(b, executed_set(b) - before, Direction.REDO, keeps_gtids=True)
    text = script(Direction.REDO, transactions)
    for option, words in OTHERS.items():
        done = a.client(text, option)
        assert done.returncode != 0
        assert words in done.stderr
    assert a.client(text).returncode == 0
    assert executed(a) == executed(b)
