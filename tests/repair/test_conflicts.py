"""A row that stops an applier (A2): which rows are set, in which order, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from binlog.rows.values import Image
from repair.content.content_questions import ContentQuestion
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import RowsOn, RowState, nothing_read
from repair.model.actions import MakeRowsAlike, StartChannel
from repair.model.replication_model import Model
from repair.strategies.conflicts import resolve_conflict
from repair.strategies.leaving_out import gtid_purged_append, inject_empty, reset_and_purge
from tests.repair.build import NEW, OLD, channel, gtids, model, server
from tests.repair.cases import (
    ENUMS,
    a_case,
    a_content,
    a_finding,
    a_net_row,
    a_table,
    proposed,
    reason,
    rows_written_on,
)
from topology.catalogue.findings import Evidence
from topology.readings.content_class import ContentClass
from topology.readings.version import ServerVersion

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
STUCK = a_finding("A2", "")
PAIR = model(server("a", "a:1-3"), server("b", "a:1-2", channel("a", stuck=True)))


def row(source: Image | None, replica: Image | None, table: Any = None) -> RowVersions:
    held = source or replica
    assert held is not None
    return RowVersions(table or a_table(), f"`id` = {held[0]!r}", source, replica, ())


EXPECTED = (
    row((4, 4), None),
    row((1, 5), (1, 6)),
    row(None, (2, 7)),
    row((9, 1), (9, 2), a_table("s")),
    row((9, 1), (9, 2), replace(a_table("s"), schema="e")),
)


def content(*rows: RowVersions, **facts: Any) -> Any:
    return a_content("a:3", **{"rows": (), "expected": rows, **facts})


def test_rows_are_set_by_table_and_what_goes_makes_room() -> None:
    done = proposed(resolve_conflict(a_case(PAIR, STUCK, content=content(*EXPECTED))))
    *written, start = done.actions
    assert start == StartChannel("b", "", retried=gtids("a:3"))
    found = []
    for each in written:
        assert isinstance(each, MakeRowsAlike)
        assert (each.server, each.source, each.until_executed) == ("b", "a", gtids("a:3"))
        table = each.rows[0].table
        found.append((table.schema, table.table, [one.where for one in each.rows]))
    assert found == [
        ("d", "s", ["`id` = 9"]),
        ("d", "t", ["`id` = 2", "`id` = 1", "`id` = 4"]),
        ("e", "s", ["`id` = 9"]),
    ]
    assert "b loses its version of these rows" in done.warnings[0]


def test_servers_below_are_named_if_they_receive_the_transaction() -> None:
    there = server("c", "a:1-3", channel("b"))
    for executed, is_named in (("a:1-2", True), ("a:1-3", False)):
        servers = PAIR.replace(there).replace(server("d", executed, channel("b")))
        done = proposed(resolve_conflict(a_case(servers, STUCK, content=content(*EXPECTED))))
        assert any("d then receives it from b" in each for each in done.warnings) == is_named


def test_a_server_below_whose_rows_do_not_fit_either_is_named_with_its_row() -> None:
    servers = PAIR.replace(server("c", "a:1-2", channel("b")))
    for on, words in (
        (RowsOn(RowState.CONFLICT, "row d.t `id` = 60"), "c: row d.t `id` = 60"),
        (RowsOn(RowState.AS_AFTER), "c: "),
        (RowsOn(RowState.AS_BEFORE), ""),
    ):
        read = content(*EXPECTED)
        read = replace(read, rows_on={**read.rows_on, "c": on})
        done = proposed(resolve_conflict(a_case(servers, STUCK, content=read)))
        [warning] = [each for each in done.warnings if "c then receives it" in each]
        assert ("It WILL, unless these rows change before: " + words in warning) == bool(words)


def test_a_server_that_was_not_read_may_receive_the_transaction_too() -> None:
    for unread in ((), ("c",)):
        case = a_case(PAIR, STUCK, content=content(*EXPECTED), unread=unread)
        warnings = proposed(resolve_conflict(case)).warnings
        assert any("c could not be read" in each for each in warnings) == bool(unread)


def test_a_replica_that_receives_its_own_history_again_is_not_let_on() -> None:
    there = {"rows_on": {"b": RowsOn(RowState.AS_AFTER)}}
    changed = (a_net_row(None, (4, 4)),)
    for executed, rows, is_refused in (
        ("a:1-2 a:4", changed, True),
        ("a:1-2", changed, False),  # nothing later is there
        ("a:1-2 a:4", (a_net_row((4, 4), None),), False),  # it deletes what is not there
    ):
        stuck = server("b", executed, channel("a", stuck=True))
        servers = model(server("a", "a:1-4"), stuck)
        read = content(*EXPECTED, rows=rows, **there)
        outcome = resolve_conflict(a_case(servers, STUCK, content=read))
        if is_refused:
            assert "b seems to have lost GTIDs" in reason(outcome)
        else:
            assert proposed(outcome).actions


STOPPED_BY = {
    # They say nothing about the transaction: a start applies it, or it is received again.
    **dict.fromkeys(("1205", "1213", "1317", "1021", "1114", "1197", "1594", "13121"), True),
    **dict.fromkeys(("1034", "1037", "1194", "1743", "1803", "1864", "3030", "13115"), True),
    # The transaction, or what it meets, is the cause: the operator may decide to leave it out.
    **dict.fromkeys(("1142", "3750", "1146", "1007", "1677", "3819", "0", "unknown"), False),
    **dict.fromkeys(("1071", "1265", "1396", "1418", "1440", "1590"), False),
}


@pytest.mark.parametrize(("errno", "is_refused"), STOPPED_BY.items())
@pytest.mark.parametrize(
    ("strategy", "version"),
    [(inject_empty, NEW), (gtid_purged_append, NEW), (reset_and_purge, OLD)],
)
def test_what_is_not_the_cause_is_not_left_out(
    strategy: Any, version: ServerVersion, errno: str, *, is_refused: bool
) -> None:
    stuck = server("b", "a:1-2", channel("a", stuck=True), version=version)
    for code in ("A2", "A3"):
        stopped = replace(
            a_finding(code, ""), evidence=(Evidence("applier errno", errno, "b", NOON),)
        )
        case = a_case(
            model(server("a", "a:1-3", version=version), stuck),
            stopped,
            content=content(*EXPECTED),
        )
        outcome = strategy(case)
        if is_refused and code == "A3":
            assert "The transaction is not the cause" in reason(outcome)
            assert f"`gtid-audit explain {errno}`" in reason(outcome)
        else:
            assert proposed(outcome).actions


@pytest.mark.parametrize(
    ("strategy", "version"),
    [(inject_empty, NEW), (gtid_purged_append, NEW), (reset_and_purge, OLD)],
)
@pytest.mark.parametrize(
    ("errno", "text"),
    [
        ("3001", "Coordinator stopped because there were error(s) in the worker(s)."),
        ("1317", "Query partially completed on the master (error on master: 1317) and was aborted"),
    ],
)
def test_what_the_source_executed_in_part_is_not_left_out(
    strategy: Any, version: ServerVersion, errno: str, text: str
) -> None:
    stuck = server("b", "a:1-2", channel("a", stuck=True), version=version)
    stopped = replace(
        a_finding("A3", ""),
        evidence=(
            Evidence("applier errno", errno, "b", NOON),
            Evidence("applier error", text, "b", NOON),
        ),
    )
    servers = model(server("a", "a:1-3", version=version), stuck)
    outcome = strategy(a_case(servers, stopped, content=content(*EXPECTED)))
    assert "the source executed a statement only in part" in reason(outcome)
    assert "`gtid-audit explain 3001`" in reason(outcome)


@pytest.mark.parametrize(
    ("strategy", "version"),
    [
        (resolve_conflict, NEW),
        (inject_empty, NEW),
        (gtid_purged_append, NEW),
        (reset_and_purge, OLD),
    ],
)
def test_an_applier_does_not_go_on_to_what_was_applied_before(
    strategy: Any, version: ServerVersion
) -> None:
    there, unfit = RowsOn(RowState.AS_AFTER), RowsOn(RowState.CONFLICT, "row d.t `id` = 4")
    written, gone = (a_net_row(None, (4, 4)),), (a_net_row((4, 4), None),)
    for state, rows, purged, waits, words in (
        (there, written, "", "a:3-5", "the rows of all waiting transactions (aaaaaaaa-"),
        (there, gone, "", "a:3-5", ""),  # what deletes finds nothing: others may have done it
        (there, written, "", "a:3", ""),  # nothing is behind the transaction that is answered
        (unfit, written, "", "a:3-5", ""),  # b logged earlier ones: its history was not set since
        (unfit, written, "a:1-2", "a:3-5", "the binary logs of b have no transaction of the same"),
        (RowsOn(RowState.AS_BEFORE), written, "a:1-2", "a:3-5", ""),
        (unfit, written, "", "a:3 a:first_tag:1", ""),  # a tag begins behind a:3
        (unfit, written, "a:1-2", "a:3 a:first_tag:1", "the binary logs of b have no transaction"),
        (unfit, written, "", "a:3 c:1", "the binary logs of b have no transaction of the same"),
    ):
        stuck = server("b", "a:1-2", channel("a", stuck=True), purged=purged, version=version)
        waiting = a_content(waits, rows=rows, rows_on={"b": state})
        case = a_case(
            model(server("a", "a:1-5", version=version), stuck),
            STUCK,
            content=content(*EXPECTED),
            arrivals={("b", ""): waiting},
        )
        outcome = strategy(case)
        if words:
            assert words in reason(outcome)
            assert "receive again what it has" in reason(outcome)
        else:
            assert proposed(outcome).actions


@pytest.mark.parametrize("strategy", [resolve_conflict, inject_empty])
def test_a_relay_log_of_transactions_that_the_source_lost_is_not_applied(strategy: Any) -> None:
    for is_reused in (True, False):
        made = replace(channel("a", stuck=True), may_be_former=is_reused)
        servers = PAIR.replace(server("b", "a:1-2", made))
        outcome = strategy(a_case(servers, STUCK, content=content(*EXPECTED)))
        if is_reused:
            assert "a has lost, or reset, transactions that b received" in reason(outcome)
            assert "or they were committed by hand on b. If they were lost" in reason(outcome)
            shown = replace(made, is_loss_shown=True)
            servers = PAIR.replace(server("b", "a:1-2", shown))
            why = reason(strategy(a_case(servers, STUCK, content=content(*EXPECTED))))
            assert "by hand" not in why
        else:
            assert proposed(outcome).actions
    # Of a hole nothing waits in the relay log.
    made = replace(channel("a"), may_be_former=True)
    servers = model(server("a", "a:1-3"), server("b", "a:1-2", made))
    assert proposed(inject_empty(a_case(servers, a_finding("H1", "a:3")))).actions


@pytest.mark.parametrize("strategy", [resolve_conflict, inject_empty])
def test_what_a_session_committed_above_is_a_warning_of_a_selected_strategy(strategy: Any) -> None:
    made = replace(channel("a", stuck=True), by_hand=gtids("a:5"))
    servers = model(server("a", "a:1-5"), server("b", "a:1-2 a:5", made))
    found = proposed(strategy(a_case(servers, STUCK, content=content(*EXPECTED))))
    assert any(":5 was committed by hand on b" in each for each in found.warnings)
    assert not any("a parallel applier left a gap" in each for each in found.warnings)


def test_what_waits_behind_later_transactions_is_named() -> None:
    stuck = server("b", "a:1-2 a:5", channel("a", stuck=True))
    servers = model(server("a", "a:1-5"), stuck)
    warnings = proposed(resolve_conflict(a_case(servers, STUCK, content=content(*EXPECTED))))
    assert any(":4 waits as well, and b has executed later" in each for each in warnings.warnings)


@pytest.mark.parametrize(
    ("state", "in_order", "warns"),
    [
        (RowsOn(RowState.UNREAD, "no key"), False, True),
        (RowsOn(RowState.UNREAD, "no key"), True, False),
        (RowsOn(RowState.AS_BEFORE), False, False),
        (RowsOn(RowState.CONFLICT, "a row", off=(a_net_row((7, 1), (7, 2)),)), True, True),
        (RowsOn(RowState.CONFLICT, "a row", off=(a_net_row((1, 5), (1, 7)),)), False, False),
    ],
)
def test_what_waits_behind_the_transaction_may_not_fit_rows_that_it_leaves_alone(
    state: RowsOn, *, in_order: bool, warns: bool
) -> None:
    """Rows that it changes (id 1) are set before; without rows the order of the log is a proof."""
    behind = a_content("a:3-4", rows_on={"b": state})
    case = a_case(
        model(server("a", "a:1-4"), PAIR["b"]),
        STUCK,
        content=content(*EXPECTED, rows=(a_net_row((1, 5), (1, 6)),)),
        waiting={("b", ""): ContentQuestion(behind.wanted, ("a",), ("a", "b"), in_order)},
        arrivals={("b", ""): behind},
    )
    found = proposed(resolve_conflict(case)).warnings
    assert any("what waits may overwrite rows" in each for each in found) is warns
    assert not warns or f"may not fit ({'no key' if state.why == 'no key' else '1 other'}" in str(
        found
    )
    empty = replace(behind, classes={ContentClass.EMPTY: behind.wanted})
    no_rows = replace(case, arrivals={("b", ""): empty})
    assert not any("what waits" in each for each in proposed(resolve_conflict(no_rows)).warnings)
    unread = proposed(resolve_conflict(replace(case, arrivals={}))).warnings
    assert not any("what waits" in each for each in unread), "nothing is known of its rows"


def test_rows_that_differ_in_nothing_written_are_left_alone() -> None:
    case = a_case(PAIR, STUCK, content=content(row((1, 5), (1, 5))))
    assert proposed(resolve_conflict(case)).actions == (
        StartChannel("b", "", retried=gtids("a:3")),
    )


def without(name: str) -> Model:
    return Model({key: each for key, each in PAIR.servers.items() if key != name})


FITS = {"b": RowsOn(RowState.AS_BEFORE)}
MEETS = {"b": RowsOn(RowState.CONFLICT, meets="d.t `id` = 4: u")}
CONFLICT = {"b": RowsOn(RowState.UNREAD, "d.t: it has no key")}
EQUAL = {"b": RowsOn(RowState.CONFLICT, overtaken=(a_net_row(None, (1, 5)),))}
LATER = {"b": "b:4, which the other side does not have, changed the same rows"}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"is_chosen": False}, "expects them (5 in total)"),
        ({"content": None}, "could not be read: no log was read"),
        ({"content": nothing_read(gtids("a:3"), "it was purged")}, "read: it was purged"),
        ({"content": content(rows=None, rows_unread="partial JSON")}, "partial JSON"),
        ({"content": content(*EXPECTED, rows_on=MEETS)}, "in a unique key as a row that"),
        ({"content": content(rows_on=CONFLICT)}, "d.t: it has no key"),
        (
            {"content": content(rows_on=FITS), "is_chosen": False},
            "start the applier again, or select",
        ),
        ({"content": content(row((1, 0), (1, 1), ENUMS))}, "an ENUM has the error value"),
        # Of a dual-primary pair: a would end with the version of b, and b with that of a.
        ({"content": content(*EXPECTED, later_work=LATER)}, "on b b:4, which the other side"),
        ({"content": content(*EXPECTED, rows_on=EQUAL)}, "since, and is equal on b and a: applied"),
    ],
)
def test_it_is_refused(facts: dict[str, Any], words: str) -> None:
    case = a_case(PAIR, STUCK, **{"content": content(*EXPECTED), **facts})
    assert words in reason(resolve_conflict(case))


@pytest.mark.parametrize(
    ("servers", "finding"),
    [(without("a"), STUCK), (without("b"), STUCK), (PAIR, a_finding("A2", "", channel="gone"))],
)
def test_both_servers_must_have_been_read(servers: Model, finding: Any) -> None:
    case = a_case(servers, finding, content=content(*EXPECTED))
    assert "could not be read" in reason(resolve_conflict(case))


def test_nothing_is_left_out_on_a_stopped_server_that_was_not_read() -> None:
    case = a_case(without("b"), STUCK, content=content(*EXPECTED))
    assert "could not be read" in reason(inject_empty(case))


def test_rows_that_earlier_steps_change_are_not_relied_on() -> None:
    for server_name, is_refused in (("b", True), ("a", False)):
        before = {server_name: gtids("a:1")}
        case = a_case(PAIR, STUCK, content=content(*EXPECTED), at_start=before)
        if is_refused:
            assert "earlier steps of this plan change rows on b" in reason(resolve_conflict(case))
        else:
            # The script looks at the rows of its own server once more.
            case = replace(case, rows_written=rows_written_on("b"))
            assert proposed(resolve_conflict(case)).actions


def test_a_row_that_is_there_already_may_be_its_own_history() -> None:
    changed = {"rows": (a_net_row(None, (4, 4)),)}
    for state, is_named in ((RowState.AS_AFTER, True), (RowState.CONFLICT, False)):
        read = content(*EXPECTED, **changed, rows_on={"b": RowsOn(state)})
        done = proposed(resolve_conflict(a_case(PAIR, STUCK, content=read)))
        assert (
            any("are already on b, as it left them" in each for each in done.warnings) == is_named
        )


def test_rows_that_fit_now_need_only_the_start() -> None:
    """As between the two steps, if the plan was interrupted there."""
    done = proposed(resolve_conflict(a_case(PAIR, STUCK, content=content(rows_on=FITS))))
    assert done.actions == (StartChannel("b", "", retried=gtids("a:3")),)
    assert "loses its version of these rows" not in done.warnings[0]
    assert "audit again" in done.warnings[0]
