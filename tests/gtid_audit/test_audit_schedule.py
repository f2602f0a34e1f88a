"""Which cluster is audited when: exhaustively small fleets, and histories that Hypothesis makes."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid_audit.service.audit_schedule import JITTER, AuditSchedule, Turn

INTERVAL = 60.0


def schedule_of(
    servers: dict[str, int], *, connections_max: int = 4, seed: int = 1
) -> AuditSchedule:
    schedule = AuditSchedule(
        interval_seconds=INTERVAL, connections_max=connections_max, dice=random.Random(seed)
    )
    schedule.set_fleet(servers, changed=frozenset(), connections_max=connections_max, now=0.0)
    return schedule


def take_all(schedule: AuditSchedule, now: float) -> list[Turn]:
    turns = []
    while (turn := schedule.take(now)) is not None:
        turns.append(turn)
    return turns


def names(turns: list[Turn]) -> list[str]:
    return [each.cluster for each in turns]


def test_first_audits_begin_at_once_within_the_connections() -> None:
    schedule = schedule_of({"a": 2, "b": 2, "c": 2})
    turns = take_all(schedule, 0.0)
    assert names(turns) == ["a", "b"]
    assert schedule.seconds_until_due(0.0) is None, "c waits for an end, not for a time"
    schedule.ended(turns[0], now=1.0, is_slow=False)
    assert names(take_all(schedule, 1.0)) == ["c"]


def test_the_interval_counts_from_the_begin_and_has_jitter() -> None:
    begins = []
    schedule = schedule_of({"a": 2})
    now = 0.0
    for _ in range(50):
        turn = schedule.take(now)
        assert turn is not None
        begins.append(now)
        schedule.ended(turn, now=now + 5, is_slow=False)
        pause = schedule.seconds_until_due(now + 5)
        assert pause is not None
        now += 5 + pause
    pauses = [later - earlier for earlier, later in pairwise(begins)]
    assert 5 <= pauses[0] <= INTERVAL, "a random part of the interval"
    assert all(abs(each - INTERVAL) <= JITTER * INTERVAL + 1e-6 for each in pauses[1:])
    assert len({round(each, 3) for each in pauses}) > 40


def test_clusters_that_begin_together_do_not_stay_together() -> None:
    schedule = schedule_of({f"c{number}": 1 for number in range(100)}, connections_max=100)
    for turn in take_all(schedule, 0.0):
        schedule.ended(turn, now=0.1, is_slow=False)
    tenths = [len(take_all(schedule, INTERVAL * part / 10)) for part in range(1, 11)]
    assert sum(tenths) == 100
    assert all(3 <= each <= 20 for each in tenths), tenths


def test_an_audit_that_takes_longer_than_the_interval_is_due_at_its_end() -> None:
    schedule = schedule_of({"a": 1})
    [turn] = take_all(schedule, 0.0)
    schedule.ended(turn, now=300.0, is_slow=False)
    assert names(take_all(schedule, 300.0)) == ["a"]


def test_hung_clusters_leave_half_of_the_connections_to_the_others() -> None:
    servers = {**{f"hung{number}": 2 for number in range(8)}, "a": 2, "b": 2}
    schedule = schedule_of(servers, connections_max=4)
    seen: set[str] = set()
    now = 0.0
    while seen != servers.keys():  # the first audits show which ones hang
        turns = take_all(schedule, now)
        seen |= set(names(turns))
        now += 1
        for turn in turns:
            schedule.ended(turn, now=now, is_slow=turn.cluster.startswith("hung"))
    later = now + 3 * INTERVAL  # all are due again
    turns = take_all(schedule, later)
    assert sum(each.cluster.startswith("hung") for each in turns) == 1
    assert {"a", "b"} & set(names(turns))
    [healthy] = [each for each in turns if not each.cluster.startswith("hung")]
    schedule.ended(healthy, now=later + 1, is_slow=False)
    [other] = {"a", "b"} - {healthy.cluster}
    assert names(take_all(schedule, later + 1)) == [other], "the hung ones go on waiting"


def test_a_cluster_that_answers_again_is_not_slow_any_more() -> None:
    schedule = schedule_of({"a": 4, "b": 1}, connections_max=4)
    [turn] = take_all(schedule, 0.0)
    schedule.ended(turn, now=1.0, is_slow=True)
    [b] = take_all(schedule, 1.0)
    schedule.ended(b, now=2.0, is_slow=False)
    now = 200.0
    turns = take_all(schedule, now)
    assert "a" not in names(turns) or len(turns) == 1, "a takes all connections"
    for each in turns:
        schedule.ended(each, now=now, is_slow=False)


def test_a_fleet_is_replaced_while_audits_run() -> None:
    schedule = schedule_of({"a": 2, "b": 2, "c": 2})
    a, b = take_all(schedule, 0.0)
    schedule.set_fleet(
        {"b": 2, "c": 2, "d": 1}, changed=frozenset({"b"}), connections_max=4, now=1.0
    )
    assert take_all(schedule, 1.0) == [], "a and b still have their connections"
    schedule.ended(a, now=2.0, is_slow=False)
    assert names(take_all(schedule, 2.0)) == ["c"]
    schedule.ended(b, now=3.0, is_slow=False)
    assert set(names(take_all(schedule, 3.0))) <= {"b", "d"}
    assert "a" not in names(take_all(schedule, 1000.0))


def test_a_cluster_that_changed_is_due_at_once() -> None:
    schedule = schedule_of({"a": 1})
    [turn] = take_all(schedule, 0.0)
    schedule.ended(turn, now=1.0, is_slow=False)
    schedule.set_fleet({"a": 3}, changed=frozenset({"a"}), connections_max=4, now=1.5)
    [again] = take_all(schedule, 1.5)
    assert again.connections == 3
    schedule.set_fleet({"a": 2}, changed=frozenset({"a"}), connections_max=4, now=2.0)
    schedule.ended(again, now=3.0, is_slow=False)
    assert names(take_all(schedule, 3.0)) == ["a"], "what was read then is not the cluster of now"


@given(
    servers=st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 6), min_size=1),
    connections_max=st.integers(1, 6),
    steps=st.lists(
        st.tuples(st.sampled_from(["take", "end", "wait", "fleet"]), st.integers(0, 7)),
        max_size=60,
    ),
    seed=st.integers(0, 10),
)
def test_connections_are_never_exceeded_and_every_cluster_gets_its_turn(
    servers: dict[str, int], connections_max: int, steps: list[tuple[str, int]], seed: int
) -> None:
    schedule = schedule_of(servers, connections_max=connections_max, seed=seed)
    running: list[Turn] = []
    now = 0.0
    for what, number in steps:
        if what == "take" and (turn := schedule.take(now)) is not None:
            assert turn.cluster not in {each.cluster for each in running}
            running.append(turn)
        elif what == "end" and running:
            turn = running.pop(number % len(running))
            schedule.ended(turn, now=now, is_slow=number % 2 == 1)
        elif what == "wait":
            now += 10.0 * number
        elif what == "fleet":
            changed = frozenset(list(servers)[:number])
            schedule.set_fleet(servers, changed=changed, connections_max=connections_max, now=now)
        assert sum(each.connections for each in running) <= connections_max
        assert sum(each.slow_connections for each in running) <= max(connections_max // 2, 1)
    for turn in running:
        schedule.ended(turn, now=now, is_slow=True)
    seen: set[str] = set()
    for _ in range(100):
        now += INTERVAL / 4
        for turn in take_all(schedule, now):
            seen.add(turn.cluster)
            schedule.ended(turn, now=now, is_slow=True)
    assert seen == servers.keys()


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_connection_is_enough(count: int) -> None:
    schedule = schedule_of({f"c{number}": 3 for number in range(count)}, connections_max=1)
    for number in range(count):
        [turn] = take_all(schedule, float(number))
        assert turn.connections == 1
        schedule.ended(turn, now=number + 0.5, is_slow=True)
