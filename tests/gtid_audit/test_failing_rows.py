"""What stopped an applier: table, key and row first, and the server's text once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gtid_audit.views.failing_rows import ABOVE, short_explanation, shown_value
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.report_text import show_report
from tests.repair.cases import a_finding
from tests.snapshots import NOON, A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Evidence, Finding
from topology.readings.snapshot import ThreadState

ROW = (
    "Could not execute Write_rows event on table d.t; Duplicate entry '5' for key 't.PRIMARY',"
    " Error_code: 1062; handler error HA_ERR_FOUND_DUPP_KEY; the event's source log binlog.000001,"
    " end_log_pos 821"
)
WORKER = f"Worker 1 failed executing transaction '{A}:3' at source log binlog.000001; {ROW}"
COORDINATOR = (
    "Coordinator stopped because there were error(s) in the worker(s). The most recent failure"
    f" being: Worker 1 failed executing transaction '{A}:3' at source log binlog.000001,"
    " end_log_pos 821. See error log and/or"
    " performance_schema.replication_applier_status_by_worker table for more details about this"
    " failure or others, if any."
)
MISSING = (
    "Could not execute Delete_rows event on table d.u; Can't find record in 'u', Error_code: 1032;"
    " handler error HA_ERR_KEY_NOT_FOUND"
)
STATEMENT = (
    "Error 'Duplicate entry 'it's-5' for key 'k'' on query. Default database: 'd'. Query: 'INSERT"
    " INTO t VALUES (5)'"
)

DUPLICATE = " (Write_rows), key t.PRIMARY, value '5'"
OF_STATEMENT = "A statement, default database d, key k, value 'it's-5'"


def a_conflict(text: str, code: str = "A2") -> Finding:
    return replace(
        a_finding(code, ""),
        evidence=(Evidence("applier error", text, "b", NOON),),
        explanation=f"The applier of b stopped: the key already exists (error 1062). {text} It is so.",
    )


@pytest.mark.parametrize(
    ("text", "first"),
    [
        (ROW, "Table d.t (Write_rows), key t.PRIMARY, value '5'. "),
        (f"{COORDINATOR}; {WORKER}", "Table d.t (Write_rows), key t.PRIMARY, value '5'. "),
        (MISSING, "Table d.u (Delete_rows). "),
        (
            f"{MISSING}; {WORKER}",
            "Table d.u (Delete_rows); Table d.t (Write_rows), key t.PRIMARY, value '5'. ",
        ),
        (
            f"{ROW}; {MISSING}; {STATEMENT}; {MISSING.replace('d.u', 'd.v')}",
            f"Table d.t{DUPLICATE}; Table d.u (Delete_rows); {OF_STATEMENT}. ",
        ),
        (STATEMENT, f"{OF_STATEMENT}. "),
    ],
)
def test_the_row_comes_first(text: str, first: str) -> None:
    finding = a_conflict(text)
    said = short_explanation(finding)
    assert said == (
        f"{first}The applier of b stopped: the key already exists (error 1062). It is so."
    )
    shown = shown_value("applier error", text, said)
    assert shown == text.removeprefix(f"{COORDINATOR}; ")


def test_a_long_value_is_cut() -> None:
    said = short_explanation(a_conflict(ROW.replace("'5'", f"'{'5' * 100}'")))
    assert f"value '{'5' * 79}…'. The applier" in said


def test_a_text_without_a_row_stays_in_the_explanation() -> None:
    text = f"{COORDINATOR}; Worker 1 failed executing transaction '{A}:3': the disk is full"
    said = short_explanation(a_conflict(text, "A3"))
    assert "Coordinator" not in said
    assert said.count("the disk is full") == 1
    assert shown_value("applier error", text, said) == ABOVE
    assert shown_value("receiver error", text, said) == ABOVE
    assert shown_value("gtid_purged", text, said) == text
    assert shown_value("applier error", "short", "short") == "short"
    # The coordinator's text is all there is before 5.7: nothing is left out.
    assert short_explanation(a_conflict(COORDINATOR, "A3")) == a_conflict(COORDINATOR).explanation
    said = short_explanation(a_conflict(ROW, "A3"))
    assert (
        said == f"Table d.t (Write_rows), key t.PRIMARY, value '5'. {a_conflict(ROW).explanation}"
    )
    assert shown_value("applier error", ROW, said) == ABOVE
    absent = a_conflict(
        "Error 'Table 'd.x' is gone' on query. Default database: 'd'. Query: ''", "A3"
    )
    assert short_explanation(absent) == absent.explanation
    other = a_conflict(ROW, "A1")
    assert short_explanation(other) == other.explanation


def test_a_report_has_the_text_once(capsys: pytest.CaptureFixture[str]) -> None:
    channel = a_channel("a", A, applier=ThreadState.STOPPED, applier_errno=1062, applier_error=ROW)
    cluster = a_cluster("p", a_server("a", A, ""), a_server("b", B, "", channels=(channel,)))
    show_report(report_of(Engine.LOCAL, [audit_cluster(cluster)]), snapshots=[cluster])
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "what Table d.t (Write_rows), key t.PRIMARY, value '5'. The applier of b stopped" in shown
    )
    assert shown.count("HA_ERR_FOUND_DUPP_KEY") == 1
