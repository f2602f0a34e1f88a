"""The operands, the page and the document of `trace`, without servers."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from binlog.transactions import TableChange
from gtid import GtidSet
from gtid_audit.document_types.command_documents import reference_files, schema_of
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.trace_operands import read_trace_operands, shown_dsns
from gtid_audit.views.trace_document import trace_document
from gtid_audit.views.trace_text import show_trace
from gtid_audit.views.trace_words import (
    TEXT_CHARACTERS_MAX,
    bounded,
    difference_words,
    log_words,
    place_words,
    thread_words,
    verdict_of_trace,
)
from tests.snapshots import NOON, A, B
from tests.topology.traces import (
    FAILED,
    MISSING_TABLE,
    TABLE,
    a_failure,
    a_search,
    a_trace,
    a_transaction,
    a_worker,
    own,
)
from topology.catalogue.findings import Verdict
from topology.readings.snapshot import ThreadState, UnreadFact, UnreadReason
from topology.readings.target import ServerTarget
from topology.tracing.stopped_threads import ReplicationThread
from topology.tracing.trace_values import (
    ErrorLogExcerpt,
    ErrorLogLine,
    GtidOnServer,
    TableNow,
    Trace,
    TracedFailure,
    TracedServer,
)

REFERENCE = Path(__file__).parents[2] / "docs/reference/trace.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(schema_of("trace", is_closed=True))
DSN_A, DSN_B = "mysql://audit@a/?ssl=required", "mysql://audit@b/?ssl=required"
DSNS = {"a": DSN_A, "b": DSN_B}
GTID = f"{A}:9"
DENIED = UnreadFact("error log", UnreadReason.PRIVILEGE, "SELECT command denied")


# -- operands -------------------------------------------------------------------------------------


def test_a_server_or_a_gtid_comes_first() -> None:
    assert read_trace_operands([DSN_B, DSN_A]).dsns == (DSN_B, DSN_A)
    assert not read_trace_operands([DSN_B]).wanted
    found = read_trace_operands([GTID.upper(), DSN_A])
    assert (str(found.wanted), found.dsns) == (GTID, (DSN_A,))
    for short in ("a:3306", "audit@a", "[::1]:3306", "/run/a.sock", "audit@/run/a.sock"):
        assert read_trace_operands([short, "b:3306"]).dsns == (short, "b:3306")


@pytest.mark.parametrize(
    ("operands", "said"),
    [
        ([], "expected a GTID"),
        (["frob", DSN_A], "found 'frob'"),
        ([f"{A}:1-5", DSN_A], "expected one GTID, found 5"),
        ([f"{A}", DSN_A], "expected one GTID, found 0"),
        ([GTID], "give the DSN of at least one server"),
    ],
)
def test_other_operands_are_refused(operands: list[str], said: str) -> None:
    with pytest.raises(UsageProblem, match=said):
        read_trace_operands(operands)


@pytest.mark.parametrize("operand", ["root:secret@db1", "mysq://root:secret@db1/"])
def test_what_may_contain_a_password_is_not_repeated(operand: str) -> None:
    with pytest.raises(UsageProblem) as caught:
        read_trace_operands([operand, DSN_A])
    assert "not shown" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_source_that_was_found_is_shown_like_its_replica() -> None:
    target = ServerTarget("b:3306", "b", 3306, "audit")
    dsn = "mysql://audit@b/?ssl=required&unix_socket=/run/b.sock&ssl_ca=/ca.pem"
    assert shown_dsns([dsn], [target], ["b:3306", "a:3307"]) == {
        "b:3306": dsn,
        "a:3307": "mysql://audit@a:3307/?ssl=required&ssl_ca=/ca.pem",
    }
    assert shown_dsns(["mysql://b"], [target], ["a:3307"])["a:3307"] == "mysql://a:3307/"
    for short in ("audit@b:3306?ssl=required", "audit@/run/b.sock?ssl=required"):
        assert shown_dsns([short], [target], ["b:3306", "a:3307"]) == {
            "b:3306": short,
            "a:3307": "mysql://audit@a:3307/?ssl=required",
        }


# -- the verdict ----------------------------------------------------------------------------------


def server(name: str, *unread: UnreadFact, **facts: Any) -> TracedServer:
    executed = GtidSet.parse(f"{A}:1-8,{B}:1-5")
    return replace(TracedServer(name, "9.7.4", executed, unread=unread), **facts)


def trace(*failures: TracedFailure, **facts: Any) -> Trace:
    made = Trace(GtidSet(), (server("b"), server("a", is_found=True)), failures)
    return replace(made, **facts)


def test_an_error_outweighs_what_was_not_read() -> None:
    unread = (server("b", DENIED),)
    assert verdict_of_trace(trace()) is Verdict.OK
    assert verdict_of_trace(trace(servers=unread)) is Verdict.UNKNOWN
    assert verdict_of_trace(trace(a_trace(), servers=unread)) is Verdict.CRITICAL
    other = a_failure(MISSING_TABLE, 1146)
    assert verdict_of_trace(trace(others=(other,))) is Verdict.CRITICAL


# -- the document ---------------------------------------------------------------------------------

EXCERPT = ErrorLogExcerpt(
    "b",
    "/var/log/mysql/error.log",
    (NOON,),
    60,
    (ErrorLogLine(NOON, "Error", "MY-010584", "Repl", "Replica SQL failed"),),
    count=1,
    begins_at=NOON - timedelta(days=1),
)
DROP = a_transaction("b", f"{B}:5", "DROP TABLE t", start=500)


def whole() -> TracedFailure:
    """Return a trace in which every part has something."""
    transaction = a_transaction(
        "a", GTID, start=900, tables=(TableChange("shop", "t", 1),), rows=("shop.t: inserted (2)",)
    )
    return a_trace(
        transactions=(transaction,),
        places=(
            GtidOnServer("a", FAILED, True, False, False, place="binlog.000001:900-1000"),
            GtidOnServer("b", FAILED, False, False, False, received_on=("",), failed_on=("",)),
        ),
        extra=own(DROP),
        searches=(a_search("a"), a_search("b", DROP)),
        tables_now=(TableNow("a", TABLE, (("id", "int"),)), TableNow("b", TABLE)),
        error_logs=(EXCERPT, ErrorLogExcerpt("a", "stderr", why="8.0.22")),
    )


def test_a_document_has_exactly_the_fields_of_its_schema() -> None:
    wanted = trace(
        whole(), wanted=FAILED, places=whole().places, transaction=whole().transactions[0]
    )
    for each in (trace(), trace(whole()), trace(a_trace(source="")), wanted):
        VALIDATOR.validate(trace_document(each, DSNS))
    document = trace_document(wanted, DSNS)
    assert not VALIDATOR.is_valid({**document, "verdict": "WARNING"})
    assert not VALIDATOR.is_valid({**document, "new": 1})
    assert document["errors"][0]["causes"][0]["grade"] == "proved"
    assert document["next"] == [
        f"gtid-audit binlog show {GTID} '{DSN_A}'",
        f"gtid-audit binlog show {B}:5 '{DSN_B}'",
        f"gtid-audit pair '{DSN_A}' '{DSN_B}'",
        f"gtid-audit repair plan --pair '{DSN_A}' '{DSN_B}' --out plan",
    ]


def test_the_reference_is_as_generated() -> None:
    assert REFERENCE.read_text() == reference_files()["trace.schema.json"], "run `make docs`"
    published = json.loads(REFERENCE.read_text())
    jsonschema.Draft202012Validator(published).validate({**trace_document(trace(), DSNS), "new": 1})


@pytest.mark.parametrize(
    ("traced", "commands"),
    [
        (a_trace(source=""), ["binlog show", "trace"]),
        (a_trace("Lock wait timeout exceeded", 1205), ["binlog show", "locks", "pair", "repair"]),
        (
            a_trace(transactions=(a_transaction("b", GTID, is_relayed=True),)),
            ["pair", "repair"],
        ),
        (
            a_trace(
                failure=replace(a_failure("x", 1), thread=ReplicationThread.RECEIVER),
                transactions=(),
            ),
            ["handshake", "pair", "repair"],
        ),
    ],
)
def test_commands_fit_the_error(traced: TracedFailure, commands: list[str]) -> None:
    shown = trace_document(trace(traced), DSNS)["next"]
    starts = [
        next(name for name in ("binlog show", each.split()[1]) if f"gtid-audit {name}" in each)
        for each in shown
    ]
    assert starts == commands


def test_nothing_to_do_leads_to_an_audit() -> None:
    assert trace_document(trace(), DSNS)["next"] == [f"gtid-audit audit --discover '{DSN_B}'"]


# -- the page -------------------------------------------------------------------------------------


def page(capsys: pytest.CaptureFixture[str], shown: Trace) -> str:
    show_trace(shown, DSNS)
    return capsys.readouterr().out


def test_the_page_of_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    text = page(capsys, trace(whole(), servers=(server("b", DENIED), server("a", notes=("idle",)))))
    for part in (
        " CRITICAL   b, a · 1 thread with an error",
        "b: the applier stopped with error 1146",
        "error   1146 at 2026-01-02 12:00:00 UTC; receiver Yes, applier No",
        "means   the object that the statement changes does not exist on the replica.",
        f"event   {GTID} · a binlog.000001:900-1000 (100 bytes) · committed",
        "shop.t: 1 inserted",
        "shop.t: inserted (2)",
        "where   a: executed, in binlog.000001:900-1000",
        "b: not executed; received by channel ''; the applier of channel '' failed on it",
        f"cause   proved: b executed {B}:5, and a did not: DROP TABLE t",
        "DDL     b from binlog.000001 on: 1 change of the table",
        "now     shop.t exists on a and not on b",
        "log     b (/var/log/mysql/error.log): 1 of 1 lines, 60 s around 2026-01-02 12:00:00 UTC",
        "12:00:00.000000 Error MY-010584: Replica SQL failed",
        "a: idle",
        "Not read, so this part of the page is not known:",
        "b: error log: privilege: SELECT command denied",
        "Next:",
    ):
        assert part in text


def test_the_page_of_a_healthy_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing is stopped with an error on b" in page(capsys, trace())
    unread = page(capsys, trace(servers=(server("b", DENIED),)))
    assert "no error was found, and not everything could be read" in unread


def test_the_page_of_a_gtid(capsys: pytest.CaptureFixture[str]) -> None:
    shown = trace(
        wanted=FAILED,
        places=whole().places,
        transaction=whole().transactions[0],
        others=(a_failure(MISSING_TABLE, 1146),),
    )
    text = page(capsys, shown)
    assert "no applier failed on this GTID; 1 thread with another error" in text
    assert f"content {GTID} · a binlog.000001:900-1000" in text
    assert "also b: the applier stopped with error 1146" in text


def test_what_was_not_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = page(capsys, trace(a_trace(transactions=(), source="", source_note="no address")))
    assert f"event   {GTID}: no server that was read has it in its binary logs" in nothing
    assert "source  not found: no address" in nothing
    assert "cause   no transaction that was read explains it" in nothing
    candidates = GtidSet.parse(f"{A}:9-10")
    low = a_trace(transactions=(), candidates=candidates)
    assert f"one of these, or a later one: {candidates}" in page(capsys, trace(low))
    unknown = page(capsys, trace(a_trace("a text of the next version", 65_000)))
    assert "this text is not known to gtid-audit" in unknown


def test_it_is_one_page(capsys: pytest.CaptureFixture[str]) -> None:
    workers = tuple(a_worker(number, 1062, "x" * 5_000, GTID) for number in range(1, 9))
    failure = a_failure(MISSING_TABLE, 1146, workers=workers)
    line = ErrorLogLine(NOON, "Note", "MY-1", "Server", "y" * 600)
    lines = tuple(replace(line, at=NOON + timedelta(seconds=at)) for at in range(20))
    error = replace(line, at=NOON + timedelta(seconds=59), priority="Error", subsystem="Repl")
    excerpt = replace(EXCERPT, lines=(*lines, error), count=500)
    changes = tuple(
        a_transaction("b", f"{A}:{at}", "ALTER TABLE t ADD x INT") for at in range(1, 9)
    )
    traced = a_trace(
        failure=failure, searches=(a_search("b", *changes, count=80),), error_logs=(excerpt,)
    )
    text = page(capsys, trace(traced))
    assert "… and 5 more workers; --json" in text
    assert "b from binlog.000001 on: 80 changes of the table" in text
    assert text.count("ALTER TABLE t ADD x INT") == 3
    assert "… and 495 more lines; --json" in text
    assert "12:00:59.000000 Error" in text, "an error of replication is always shown"
    assert len(text) < 12_000
    assert "x" * (TEXT_CHARACTERS_MAX + 1) not in text.replace("\n", "").replace(" ", "")


def test_control_characters_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "Table 'shop.t' doesn't exist \x1b[2J"
    shown = trace(a_trace(hostile, 1146), servers=(server("b", replace(DENIED, detail="\x1b[2J")),))
    assert "\x1b" not in page(capsys, shown)


# -- words ----------------------------------------------------------------------------------------


def test_a_text_is_cut_and_has_no_password() -> None:
    assert bounded("a\n b") == "a b"
    assert len(bounded("x" * 5_000)) == TEXT_CHARACTERS_MAX
    assert bounded("CREATE USER u IDENTIFIED BY 'secret'") == "CREATE USER u IDENTIFIED (hidden)"


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((None, None, None), "not known: its sets were not read"),
        ((False, False, False), "not executed"),
        ((False, False, True), "not executed; a session or worker executes it now"),
        ((True, True, False), "executed, and purged from its binary logs"),
        ((True, False, False), "executed; in no file"),
    ],
)
def test_what_a_server_has(
    facts: tuple[bool | None, bool | None, bool | None], expected: str
) -> None:
    why = "in no file" if expected.endswith("in no file") else ""
    assert place_words(GtidOnServer("a", FAILED, *facts, why=why)) == expected


@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        ((("id", "int"),), (), "shop.t exists on a and not on b"),
        ((), (("id", "int"),), "shop.t exists on b and not on a"),
        ((("x", "int"),), (("x", "bigint"),), "shop.t: x is int on a and bigint on b"),
        (
            (("x", "int"), ("y", "int")),
            (("x", "int"), ("z", "int")),
            "shop.t: y int only on a; z int only on b",
        ),
        (
            (("x", "int"), ("y", "int")),
            (("y", "int"), ("x", "int")),
            "shop.t: the columns have another order",
        ),
    ],
)
def test_how_definitions_differ(here: Any, there: Any, expected: str) -> None:
    assert difference_words(TableNow("a", TABLE, here), TableNow("b", TABLE, there)) == expected


def test_where_log_lines_come_from() -> None:
    late = replace(EXCERPT, begins_at=NOON + timedelta(hours=1), lines=(), count=0)
    assert log_words(late).endswith("; older lines are only in /var/log/mysql/error.log")
    old = ErrorLogExcerpt("b", "/data/b.err", why="exists since 8.0.22")
    assert log_words(old) == "b: not read: exists since 8.0.22: read /data/b.err"
    console = replace(old, file="stderr")
    assert log_words(console).endswith(
        "read what mysqld writes to its standard error (the journal of its service)"
    )
    assert log_words(replace(old, file="")) == "b: not read: exists since 8.0.22"


def test_what_a_thread_does() -> None:
    failure = a_failure(MISSING_TABLE, 1146, name="east")
    assert thread_words(failure) == "the applier of channel 'east' stopped with error 1146"
    channel = replace(failure.channel, receiver=ThreadState.CONNECTING, receiver_errno=2003)
    receiver = replace(failure, channel=channel, thread=ReplicationThread.RECEIVER, workers=())
    expected = "the receiver of channel 'east' is not connected: it ended with error 2003"
    assert thread_words(receiver) == expected
