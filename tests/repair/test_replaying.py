"""Redo and undo without servers: where, of what, in which order, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from binlog.rows.images import ENUM
from binlog.rows.tables import RowColumn
from binlog.rows.values import ABSENT
from gtid import GtidSet
from repair.content.transaction_content import (
    NetRow,
    RowsOn,
    RowState,
    TransactionContent,
    nothing_read,
)
from repair.model.actions import RedoTransactions, UndoRows
from repair.model.replication_model import Model
from repair.model.strategy_case import Proposal
from repair.strategies.redo_on_source import redo_on_source
from repair.strategies.undo_on_replica import undo_on_replica
from tests.repair.build import NEW, OLD, UUIDS, channel, gtids, model, server
from tests.repair.cases import (
    ENUMS,
    a_case,
    a_content,
    a_finding,
    a_net_row,
    a_table,
    proposed,
    reason,
    redone,
    rows_written_on,
    shown,
)
from topology.catalogue.findings import Grade
from topology.catalogue.strategy_table import STRATEGIES
from topology.readings.content_class import ContentClass
from topology.readings.version import ServerVersion


def pair(version: ServerVersion = NEW, extra: str = "b:1-2") -> Model:
    return model(
        server("a", "a:1-3", version=version),
        server("b", f"a:1-3 {extra}", channel("a"), version=version),
    )


ERRANT = a_finding("E1", "b:1-2")
READ = a_content("b:1-2", redo=redone("b:1-2"))
ROWS = (
    a_net_row((1, 5), (1, 6)),
    a_net_row(None, (2, 7)),
    a_net_row((3, 8), None),
    a_net_row((9, 1), (9, 2), a_table("s")),
)
UNDONE = a_content("b:1-2", rows=ROWS)

# -- redo -----------------------------------------------------------------------------------------


def test_redo_does_each_again_under_its_gtid_in_the_order_of_the_log() -> None:
    in_order = a_content("b:1-2", redo=redone("b:2 b:1"))
    done = proposed(redo_on_source(a_case(pair(), ERRANT, content=in_order)))
    assert shown(done.actions) == ["a RedoTransactions b:1-2"]
    [action] = done.actions
    assert isinstance(action, RedoTransactions)
    assert [each.gtid.gno for each in action.transactions if each.gtid is not None] == [2, 1]
    warning, _comes_back = done.warnings
    assert f"this plan redoes: data: {UUIDS['b']}:1-2" in warning


def test_redo_leaves_out_what_the_source_has() -> None:
    partly = pair().replace(server("a", "a:1-3 b:1"))
    done = proposed(redo_on_source(a_case(partly, ERRANT, content=READ)))
    assert shown(done.actions) == ["a RedoTransactions b:2"]
    wholly = pair().replace(server("a", "a:1-3 b:1-2"))
    assert redo_on_source(a_case(wholly, ERRANT, content=READ)) == Proposal(())


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"is_chosen": False}, "only planned when selected"),
        ({"content": None}, "could not be read: no log"),
        ({"content": nothing_read(gtids("b:1-2"), "it was purged")}, "read: it was purged"),
        ({"content": a_content("b:1-2", redo=redone("b:1"))}, f"{UUIDS['b']}:2 was not read"),
        ({"content": a_content("b:1-2", redo=redone("b:1"))}, "as SQL: too many. Where a log has"),
        (
            {"content": a_content("b:1-2", rows_unread="more than 2,000 transactions")},
            (
                "as SQL: more than 2,000 transactions. Where a log has it, redo it by hand:"
                f" `gtid-audit binlog show '{gtids('b:1-2')}' SERVER --redo --keep-gtids"
                " --schema-from SERVER > FILE` (SERVER is the DSN of b)"
            ),
        ),
        ({"content": a_content("b:1-2", redo=redone("b:1"), unread="cut")}, "as SQL: cut"),
        ({"content": a_content("b:1-2", redo=redone("b:1-2", "no key"))}, "no key"),
    ],
)
def test_redo_is_refused(facts: dict[str, Any], words: str) -> None:
    assert words in reason(redo_on_source(a_case(pair(), ERRANT, **{"content": READ, **facts})))


MAY_BE_THERE = pytest.mark.parametrize(
    ("code", "grade", "version", "state", "words"),
    [
        ("E3", Grade.PROVED, NEW, RowState.AS_BEFORE, None),
        ("E3", Grade.PROVED, NEW, RowState.UNREAD, None),
        ("E3", Grade.PROVED, NEW, RowState.AS_AFTER, "are already on a"),
        ("E3", Grade.LIKELY, NEW, RowState.UNREAD, "may still be on a"),
        ("E3", Grade.LIKELY, NEW, RowState.AS_BEFORE, None),
        ("E3", Grade.PROVED, OLD, RowState.UNREAD, "may still be on a"),
        ("E3", Grade.PROVED, OLD, RowState.AS_BEFORE, None),
        ("E1", Grade.LIKELY, OLD, RowState.UNREAD, None),
    ],
)


@MAY_BE_THERE
def test_rows_that_may_be_there_are_not_done_again(
    code: str, grade: Grade, version: ServerVersion, state: RowState, words: str | None
) -> None:
    content = replace(READ, rows_on={"a": RowsOn(state, "no key")})
    finding = replace(a_finding(code, "b:1-2"), grade=grade)
    outcome = redo_on_source(a_case(pair(version), finding, content=content))
    if words is None:
        assert isinstance(outcome, Proposal)
    else:
        assert words in reason(outcome)


@MAY_BE_THERE
def test_rows_that_may_be_there_are_not_undone_elsewhere(
    code: str, grade: Grade, version: ServerVersion, state: RowState, words: str | None
) -> None:
    """The source has lost the GTIDs alone: an undo on its replicas would take acknowledged rows."""
    content = replace(UNDONE, rows_on={"a": RowsOn(state, "no key")})
    finding = replace(a_finding(code, "b:1-2"), grade=grade)
    outcome = undo_on_replica(a_case(pair(version), finding, content=content))
    if words is None:
        assert isinstance(outcome, Proposal)
    else:
        assert words in reason(outcome)
        assert "remove the rows only from the other servers" in reason(outcome)


def test_rows_of_tables_that_the_source_does_not_have_are_undone() -> None:
    """They cannot be there, unless a table is only not shown to this account."""
    hidden = RowsOn(RowState.UNREAD, "no table d.t", is_missing=True)
    for on in (hidden, replace(hidden, is_absent=True)):
        content = replace(UNDONE, rows_on={"a": on})
        outcome = undo_on_replica(a_case(pair(), ERRANT, content=content))
        assert isinstance(outcome, Proposal) is on.is_absent


@pytest.mark.parametrize(
    ("state", "is_refused"),
    [
        (RowState.AS_AFTER, False),
        (RowState.UNREAD, False),
        (RowState.CONFLICT, True),
        (RowState.AS_BEFORE, True),
    ],
)
def test_redo_needs_the_rows_that_the_holders_got(*, state: RowState, is_refused: bool) -> None:
    content = replace(READ, rows_on={"b": RowsOn(state, "`id` = 2")})
    outcome = redo_on_source(a_case(pair(), ERRANT, content=content))
    assert isinstance(outcome, Proposal) is not is_refused
    if is_refused:
        assert "changed since" in reason(outcome)
        assert "b: `id` = 2" in reason(outcome)


def test_a_statement_that_no_guard_checks_is_not_redone() -> None:
    first, second = redone("b:1-2")
    content = a_content("b:1-2", redo=(first, replace(second, unguarded="TRUNCATE TABLE `n`")))
    why = reason(redo_on_source(a_case(pair(), ERRANT, content=content)))
    assert f"{UUIDS['b']}:2 has the statement `TRUNCATE TABLE `n``" in why
    assert "binlog show SET SERVER --redo --keep-gtids" in why
    # It is there already: the rest is redone.
    partly = pair().replace(server("a", "a:1-3 b:2"))
    done = proposed(redo_on_source(a_case(partly, ERRANT, content=content)))
    assert shown(done.actions) == ["a RedoTransactions b:1"]


@pytest.mark.parametrize(
    ("kind", "words", "others"),
    [
        (ContentClass.DATA, "Rows must be as", "must not be there"),
        (ContentClass.DDL, "must not be there", "Rows must be as"),
    ],
)
def test_a_redo_says_where_its_script_stops(kind: ContentClass, words: str, others: str) -> None:
    content = a_content("b:1-2", kind, redo=redone("b:1-2"))
    warning, *_ = proposed(redo_on_source(a_case(pair(), ERRANT, content=content))).warnings
    assert words in warning
    assert others not in warning


@pytest.mark.parametrize("state", [RowState.CONFLICT, RowState.AS_AFTER, RowState.AS_BEFORE])
def test_a_redo_must_fit_the_rows_of_the_servers_that_receive_it(state: RowState) -> None:
    servers = pair().replace(server("c", "a:1-3", channel("a")))
    content = replace(READ, rows_on={"c": RowsOn(state)})
    outcome = redo_on_source(a_case(servers, ERRANT, content=content))
    if state is RowState.AS_BEFORE:
        assert isinstance(outcome, Proposal)
    else:
        assert "stop the applier there: c" in reason(outcome)
    # c does not receive it.
    stopped = pair().replace(server("c", "a:1-3", channel("a", runs=False)))
    assert isinstance(redo_on_source(a_case(stopped, ERRANT, content=content)), Proposal)


@pytest.mark.parametrize("runs", [True, False])
def test_a_redo_guards_rows_that_were_compared_wherever_it_arrives(*, runs: bool) -> None:
    """c receives from a; stopped, it receives nothing, and its rows do not matter now."""
    servers = pair().replace(server("c", "a:1-3", channel("a", runs=runs)))
    content = replace(READ, rows=ROWS, rows_on={"b": RowsOn(RowState.AS_AFTER)})
    [action] = proposed(redo_on_source(a_case(servers, ERRANT, content=content))).actions
    assert isinstance(action, RedoTransactions)
    assert (action.rows is None) is runs


def test_a_busy_replica_that_was_read_ahead_of_its_source_receives_a_redo() -> None:
    ahead = server("c", "a:1-4", channel("a"))  # the source would refuse it if it connected now
    content = replace(READ, rows_on={"c": RowsOn(RowState.CONFLICT)})
    for receiver, last in (("c", ahead), ("d", server("d", "a:1-3", channel("c")))):
        servers = pair().replace(ahead).replace(last)
        read = replace(content, rows_on={receiver: RowsOn(RowState.CONFLICT)})
        why = reason(redo_on_source(a_case(servers, ERRANT, content=read)))
        assert f"stop the applier there: {receiver}" in why
    stuck = pair().replace(server("c", "a:1-3", channel("a", stuck=True)))
    assert proposed(redo_on_source(a_case(stuck, ERRANT, content=content))).actions


def test_a_redo_names_the_other_sources_of_the_replica() -> None:
    channels = channel("a", name="x"), channel("c", name="y")
    servers = model(
        server("a", "a:1-3"), server("c", "c:1"), server("b", "a:1-3 b:1-2 c:1", *channels)
    )
    done = proposed(redo_on_source(a_case(servers, ERRANT, content=READ)))
    assert any("c, from which b replicates as well" in each for each in done.warnings)
    before = reason(redo_on_source(a_case(servers, ERRANT, content=READ, is_chosen=False)))
    assert "only on a, and c, from which b replicates as well, would not get it" in before
    alone = reason(redo_on_source(a_case(pair(), ERRANT, content=READ, is_chosen=False)))
    assert "only on" not in alone


def test_a_redo_needs_the_tables_on_the_source() -> None:
    missing = RowsOn(RowState.UNREAD, "d.t: no such table", is_missing=True)
    content = replace(READ, rows_on={"a": missing})
    why = reason(redo_on_source(a_case(pair(), ERRANT, content=content)))
    assert "all of their tables: d.t: no such table" in why


def test_redo_needs_a_source_that_was_read() -> None:
    alone = model(server("b", "a:1-3 b:1-2", channel("a")))
    assert "source could not be read" in reason(redo_on_source(a_case(alone, ERRANT, content=READ)))


@pytest.mark.parametrize(
    ("version", "tag", "is_refused"),
    [(OLD, "x:", True), (OLD, "", False), (NEW, "x:", False)],
)
def test_tags_are_not_redone_where_none_are_known(
    version: ServerVersion, tag: str, is_refused: bool
) -> None:
    text = f"b:{tag}1"
    case = a_case(
        pair(version, extra=text),
        a_finding("E1", text),
        content=a_content(text, redo=redone(text)),
    )
    outcome = redo_on_source(case)
    assert isinstance(outcome, Proposal) is not is_refused
    if is_refused:
        assert "does not support GTID tags" in reason(outcome)


def upwards(*, runs: bool = True, above: str = "a:1-3", below: str = "a:1-3") -> Model:
    """Return c → a → b with extra transactions on b: what a commits does not reach c."""
    return model(
        server("a", below, channel("c", runs=runs)),
        server("b", "a:1-3 b:1-2", channel("a")),
        server("c", above),
    )


@pytest.mark.parametrize(
    ("servers", "where"),
    [
        (upwards(), "c RedoTransactions b:1-2"),  # from there it reaches a as well
        (upwards(runs=False), "a RedoTransactions b:1-2"),  # from nowhere does it reach all
        (upwards(above="a:1-3 b:1"), "a RedoTransactions b:1-2"),  # c has a part of them
        (upwards(above="a:1-3 b:1-2"), "a RedoTransactions b:1-2"),
    ],
)
def test_redo_begins_where_it_reaches_every_server(servers: Model, where: str) -> None:
    done = proposed(redo_on_source(a_case(servers, ERRANT, content=READ)))
    assert shown(done.actions)[0] == where


def test_servers_without_any_history_count_as_well() -> None:
    servers = model(
        server("a", "", channel("c")), server("b", "b:1-2", channel("a")), server("c", "")
    )
    done = proposed(redo_on_source(a_case(servers, ERRANT, content=READ)))
    assert shown(done.actions) == ["c RedoTransactions b:1-2"]


def test_a_transaction_without_a_gtid_is_not_redone() -> None:
    anonymous = replace(redone("b:1")[0], gtid=None)
    content = a_content("b:1-2", redo=(anonymous, *redone("b:1-2")))
    done = proposed(redo_on_source(a_case(pair(), ERRANT, content=content)))
    [action] = done.actions
    assert isinstance(action, RedoTransactions)
    assert len(action.transactions) == 2


def test_redo_of_a_lost_tail_starts_the_channel_that_was_refused() -> None:
    lost = model(
        server("a", "a:1-3"),
        server("b", "a:1-5", channel("a", runs=False)),
    )
    content = a_content("a:4-5", redo=redone("a:4-5"))
    done = proposed(redo_on_source(a_case(lost, a_finding("E3", "a:4-5"), content=content)))
    assert shown(done.actions) == ["a RedoTransactions a:4-5", "b StartChannel"]


# -- undo -----------------------------------------------------------------------------------------


def test_undo_sets_rows_back_then_uses_up_the_gtids() -> None:
    done = proposed(undo_on_replica(a_case(pair(), ERRANT, content=UNDONE)))
    assert shown(done.actions) == [
        "b UndoRows s `id` = 9",
        # What goes makes room for what comes.
        "b UndoRows t `id` = 2,`id` = 1,`id` = 3",
        "a InjectEmpty b:1-2",
    ]
    changes = [
        (row.source, row.replica)
        for action in done.actions
        if isinstance(action, UndoRows)
        for row in action.rows
    ]
    assert changes == [((9, 1), (9, 2)), (None, (2, 7)), ((1, 5), (1, 6)), ((3, 8), None)]
    [warning] = done.warnings
    assert f"this plan undoes: data: {UUIDS['b']}:1-2" in warning
    assert all(each.gtids == gtids("b:1-2") for each in done.actions if isinstance(each, UndoRows))


def test_undo_reaches_every_server_that_has_the_transactions() -> None:
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1-3 b:1-2", channel("a")),
        server("c", "a:1-3 b:1-2", channel("b")),
        server("d", "a:1-3", channel("a")),
    )
    content = a_content("b:1-2", rows=ROWS[:1])
    done = proposed(undo_on_replica(a_case(servers, ERRANT, content=content)))
    assert shown(done.actions) == [
        "b UndoRows t `id` = 1",
        "c UndoRows t `id` = 1",
        "a InjectEmpty b:1-2",  # and replication brings it to d
    ]


def test_undo_waits_for_servers_that_would_apply_the_transactions_afterwards() -> None:
    """An undo is not logged, and the logs of the holders keep the transactions."""
    a, b = server("a", "a:1-3"), server("b", "a:1-3 b:1-2", channel("a"))
    content = a_content("b:1-2", rows=ROWS[:1])
    stopped = server("c", "a:1-3", channel("b", runs=False))
    refusal = reason(undo_on_replica(a_case(model(a, b, stopped), ERRANT, content=content)))
    assert refusal.startswith("c had not applied ")
    # Its channel runs: the model has them there already, the rows are not.
    running = server("c", "a:1-3 b:1-2", channel("b"))
    read = {"a": gtids("a:1-3"), "b": gtids("a:1-3 b:1-2"), "c": gtids("a:1-3 b:1")}
    case = a_case(model(a, b, running), ERRANT, content=content, snapshot_executed=read)
    assert reason(undo_on_replica(case)).startswith("c had not applied ")
    read["c"] |= gtids("b:2")
    assert proposed(undo_on_replica(case)).actions


@pytest.mark.parametrize("strategy", [redo_on_source, undo_on_replica])
def test_neither_is_done_while_a_server_that_was_not_read_may_deliver_them(strategy: Any) -> None:
    unseen = replace(ERRANT, strategies=(STRATEGIES["add_servers"],))
    content = replace(UNDONE, redo=redone("b:1-2"))
    assert reason(strategy(a_case(pair(), unseen, content=content))).startswith("servers that were")
    silent = a_case(pair(), ERRANT, content=content, unread={"c": GtidSet()})
    assert reason(strategy(silent)).startswith("c could not be read, and may have")
    assert proposed(strategy(a_case(pair(), ERRANT, content=content))).actions


def test_an_undo_of_a_tail_names_the_servers_that_a_stop_in_between_leaves_without_it() -> None:
    tail = a_finding("J3", "b:1-2")
    old, c, d = server("b", "a:1-3 b:1-2"), server("c", "a:1-3"), server("d", "a:1-3")
    from_c, from_d = channel("c", name="c"), channel("d", name="d")
    for a, names in (
        (server("a", "a:1-3"), ""),
        (server("a", "a:1-3", from_c), ""),  # it gets them from c
        (server("a", "a:1-3", from_c, from_d), "d or c"),
    ):
        case = a_case(model(a, old, c, d), tail, content=UNDONE)
        done = proposed(undo_on_replica(case))
        left = [each for each in done.warnings if "no later audit reports that" in each]
        assert len(left) == bool(names)
        assert all(f"that {names} is still without" in each for each in left)


def test_undo_for_a_second_replica_does_nothing_again() -> None:
    used_up = pair().replace(server("a", "a:1-3 b:1-2"))
    assert undo_on_replica(a_case(used_up, ERRANT, content=UNDONE)) == Proposal(())
    nothing_else = used_up.replace(server("a", "b:1-2"))
    assert undo_on_replica(a_case(nothing_else, ERRANT, content=UNDONE)) == Proposal(())
    partly = pair().replace(server("a", "a:1-3 b:1"))
    assert undo_on_replica(a_case(partly, ERRANT, content=UNDONE)) != Proposal(())


def test_undo_of_a_lost_tail_starts_the_channel_that_was_refused() -> None:
    lost = model(server("a", "a:1-3"), server("b", "a:1-5", channel("a", runs=False)))
    content = a_content("a:4-5", rows=ROWS[:1])
    done = proposed(undo_on_replica(a_case(lost, a_finding("E3", "a:4-5"), content=content)))
    assert shown(done.actions)[1:] == ["a InjectEmpty a:4-5", "b StartChannel"]


def test_gtids_are_used_up_on_every_server_that_no_other_brings_them_to() -> None:
    content = a_content("b:1-2", rows=ROWS[:1])
    case = a_case(upwards(), ERRANT, content=content)
    # Sources first: what is committed on c reaches a, unless the channel stops meanwhile.
    done = shown(proposed(undo_on_replica(case)).actions)
    assert done == ["b UndoRows t `id` = 1", "c InjectEmpty b:1-2", "a InjectEmpty b:1-2"]


def test_tables_of_one_name_in_two_schemas_are_two_steps() -> None:
    other = replace(a_table(), schema="e")
    content = a_content("b:1-2", rows=(ROWS[0], a_net_row((1, 5), (1, 6), other)))
    done = proposed(undo_on_replica(a_case(pair(), ERRANT, content=content)))
    tables = [each.rows[0].table.schema for each in done.actions if isinstance(each, UndoRows)]
    assert tables == ["d", "e"]


def conflict(name: str) -> TransactionContent:
    return a_content("b:1-2", rows=ROWS, rows_on={name: RowsOn(RowState.CONFLICT, "`id` = 1")})


def bound(name: str) -> TransactionContent:
    on = RowsOn(RowState.UNREAD, "other tables hold rows of them", is_bound=True)
    return a_content("b:1-2", rows=ROWS, rows_on={name: on})


def without_table(name: str) -> TransactionContent:
    on = RowsOn(RowState.UNREAD, "d.t is not there", is_missing=True)
    return a_content("b:1-2", rows=ROWS, rows_on={name: on})


def with_ddl(where: str) -> TransactionContent:
    classes = {ContentClass.DATA: gtids("b:1-2") - gtids(where), ContentClass.DDL: gtids(where)}
    return TransactionContent("b", classes, rows=ROWS)


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"is_chosen": False}, "only planned when selected"),
        ({"content": None}, "could not be read: no log"),
        ({"content": nothing_read(gtids("b:1-2"), "it was purged")}, "read: it was purged"),
        ({"content": with_ddl("b:2")}, "only rows can be undone"),
        ({"content": a_content("b:1-2", ContentClass.UNREAD, rows=ROWS)}, "only rows can be"),
        ({"content": a_content("b:1-2", rows_unread="d.t: it has no key")}, "it has no key;"),
        ({"content": conflict("b")}, "changed since: b: `id` = 1"),
        ({"content": bound("b")}, "b: other tables hold rows of them;"),
        ({"content": without_table("b")}, "b: d.t is not there;"),
    ],
)
def test_undo_is_refused(facts: dict[str, Any], words: str) -> None:
    case = a_case(pair(), ERRANT, **{"content": UNDONE, **facts})
    assert words in reason(undo_on_replica(case))


def test_an_undo_that_stopped_between_two_scripts_goes_on() -> None:
    """Each row is as before or as after. A script leaves alone what is as it should be."""
    on = RowsOn(RowState.CONFLICT, "`id` = 1", is_in_part=True)
    stopped = replace(UNDONE, rows_on={"b": on})
    done = proposed(undo_on_replica(a_case(pair(), ERRANT, content=stopped)))
    assert done.actions == proposed(undo_on_replica(a_case(pair(), ERRANT, content=UNDONE))).actions


@pytest.mark.parametrize("content", [conflict("a"), with_ddl("b:9")])
def test_what_is_elsewhere_does_not_forbid_to_undo(content: TransactionContent) -> None:
    assert proposed(undo_on_replica(a_case(pair(), ERRANT, content=content))).actions


def test_undo_needs_to_know_where_the_gtids_are_missing() -> None:
    alone = model(server("b", "a:1-3 b:1-2", channel("a")))
    case = a_case(alone, ERRANT, content=UNDONE)
    assert "on which they are missing could not be read" in reason(undo_on_replica(case))


def test_a_server_with_a_part_of_them_comes_first() -> None:
    partly = pair().replace(server("c", "a:1-3 b:1", channel("a")))
    case = a_case(partly, ERRANT, content=UNDONE)
    assert reason(undo_on_replica(case)).startswith("c has only a part of them")
    # A server that has others of that UUID, or none, has no part of them.
    for executed in ("a:1-3 b:3", "a:1-3"):
        other = pair().replace(server("c", executed, channel("a")))
        case = a_case(other, ERRANT, content=UNDONE)
        assert "c UndoRows" not in " ".join(shown(proposed(undo_on_replica(case)).actions))


def test_a_server_with_nothing_else_has_all_of_them() -> None:
    other = pair().replace(server("c", "b:1-2", channel("a", runs=False)))
    done = proposed(undo_on_replica(a_case(other, ERRANT, content=UNDONE)))
    assert "c UndoRows s `id` = 9" in shown(done.actions)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (a_net_row((1, ABSENT), (1, 6)), "`id` = 1: the log does not contain the whole row"),
        (a_net_row((1, ABSENT), None), "`id` = 1: the log does not contain the whole row"),
        (a_net_row((1, 0), (1, 1), ENUMS), "an ENUM has the error value"),
        (a_net_row((1, 1), (1, 0), ENUMS), "an ENUM has the error value"),
    ],
)
def test_a_row_that_cannot_be_set_back_is_refused(row: NetRow, words: str) -> None:
    content = a_content("b:1-2", rows=(*ROWS, row))
    assert words in reason(undo_on_replica(a_case(pair(), ERRANT, content=content)))


@pytest.mark.parametrize(
    "row",
    [
        NetRow(a_table(), None, None, between=((1, 5),)),  # inserted and deleted again
        a_net_row((1, 5), (1, 5)),  # changed and changed back
        a_net_row((1, ABSENT), (1, ABSENT)),
    ],
)
def test_a_row_without_a_net_change_is_left_alone(row: NetRow) -> None:
    content = a_content("b:1-2", rows=(row,))
    done = proposed(undo_on_replica(a_case(pair(), ERRANT, content=content)))
    assert shown(done.actions) == ["a InjectEmpty b:1-2"]


def test_a_deleted_row_comes_back_and_an_enum_may_hold_a_member() -> None:
    content = a_content("b:1-2", rows=(a_net_row((1, 1), None, ENUMS),))
    [action, _] = proposed(undo_on_replica(a_case(pair(), ERRANT, content=content))).actions
    assert isinstance(action, UndoRows)
    assert [(row.source, row.replica) for row in action.rows] == [((1, 1), None)]
    assert action.gtids == GtidSet.parse(f"{UUIDS['b']}:1-2")


@pytest.mark.parametrize(
    ("strategy", "content"), [(redo_on_source, READ), (undo_on_replica, UNDONE)]
)
def test_rows_that_earlier_steps_change_are_not_relied_on(strategy: Any, content: Any) -> None:
    case = a_case(pair(), ERRANT, content=content)
    begun = replace(case, at_start={"a": gtids("a:1-3"), "b": gtids("a:1-2 b:1-2")})
    for overtaken in (replace(case, rows_written=rows_written_on("b")), begun):
        assert "earlier steps of this plan change rows on b" in reason(strategy(overtaken))
    # What earlier steps did again, or leave empty, is known.
    assert proposed(strategy(replace(begun, redone=gtids("a:3")))).actions
    assert proposed(strategy(replace(begun, declared={"b": gtids("a:3")}))).actions


ALIKE = RowColumn(ENUM, 0, "n", members=("\U0001f600", "\U0001f601"))
OPEN = RowColumn(ENUM, 0, "n", members=("open", "shut"))


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (a_net_row((1, 1), (1, 2), a_table("t", OPEN)), ""),
        # Its script could not see whether the numbers of members still mean the same.
        (a_net_row((1, 1), (1, 2), a_table("t", ALIKE)), "shows as equal"),
        (a_net_row((1, 1), (1, 0), a_table("t", OPEN)), "an ENUM has the error value"),
        (a_net_row((1, ABSENT), (1, 6)), "the log does not contain the whole row"),
        (a_net_row((1, ABSENT), (1, ABSENT)), ""),  # that column was not changed
        (a_net_row((1, 5), (1, ABSENT)), ""),
        (a_net_row((1, ABSENT), None), "the log does not contain the whole row"),
        (a_net_row(None, (1, ABSENT)), ""),  # it is deleted by its key
    ],
)
def test_a_row_is_set_back_only_if_the_log_has_all_of_it(row: NetRow, words: str) -> None:
    outcome = undo_on_replica(a_case(pair(), ERRANT, content=replace(UNDONE, rows=(row,))))
    if words:
        assert words in reason(outcome)
    else:
        assert proposed(outcome).actions
