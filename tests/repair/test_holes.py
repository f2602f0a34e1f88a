"""Whether rows may be as they are because of another hole: one fact at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from repair.content.transaction_content import RowsOn, RowState, TransactionContent
from repair.model.holes import depends_on_a_hole, passed_by
from repair.model.strategy_case import OtherFinding
from tests.repair.build import channel, gtids, model, server
from tests.repair.cases import a_case, a_content, a_finding, a_net_row
from topology.readings.content_class import ContentClass

SERVERS = model(server("a", "a:1-5"), server("b", "a:1 a:4", channel("a")))
ROW, OTHER = a_net_row((1, 5), None), a_net_row((2, 5), None)
OF_FINDING = a_content("a:2", rows=(ROW,))
SAME_ROW = a_content("a:3", rows=(ROW,))
ELSEWHERE = a_content("a:3", rows=(OTHER,))


@pytest.mark.parametrize(
    ("missing", "content", "expected"),
    [
        ("a:3", SAME_ROW, True),
        ("a:3", ELSEWHERE, False),
        ("a:3", None, True),
        ("a:3 a:5", SAME_ROW, True),
        ("a:3 a:5", ELSEWHERE, True),  # a:5 was not read
        ("a:2", None, False),  # the finding's own
        ("a:4", None, False),  # executed by now
        ("a:3", replace(SAME_ROW, rows_on={"b": RowsOn(RowState.AS_AFTER)}), False),
        ("a:3 a:5", replace(SAME_ROW, rows_on={"b": RowsOn(RowState.AS_AFTER)}), True),
        ("a:3", replace(SAME_ROW, rows_on={"b": RowsOn(RowState.AS_BEFORE)}), True),
        ("a:3", a_content("a:3", ContentClass.EMPTY), False),
        ("a:3", a_content("a:3"), True),  # its rows are not known
    ],
)
def test_rows_depend_on_a_hole_that_changes_them(
    missing: str, content: TransactionContent | None, *, expected: bool
) -> None:
    hole = OtherFinding("H1", "", gtids(missing), content)
    case = a_case(SERVERS, a_finding("H8", "a:2"), holes=(hole,))
    assert depends_on_a_hole(case, OF_FINDING) is expected
    assert not depends_on_a_hole(replace(case, holes=()), OF_FINDING)


def test_rows_that_were_not_read_may_depend_on_any_hole() -> None:
    case = a_case(
        SERVERS, a_finding("H8", "a:2"), holes=(OtherFinding("H1", "", gtids("a:3"), ELSEWHERE),)
    )
    unread = a_content("a:2")
    assert depends_on_a_hole(case, unread)
    assert not depends_on_a_hole(case, replace(unread, rows_beside_created=(ROW,)))


def test_what_channels_passed_and_nothing_has_brought() -> None:
    gone = replace(channel("a"), bypassed=gtids("a:2"), passed=gtids("a:3-4"))
    servers = model(server("a", "a:1-5"), server("b", "a:1 a:4", gone))
    assert passed_by(servers, servers["b"]) == gtids("a:2-3")
    assert not passed_by(servers, servers["a"])
