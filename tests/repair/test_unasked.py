"""What is not done unasked, or not at all, because of one fact: of a channel, a row, a server below."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from repair.content.failing_event import FailingEvent
from repair.content.transaction_content import RowsOn, RowState, TransactionContent
from repair.doubts.rows_there import is_there_already
from repair.doubts.undecided import undecided_default
from repair.model.actions import InjectEmpty
from repair.model.replication_model import Model
from repair.model.strategy_case import Case, OtherFinding
from repair.strategies.fetching_again import refetch
from repair.strategies.leaving_out import inject_empty
from repair.strategies.redo_on_source import _where_it_stops
from repair.strategies.resuming import resuming_actions
from repair.worse_findings import made_worse
from tests.repair.build import UUIDS, channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row, proposed, reason
from tests.repair.test_channel_strategies import EMPTY, HOLE, ROWS, event, pair, unasked
from tests.snapshots import NOON
from topology.catalogue.findings import ClusterAudit, Evidence, Finding, Severity, Verdict
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import LogPosition
from topology.rules.threads import RECEIVER_ERROR

AFTER, BEFORE = RowsOn(RowState.AS_AFTER), RowsOn(RowState.AS_BEFORE)
CONFLICT = RowsOn(RowState.CONFLICT, "row t `id` = 1")
NOW = (a_net_row((1, 0), (1, 5)),)  # as later ones left a row that the gap changes
LIKE = replace(CONFLICT, is_like_source=True, now=NOW)


# -- a channel that is switched -------------------------------------------------------------------


def receiving(**source: Any) -> Model:
    """Return a channel by file position, from a source that receives from another server."""
    servers = pair().replace(replace(pair()["a"], channels=(channel("c"),), **source))
    return servers.replace(server("c", "a:1-3"))


def test_a_source_that_does_not_log_what_it_receives_serves_no_auto_position() -> None:
    for servers, is_refused in (
        (receiving(logs_received=False), True),
        (receiving(), False),
        (pair().replace(replace(pair()["a"], logs_received=False)), False),  # it receives nothing
        (
            receiving(logs_received=False).replace(
                server("b", "a:1 a:3", channel("a", bypassed="a:2"))
            ),
            False,
        ),
    ):
        outcome = refetch(a_case(servers, HOLE, content=EMPTY))
        if is_refused:
            assert "does not log what it receives (log_replica_updates = OFF)" in reason(outcome)
        else:
            assert proposed(outcome).actions


def test_a_source_with_unread_settings_may_refuse_auto_position() -> None:
    """gtid_mode may be ON_PERMISSIVE there, since after a channel connected by auto-position too."""
    unread = pair().replace(replace(pair()["a"], are_settings_known=False))
    assert "the settings of a were not read" in reason(
        refetch(unasked(unread, HOLE, content=EMPTY))
    )
    assert proposed(refetch(a_case(unread, HOLE, content=EMPTY))).actions
    by_sets = unread.replace(unread["b"].with_channel("", auto_position=True))
    assert "the settings of a were not read" in reason(
        refetch(unasked(by_sets, HOLE, content=EMPTY))
    )


def test_a_channel_that_may_hold_another_history_is_not_switched_unasked() -> None:
    former = pair(may_be_former=True)
    refusal = reason(refetch(unasked(former, HOLE, content=EMPTY)))
    assert "may belong to a former log of a" in refusal
    assert proposed(refetch(a_case(former, HOLE, content=EMPTY))).actions


@pytest.mark.parametrize(("dropped", "is_refused"), [("a:2", True), ("a:3", False), ("", False)])
def test_only_what_arrives_is_dropped_for_its_server_id(dropped: str, *, is_refused: bool) -> None:
    servers = pair().replace(replace(pair()["b"], server_id=7))
    content = a_content("a:2", ContentClass.EMPTY, server_ids={7: gtids(dropped)})
    outcome = refetch(unasked(servers, HOLE, content=content))
    if is_refused:
        assert "has server_id 7, and so has b" in reason(outcome)
    else:
        assert proposed(outcome).actions


@pytest.mark.parametrize(
    ("state", "executed", "is_refused"),
    [
        (BEFORE, "a:1 a:3", False),
        (CONFLICT, "a:1 a:3", True),
        (CONFLICT, "a:1-3", False),  # nothing arrives there
    ],
)
def test_rows_of_the_servers_below_must_fit_as_well(
    state: RowsOn, executed: str, *, is_refused: bool
) -> None:
    servers = pair().replace(server("c", executed, channel("b")))
    fits = {"a": AFTER, "b": BEFORE, "c": state}
    content = a_content("a:2", rows=ROWS, rows_on=fits)
    outcome = refetch(unasked(servers, HOLE, content=content))
    if is_refused:
        assert "were changed since on c" in reason(outcome)
    else:
        assert proposed(outcome).actions


@pytest.mark.parametrize(("on_c", "is_refused"), [(BEFORE, False), (CONFLICT, True)])
def test_what_a_second_channel_below_is_to_bring_must_fit_as_well(
    on_c: RowsOn, *, is_refused: bool
) -> None:
    """c gets a:3 by its own channel, which may be held up: then it gets it from b.

    The refusal lists that alone: a:2, which arrives from b in any case, has no rows.
    """
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1", channel("a", auto=False, bypassed="a:2-3")),
        server("c", "a:1 a:3", channel("b"), channel("a", name="x")),
    )
    seen = {"a": gtids("a:1-3"), "b": gtids("a:1"), "c": gtids("a:1")}
    content = TransactionContent(
        "a",
        {ContentClass.EMPTY: gtids("a:2"), ContentClass.DATA: gtids("a:3")},
        rows=ROWS,
        rows_on={"a": AFTER, "b": BEFORE, "c": on_c},
    )
    hole = a_finding("H1", "a:2-3")
    outcome = refetch(unasked(servers, hole, content=content, snapshot_executed=seen))
    if is_refused:
        assert reason(outcome).startswith(f"rows of {UUIDS['a']}:3 were changed since on c: ")
    else:
        assert proposed(outcome).actions
    arrived = {**seen, "c": gtids("a:1 a:3")}
    case = unasked(servers, hole, content=content, snapshot_executed=arrived)
    assert proposed(refetch(case)).actions, "c had a:3 already: nothing brings it again"


def test_no_server_id_is_dropped_by_a_server_whose_own_was_not_read() -> None:
    content = a_content("a:2", ContentClass.EMPTY, server_ids={1: gtids("a:2")})
    assert proposed(refetch(unasked(pair(), HOLE, content=content))).actions


# -- rows that are there --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("on_b", "on_c", "below", "expected"),
    [
        (AFTER, AFTER, "a:1", True),
        (AFTER, BEFORE, "a:1", False),
        (AFTER, CONFLICT, "a:1", False),
        (AFTER, BEFORE, "a:1-3", True),  # the server below has executed it
        (BEFORE, AFTER, "a:1", False),
        (CONFLICT, AFTER, "a:1", False),
    ],
)
def test_rows_are_there_if_they_are_on_every_server_that_gets_the_empty_transaction(
    on_b: RowsOn, on_c: RowsOn, below: str, *, expected: bool
) -> None:
    servers = pair().replace(server("c", below, channel("b")))
    content = a_content("a:2", rows_on={"b": on_b, "c": on_c})
    case = a_case(servers, HOLE, content=content)
    assert is_there_already(case) is expected
    assert not is_there_already(replace(case, content=None))
    assert not is_there_already(replace(case, finding=a_finding("E1", "a:2")))
    unread = a_content("a:2", ContentClass.UNREAD, rows_on={"b": AFTER, "c": AFTER})
    assert not is_there_already(replace(case, content=unread))


@pytest.mark.parametrize(
    ("on_b", "on_c", "source", "expected"),
    [
        (LIKE, LIKE, "a:1-3", True),
        (LIKE, AFTER, "a:1-3", True),
        (
            replace(BEFORE, is_like_source=True, now=NOW),
            AFTER,
            "a:1-3",
            True,
        ),  # changed, and changed back
        (CONFLICT, LIKE, "a:1-3", False),
        (LIKE, CONFLICT, "a:1-3", False),
    ],
)
def test_rows_are_there_if_they_are_as_later_ones_left_them_on_the_source(
    on_b: RowsOn, on_c: RowsOn, source: str, *, expected: bool
) -> None:
    servers = pair().replace(server("c", "a:1 a:3", channel("b"))).replace(server("a", source))
    content = a_content("a:2", rows_on={"a": CONFLICT, "b": on_b, "c": on_c})
    case = a_case(servers, HOLE, content=content)
    assert is_there_already(case) is expected
    if expected:
        proposal = proposed(inject_empty(case))
        assert any(
            "are already on b, c, as later transactions of a left them there" in each
            for each in proposal.warnings
        )
        [changed] = [each for each in proposal.warnings if "later transactions changed" in each]
        assert "equal on b, c and a when the plan was made, and the scripts look for" in changed
        # The logs stay as they are, and audits compare them.
        [later] = [each for each in proposal.warnings if "--content may report E4" in each]
        assert "the logs of b, c and a show different contents" in later
        # The script looks for what the rows are now, whichever of the two that is on its server.
        [step] = [each for each in proposal.actions if isinstance(each, InjectEmpty)]
        assert step.rows == (NOW if on_b.is_like_source else ())


@pytest.mark.parametrize(
    ("own", "is_there"),
    [
        ((), True),
        # An errant transaction wrote another row, or nothing, or the same row.
        (
            (
                OtherFinding(
                    "E1", "", gtids("b:1"), a_content("b:1", rows=(a_net_row(None, (9, 9)),))
                ),
            ),
            True,
        ),
        ((OtherFinding("E1", "", gtids("b:1"), a_content("b:1", ContentClass.EMPTY)),), True),
        ((OtherFinding("E1", "", gtids("b:1"), a_content("b:1", rows=ROWS)),), False),
        # Nothing shows which rows it wrote.
        ((OtherFinding("E2", "", gtids("b:1"), a_content("b:1", ContentClass.UNREAD)),), False),
        ((OtherFinding("E2", "", gtids("b:1"), None),), False),
    ],
)
def test_rows_are_not_there_for_good_by_an_errant_transaction(
    own: tuple[OtherFinding, ...], *, is_there: bool
) -> None:
    """If that is taken back later, the empty transaction would hide that the row is missing."""
    servers = pair().replace(server("c", "a:1-3", channel("b")))
    content = a_content("a:2", rows=ROWS, rows_on={"b": AFTER})
    case = replace(a_case(servers, HOLE, content=content), extras=own)
    assert is_there_already(case) is is_there
    default = undecided_default(replace(case, is_chosen=False), [])
    assert (default is None) is is_there
    assert default is None or "which only b has, may have written them" in default.reason


@pytest.mark.parametrize(
    ("on_b", "stuck", "seen", "expected"),
    [
        (LIKE, False, "a:1-3", True),
        (LIKE, True, "a:1-3", False),  # a row conflict there: it was changed without a log
        (LIKE, False, "a:1 a:3", False),  # it was still committing them
        # As the transactions left them: the source has nothing to decide.
        (replace(AFTER, is_like_source=True), True, "a:1-3", True),
        (replace(AFTER, is_like_source=True), False, "a:1 a:3", True),
        (AFTER, True, "a:1 a:3", True),
    ],
)
def test_only_a_source_that_is_comparable_shows_that_rows_are_as_later_ones_left_them(
    on_b: RowsOn, seen: str, *, stuck: bool, expected: bool
) -> None:
    above = server("a", "a:1-3", channel("d", stuck=stuck))
    servers = pair().replace(above).replace(server("d", "a:1"))
    content = a_content("a:2", rows_on={"a": CONFLICT, "b": on_b})
    executed = {"a": gtids(seen), "b": servers["b"].executed, "d": gtids("a:1")}
    case = a_case(servers, HOLE, content=content, snapshot_executed=executed)
    assert is_there_already(case) is expected


# -- the way home ---------------------------------------------------------------------------------


def home(servers: Model, finding: Finding, **facts: Any) -> list[str]:
    case: Case = a_case(servers, finding, **facts)
    return [f"{each.server} {type(each).__name__}" for each in resuming_actions(case)]


BY_FILE = ["b AutoPositionOn"]
STARTED = ["b StartChannel"]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, BY_FILE),
        ({"until": "SQL_BEFORE_GTIDS"}, []),
        ({"bypassed": gtids("a:2-3")}, BY_FILE),  # a:3 is executed
        ({"bypassed": gtids("a:2 a:4")}, []),  # it would bring a:4 too: another finding's
        ({"passed": gtids("a:4")}, []),
        ({"auto_position": True}, []),  # it runs
        ({"auto_position": True, "running": False}, STARTED),
        ({"auto_position": True, "is_stuck": True}, STARTED),
        ({"auto_position": True, "is_stuck": True, "stuck_at": gtids("a:2")}, STARTED),
        ({"auto_position": True, "is_stuck": True, "stuck_at": gtids("a:4")}, []),
        ({"is_stuck": True, "stuck_at": gtids("a:4")}, []),  # A2 stands before it
    ],
)
def test_the_channel_of_a_hole_comes_back(facts: dict[str, Any], expected: list[str]) -> None:
    assert home(pair(**facts), HOLE) == expected
    assert home(pair(**facts), replace(HOLE, channel="x")) == []


def test_a_stopped_applier_stays_by_file_position_and_is_started() -> None:
    stuck = pair(is_stuck=True)
    assert home(stuck, a_finding("A2", "a:2")) == STARTED
    assert home(stuck, a_finding("H7", "a:2")) == []


def test_a_channel_from_a_server_that_was_not_read_is_started_when_selected() -> None:
    unread = pair(source="x", auto_position=True, running=False)
    assert home(unread, HOLE) == STARTED
    assert home(unread, HOLE, is_chosen=False) == []
    read = pair(auto_position=True, running=False)
    assert home(read, HOLE, is_chosen=False) == STARTED


def both_ways(**back: Any) -> Model:
    """Return b, with b:1 of its own, and a stopped channel from b on a."""
    way = replace(channel("b", runs=False), **back)
    return model(server("a", "a:1-3", way), server("b", "a:1-3 b:1", channel("a")))


@pytest.mark.parametrize(
    ("back", "expected"),
    [
        ({}, ["a StartChannel"]),
        ({"running": True}, []),
        ({"until": "SQL_BEFORE_GTIDS"}, []),
        ({"auto_position": False}, []),
        ({"source": "x"}, []),
    ],
)
def test_the_way_back_of_extra_transactions_is_started(
    back: dict[str, Any], expected: list[str]
) -> None:
    extra = a_finding("E1", "b:1")
    assert home(both_ways(**back), extra) == expected
    assert home(both_ways(), replace(extra, source="x")) == []
    assert home(both_ways(), replace(extra, replica="x")) == []
    purged = both_ways().replace(replace(both_ways()["b"], purged=gtids("b:1 a:1-3")))
    assert home(purged, extra) == ["a StartChannel"], "it has them by then"
    more = both_ways().replace(server("b", "a:1-3 b:1-2", channel("a"), purged="b:2"))
    assert home(more, extra) == [], "b would refuse a for b:2"


def test_of_lost_transactions_each_replica_that_has_them_is_started() -> None:
    lost = a_finding("E3", "a:4")
    waiting = channel("a", runs=False)
    servers = model(
        server("a", "a:1-3"),
        server("b", "a:1-4", waiting),
        server("c", "a:1-4", waiting),
        server("d", "a:1-3", waiting),
    )
    assert sorted(home(servers, lost)) == ["b StartChannel", "c StartChannel"]
    assert home(servers, replace(lost, code="E1")) == []


# -- what the audit would show afterwards ---------------------------------------------------------


def audit(*findings: Finding) -> ClusterAudit:
    return ClusterAudit("cluster", Verdict.CRITICAL, ("a", "b"), findings, (), None)


HELD = a_finding("E1", "b:1")
ERROR = Evidence(RECEIVER_ERROR, "error 1045", "b", NOON)


@pytest.mark.parametrize(
    ("before", "after", "is_worse"),
    [
        ((), HELD, True),
        ((HELD,), HELD, False),
        ((HELD,), a_finding("E1", "b:1-2"), True),  # it has grown
        ((a_finding("E1", "b:1-2"),), HELD, False),
        ((a_finding("A4", "b:1"),), a_finding("A4", "b:1-2"), False),  # more waits
        ((), replace(HELD, severity=Severity.INFO), False),
        ((), a_finding("A4", ""), True),
        ((), replace(a_finding("A4", ""), evidence=(ERROR,)), False),  # as it was read
        ((a_finding("J2", "b:1"),), a_finding("J2", "b:1-2"), True),
        ((), a_finding("U1", "b:1"), False),
        ((), a_finding("A7", "b:1"), False),  # uncovered by a repair
        ((), a_finding("C3", ""), False),
        # In gtid_purged as the plan begins, and never logged: an action only uncovers it.
        ((), a_finding("E4", "b:1"), False),
        ((), a_finding("E4", "b:1-2"), True),
        ((), a_finding("E4", "b:1", replica="c"), True),
        # A server that no channel links may join more easily than before, and not less.
        ((a_finding("J3", "b:1"),), a_finding("J2", "b:1"), False),
        ((a_finding("J3", "b:1"),), a_finding("J1", "b:1"), False),
        ((a_finding("J2", "b:1"),), a_finding("J1", "b:1"), False),
        ((a_finding("J1", "b:1"),), a_finding("J2", "b:1"), True),
        ((a_finding("J2", "b:1"),), a_finding("J3", "b:1"), True),
        ((a_finding("J3", "b:1", replica="c"),), a_finding("J2", "b:1"), True),
        ((a_finding("P1", "b:1"),), a_finding("J2", "b:1"), True),
        ((a_finding("J3", "b:1"),), HELD, True),
        # Passed on the same replica by another channel.
        ((a_finding("H8", "b:1-2", source="c"),), a_finding("H8", "b:1"), False),
        ((a_finding("H8", "b:1", source="c"),), a_finding("H8", "b:1-2"), True),
        ((a_finding("H8", "b:1-2", replica="c"),), a_finding("H8", "b:1"), True),
    ],
)
def test_a_finding_is_worse_if_it_is_new_or_has_grown(
    before: tuple[Finding, ...], after: Finding, *, is_worse: bool
) -> None:
    purged = {"b": gtids("b:1")}
    assert list(made_worse(audit(*before), audit(after), purged=purged)) == (
        [after] if is_worse else []
    )


# -- events, and what a script says of itself -----------------------------------------------------


@pytest.mark.parametrize(("start", "end", "code"), [(100, 200, 0), (200, 200, 1), (300, 200, 1)])
def test_an_event_that_failed_has_an_error_and_a_length(start: int, end: int, code: int) -> None:
    first, last = (LogPosition.of(file="binlog.000001", position=at) for at in (start, end))
    assert first is not None
    assert last is not None
    known: FailingEvent = event()
    with pytest.raises(ValueError, match=r"logged without an error|ends at"):
        replace(known, start=first, end=last, error_code=code)


@pytest.mark.parametrize(
    ("kind", "rows", "more"),
    [
        (ContentClass.DATA, True, False),
        (ContentClass.DDL, False, True),
        (ContentClass.EMPTY, False, False),
    ],
)
def test_a_redo_says_what_would_stop_it(kind: ContentClass, *, rows: bool, more: bool) -> None:
    text = _where_it_stops(a_content("a:2", kind), gtids("a:2"))
    assert ("Rows must be as the transactions found them" in text) is rows
    assert ("must not be there yet" in text) is more
    assert text.endswith("otherwise the script stops and the transaction is not done")
    elsewhere = _where_it_stops(a_content("a:3", kind), gtids("a:2"))
    assert elsewhere == _where_it_stops(a_content("a:2", ContentClass.EMPTY), gtids("a:2"))
