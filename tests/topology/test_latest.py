"""What was computed last is given again for the same snapshot, and for no other one."""

from dataclasses import replace

from tests.snapshots import A, a_cluster, a_server
from topology.facts.cluster_facts import gather_facts
from topology.facts.last_result import keep_last_result
from topology.policy import Policy


def test_the_same_question_is_computed_once() -> None:
    asked: list[tuple[object, int]] = []

    @keep_last_result
    def answer(subject: object, /, *, limit: int = 1) -> int:
        asked.append((subject, limit))
        return len(asked)

    one, other = [1], [1]
    assert [answer(one), answer(one), answer(one, limit=2), answer(one, limit=2)] == [1, 1, 2, 2]
    assert answer(other, limit=2) == 3  # equal, and another object
    assert answer(one, limit=2) == 4  # only the latest is kept
    assert [limit for _, limit in asked] == [1, 2, 2, 2]


def test_facts_are_of_the_snapshot_and_the_policy_that_were_asked_for() -> None:
    snapshot = a_cluster("pair", a_server("a", A, f"{A}:1-3"))
    facts = gather_facts(snapshot, Policy())
    assert gather_facts(snapshot, Policy()) is facts
    strict = gather_facts(snapshot, Policy(stall_seconds_max=1))
    assert strict.policy.stall_seconds_max == 1
    equal = replace(snapshot)
    assert gather_facts(equal, Policy()).snapshot is equal
