"""A1 to A4 explain the error of a thread once: the cause and the next step, not the text again."""

from typing import Any

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from tests.topology.stopping_errors import IN_PROGRAM
from tests.topology.thread_texts import THREAD_TEXTS
from topology.catalogue.findings import Finding
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.snapshot import ThreadState
from topology.readings.worker import WorkerSnapshot
from topology.rules.failed_appliers import applier_error
from topology.rules.threads import receiver_error

FORMAT = (
    "Error executing row event: 'Cannot execute statement: impossible to write to binary log since"
    " statement is in row format and BINLOG_FORMAT = STATEMENT.'"
)
WAITED = "Could not execute Update_rows event on table d.t; Lock wait timeout exceeded"


def of_applier(errno: int, text: str, *workers: WorkerSnapshot) -> Finding:
    stopped = a_channel(
        "a",
        A,
        applier=ThreadState.STOPPED,
        applier_errno=errno,
        applier_error=text,
        workers=workers,
    )
    [found] = applier_error(facts_of(stopped))
    return found


def of_receiver(errno: int, text: str, state: ThreadState = ThreadState.STOPPED) -> Finding:
    failed = a_channel("a", A, receiver=state, receiver_errno=errno, receiver_error=text)
    [found] = receiver_error(facts_of(failed))
    return found


def facts_of(channel: Any) -> Any:
    a = a_server("a", A, f"{A}:1-3")
    b = a_server("b", B, f"{A}:1-2", channels=(channel,))
    return gather_facts(a_cluster("servers", a, b), Policy())


def a_worker(number: int, errno: int, text: str) -> WorkerSnapshot:
    return WorkerSnapshot(number, GtidSet(), errno, text)


def test_a_known_error_of_an_applier_has_its_cause_and_its_next_step() -> None:
    found = of_applier(1666, FORMAT)
    assert found.code == "A3"
    assert found.explanation.startswith(
        "The applier of b stopped: the replica cannot log what it applies in its binlog_format"
        " (error 1666). The server logs what it applies, and "
    )
    assert "SET GLOBAL binlog_format = ROW, START REPLICA" in found.explanation


def test_a_number_explains_a_text_that_only_reports_a_worker() -> None:
    found = of_applier(1666, "Coordinator stopped because there were error(s) in the worker(s).")
    assert "the replica cannot log what it applies in its binlog_format" in found.explanation


def test_the_worker_whose_error_the_applier_reports_is_explained() -> None:
    text = "Coordinator stopped because there were error(s) in the worker(s)."
    both = (a_worker(1, 1205, WAITED), a_worker(2, 1666, FORMAT))
    for errno, words in ((1205, "waited too long for a lock"), (1666, "in its binlog_format")):
        for workers in (both, both[::-1]):
            assert words in of_applier(errno, text, *workers).explanation


@pytest.mark.parametrize(
    ("errno", "number"), [(9999, "error 9999"), (0, "an error without a number")]
)
def test_an_unknown_error_refers_to_its_text(errno: int, number: str) -> None:
    for found in (of_applier(errno, "odd"), of_receiver(errno, "odd")):
        assert found.explanation.endswith(
            f"stopped: {number}. `gtid-audit explain` does not know it, and the server's text is in"
            " the proof."
        )
        assert "odd" in [each.value for each in found.evidence]


def test_a_row_conflict_has_its_table_and_key() -> None:
    duplicate = (
        "Could not execute Write_rows event on table d.t; Duplicate entry '7' for key 't.PRIMARY',"
        " Error_code: 1062; handler error HA_ERR_FOUND_DUPP_KEY"
    )
    found = of_applier(1062, duplicate)
    assert (found.code, found.explanation) == (
        "A2",
        (
            "The applier of b stopped: the key already exists (error 1062, table d.t, value '7' of"
            " key t.PRIMARY)."
        ),
    )
    missing = "Could not execute Update_rows event on table d.t; Can't find record in 't'"
    assert of_applier(1032, missing).explanation.endswith("not exist (error 1032, table d.t).")
    assert of_applier(1032, "").explanation.endswith("the row does not exist (error 1032).")


def test_a_receiver_is_explained() -> None:
    empty = "Fatal error: Invalid (empty) username when attempting to connect to the source server."
    assert of_receiver(13117, empty).explanation.startswith(
        "The receiver of b stopped: the channel has no user (error 13117). CHANGE REPLICATION "
    )
    away = "Error connecting to source 'r@h:1'. This was attempt 3/86400, with a delay of 1 seconds"
    assert of_receiver(2003, away, ThreadState.CONNECTING).explanation.startswith(
        "The receiver of b cannot connect (error 2003). The source is down, "
    )
    assert of_receiver(2003, away).explanation.startswith(
        "The receiver of b stopped: the replica cannot connect (error 2003). The source is down, "
    )


@pytest.mark.parametrize("text", [each[0] for each in (*THREAD_TEXTS, *IN_PROGRAM)])
def test_the_text_of_the_server_is_evidence_and_is_not_repeated(text: str) -> None:
    for found in (of_applier(4711, text), of_receiver(4711, text)):
        values = [each.value for each in found.evidence]
        assert values.count(text) == 1
        assert text not in found.explanation
