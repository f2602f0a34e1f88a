"""A GTID of a server's own UUID that another server committed by hand: its channel brings it."""

from compose.faults import table_on
from compose.native.shapes import Pair, wait_for
from repair.model.actions import StartChannel
from tests.repair.live import examine, executed, rows


def test_a_start_that_brings_a_gtid_set_by_hand_waits_for_h7(pair97: Pair) -> None:
    """A receiver drops what carries its server_id; this transaction carries that of b."""
    a, b = pair97.a, pair97.b
    table_on(a, b, "own")
    a.execute(a.dialect.stop_replica)
    own = f"{a.value('@@GLOBAL.server_uuid')}:1000"
    b.execute(f"SET SESSION gtid_next = '{own}'", "INSERT INTO own.t VALUES (7, 'by hand')")
    found = examine(pair97)
    assert {"A7", "H7"} <= set(found.codes)
    plan = found.plan()
    assert not any(isinstance(step.effect, StartChannel) for step in plan.steps)
    [left] = [each for each in plan.not_planned if each.code == "A7"]
    assert "a applies them as soon as a channel delivers them" in left.why
    assert "Answer H7, E1 or E3 first" in left.why
    a.execute(a.dialect.start_replica)
    wait_for(a, own)
    assert rows(a, "own.t") == rows(b, "own.t") == [(7, "by hand")]
    assert executed(a) == executed(b)
