"""Appliers whose event is dated in the future: no age is shown, and a lock may last for ever."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from compose.faults import commit, table_on
from compose.native import shapes
from compose.native.installation import Installation
from compose.native.shapes import Pair, await_uptime, wait_for
from tests.topology.test_appliers_live import above_info, audited, with_workers
from topology.catalogue.findings import Grade

AHEAD = "SET SESSION timestamp = UNIX_TIMESTAMP() + 864000"


@contextmanager
def blocked(pair: Pair, *before: str) -> Iterator[None]:
    """Let a commit of `a` wait for a lock on `b`; it ends with the block, and `b` catches up."""
    table_on(pair.a, pair.b, "dated")
    await_uptime(pair.b)
    with pair.b.connect() as session, session.cursor() as cursor:
        cursor.execute("LOCK TABLES dated.t WRITE")
        waiting = commit(pair.a, *before, "INSERT INTO dated.t VALUES (1, 'one')")
        deadline = time.monotonic() + 20
        while "lock" not in str(pair.b.query("SHOW PROCESSLIST")).replace("LOCK TABLES", ""):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield
        cursor.execute("UNLOCK TABLES")
    wait_for(pair.b, waiting)


def assert_no_age_is_known(pair: Pair) -> None:
    with blocked(pair):
        assert above_info(audited(pair)) == {}, "for a moment"
    pair.a.execute("DROP DATABASE dated")
    with blocked(pair, AHEAD):
        found = above_info(audited(pair))
    assert found.keys() == {"A5"}
    assert found["A5"].grade is Grade.LIKELY
    assert "for an unknown time: its event is dated 86" in found["A5"].explanation
    assert above_info(audited(pair)) == {}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_lock_of_unknown_age_is_a5_on_5_6(pair56: Pair, workers: int) -> None:
    with_workers(pair56.b, workers)
    assert_no_age_is_known(pair56)


def test_a_lock_of_unknown_age_is_a5_without_performance_schema(
    installation97: Installation,
) -> None:
    with shapes.pair(installation97, extra=("--performance-schema=OFF",)) as pair:
        assert_no_age_is_known(pair)


def test_a_lock_has_an_age_on_9_7(pair97: Pair) -> None:
    with blocked(pair97, AHEAD):
        assert above_info(audited(pair97)) == {}, "for a moment"
