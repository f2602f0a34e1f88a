"""A replica that does not log what it applies, and a gtid_purged that was set too large.

5.6 requires log_slave_updates with gtid_mode = ON.
"""

from __future__ import annotations

import pytest

from compose.faults import commit, table_on
from compose.faults_filters import without_logged_updates
from compose.native.shapes import Pair, wait_for
from tests.repair.live import examine, executed, rows
from topology.catalogue.findings import Finding, Grade

pytestmark = [pytest.mark.slow, pytest.mark.mysql]


def declared(pair: Pair, *, too_large: bool) -> str:
    """RESET `b` while its channel is stopped, and give it a set; return what it has not applied."""
    a, b = pair.a, pair.b
    table_on(a, b, "declared")
    without_logged_updates(pair, on="b")
    wait_for(b, commit(a, "INSERT INTO declared.t VALUES (1, 'x')"))
    b.execute(b.dialect.stop_replica)
    applied = executed(b)
    missing = commit(a, "INSERT INTO declared.t VALUES (2, 'x')")
    b.execute(
        b.dialect.words.reset_binary_logs_and_gtids,
        f"SET GLOBAL gtid_purged = '{executed(a) if too_large else applied}'",
    )
    return missing


def without_content(pair: Pair) -> list[Finding]:
    return [each for each in examine(pair).audit.findings if each.code == "E4"]


def test_what_was_declared_and_never_received_is_reported(pair97: Pair) -> None:
    a, b = pair97.a, pair97.b
    missing = declared(pair97, too_large=True)
    for _ in range(2):  # while the channel is stopped, and after it has passed them
        [found] = without_content(pair97)
        assert (found.replica, str(found.gtid_set)) == ("b", missing)
        assert found.grade is Grade.LIKELY
        assert "none of its channels has received them" in found.explanation
        b.execute(b.dialect.start_replica)
        wait_for(b, commit(a, "INSERT INTO declared.t () VALUES ()"))
    assert len(rows(b, "declared.t")) == len(rows(a, "declared.t")) - 1


def test_a_set_that_was_applied_is_silent(pair97: Pair) -> None:
    """The benign twin."""
    a, b = pair97.a, pair97.b
    declared(pair97, too_large=False)
    assert without_content(pair97) == []
    b.execute(b.dialect.start_replica)
    wait_for(b, executed(a))
    assert without_content(pair97) == []
    assert rows(b, "declared.t") == rows(a, "declared.t")
