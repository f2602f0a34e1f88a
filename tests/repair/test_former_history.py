"""A channel that its source refused with "more GTIDs": the source may have given them again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from repair.model.initial_model import start_model
from repair.model.replication_model import ModelServer
from repair.model.strategy_case import LogEvidence
from repair.strategies.starting import start_channel
from tests.repair.build import channel, gtids, model, server, snapshot_of
from tests.repair.cases import a_case, a_finding, proposed, reason
from topology.audit_cluster import audit_cluster
from topology.readings.history_evidence import CommitRecord, HistoryEvidence


@pytest.mark.parametrize(
    ("text", "is_former"),
    [
        ("", False),
        ("Replica has more GTIDs than the source has, using the source's SERVER_UUID.", True),
        ("Slave has more GTIDs than the master has, using the master's SERVER_UUID.", True),
        ("Binary log is not open", False),
    ],
)
def test_the_refusal_of_a_source_makes_what_was_received_doubtful(
    text: str, is_former: bool
) -> None:
    snapshot = snapshot_of(model(server("a", "a:1-9"), server("b", "a:1-3", channel("a"))))
    last = tuple(
        replace(
            each,
            channels=tuple(
                replace(one, receiver_errno=13114 if text else 0, receiver_error=text)
                for one in each.channels or ()
            ),
        )
        for each in snapshot.last
    )
    snapshot = replace(snapshot, last=last)
    started = start_model(snapshot, audit_cluster(snapshot), LogEvidence())
    assert [each.may_be_former for each in started["b"].channels] == [is_former]


def test_a_channel_is_not_started_where_gtids_may_have_been_given_again() -> None:
    former = channel("a", runs=False)
    common = server("b", "a:1-3", former).with_channel("", may_be_former=True)
    servers = model(server("a", "a:1-9"), common)
    stopped = a_finding("A7", "a:4-9")
    case = replace(a_case(servers, stopped), is_chosen=False)
    assert "may be other transactions" in reason(start_channel(case))
    assert proposed(start_channel(replace(case, is_chosen=True))).actions
    nothing = server("b", "b:1", former).with_channel("", may_be_former=True)
    case = replace(a_case(model(server("a", "a:1-9"), nothing), stopped), is_chosen=False)
    assert proposed(start_channel(case)).actions


def signs(*, by_hand: str = "", is_lost: bool = False, is_former: bool = False) -> ModelServer:
    return server("b", "a:1-3 a:5", channel("a", runs=False)).with_channel(
        "", by_hand=gtids(by_hand), is_loss_shown=is_lost, may_be_former=is_former
    )


def test_the_reason_has_only_the_causes_that_the_logs_leave() -> None:
    stopped = a_finding("A7", "a:4-9")
    lost, by_hand = "a has lost, or reset, transactions", "committed by hand on b"
    for b, words, absent in (
        (signs(by_hand="a:5"), (":5 was committed by hand on b", "Compare the rows"), (lost,)),
        (signs(is_former=True), (lost, f"or they were {by_hand}"), ()),
        (signs(is_former=True, is_lost=True), (lost,), (by_hand,)),
    ):
        case = replace(a_case(model(server("a", "a:1-9"), b), stopped), is_chosen=False)
        why = reason(start_channel(case))
        assert all(each in why for each in words)
        assert not any(each in why for each in absent)
        chosen = proposed(start_channel(replace(case, is_chosen=True)))
        assert any(words[0] in each for each in chosen.warnings)
    case = a_case(model(server("a", "a:1-9"), signs()), stopped)
    assert proposed(start_channel(replace(case, is_chosen=False))).actions


def commit(number: int, server_id: int, at: int = 0) -> CommitRecord:
    moment = datetime(2026, 1, 1, 11, tzinfo=UTC) + timedelta(seconds=at)
    return CommitRecord(gtids(f"a:{number}"), server_id, moment, True)


@pytest.mark.parametrize(
    ("on_b", "by_hand", "is_former", "is_lost"),
    [
        ((commit(3, 1), commit(5, 1)), "", False, False),
        ((commit(3, 1), commit(5, 2, 9)), "a:5", False, False),
        ((commit(5, 2, 9),), "a:5", True, False),  # below it nothing was read
        ((commit(3, 1), commit(5, 1, 9)), "", True, True),  # a committed it twice
        ((commit(3, 1, 9), commit(5, 2, 9)), "a:5", True, True),
    ],
)
def test_the_logs_show_whether_a_session_or_the_source_made_two_of_one(
    on_b: tuple[CommitRecord, ...], by_hand: str, *, is_former: bool, is_lost: bool
) -> None:
    made = replace(channel("a", runs=False), retrieved=gtids("a:4-6"))
    snapshot = snapshot_of(model(server("a", "a:1-9"), server("b", "a:1-3 a:5", made)))
    logs = {"a": (commit(3, 1), commit(5, 1)), "b": on_b}
    last = tuple(
        replace(each, history_evidence=HistoryEvidence(None, logs[each.name]))
        for each in snapshot.last
    )
    snapshot = replace(snapshot, last=last)
    [found] = start_model(snapshot, audit_cluster(snapshot), LogEvidence())["b"].channels
    assert found.by_hand == gtids(by_hand)
    assert (found.may_be_former, found.is_loss_shown) == (is_former, is_lost)


def test_one_refused_receiver_makes_all_receivers_of_its_source_doubtful() -> None:
    text = "Replica has more GTIDs than the source has, using the source's SERVER_UUID."
    servers = model(
        server("a", "a:1-9"),
        server("b", "a:1-3", channel("a")),
        server("c", "a:1-3", channel("a", runs=False)),
        server("d", "a:1-3", channel("c")),
    )
    snapshot = snapshot_of(servers)
    last = tuple(
        replace(
            each,
            channels=tuple(
                replace(one, receiver_errno=13114, receiver_error=text)
                for one in each.channels or ()
            ),
        )
        if each.name == "b"
        else each
        for each in snapshot.last
    )
    started = start_model(replace(snapshot, last=last), audit_cluster(snapshot), LogEvidence())
    doubtful = [
        each.name
        for each in started.servers.values()
        if any(one.may_be_former for one in each.channels)
    ]
    assert doubtful == ["b", "c"]


def test_what_waits_and_is_not_on_the_source_is_not_applied_unasked() -> None:
    """The source was replaced: its replica has what the former one sent, and no other server does."""
    former = channel("a", runs=False)
    stopped = a_finding("A7", "a:4-9")
    for executed, is_refused in (("b:1", True), ("b:1 c:1-2", False)):
        b = server("b", executed, former).with_channel(
            "", may_be_former=True, orphaned=gtids("c:1-2")
        )
        case = replace(a_case(model(server("a", "a:1-9"), b), stopped), is_chosen=False)
        if is_refused:
            assert "may be the last copy" in reason(start_channel(case))
            assert proposed(start_channel(replace(case, is_chosen=True))).actions
        else:
            assert proposed(start_channel(case)).actions


@pytest.mark.parametrize(
    ("executed", "second", "is_refused"),
    [
        ("", ("c",), True),
        ("c:1-2", ("c",), False),  # applied already: what b sends was compared
        ("", (), False),  # a single path: what matches on b matches on d
    ],
)
def test_a_former_history_is_not_brought_beside_what_replaced_it(
    executed: str, second: tuple[str, ...], is_refused: bool
) -> None:
    """b has yet to apply what a no longer has, and d receives over c what a has now."""
    b = server("b", executed, channel("a")).with_channel(
        "", may_be_former=True, orphaned=gtids("c:1-2")
    )
    paths = [channel("b", runs=False), *(channel(each, name=f"from_{each}") for each in second)]
    servers = model(
        server("a", "a:1-9"), b, server("c", "a:1-9", channel("a")), server("d", "a:1-9", *paths)
    )
    stopped = a_finding("A7", "a:4-9", source="b", replica="d")
    case = replace(a_case(servers, stopped), is_chosen=False)
    if is_refused:
        assert "belongs to a former history. d receives over several" in reason(start_channel(case))
        done = proposed(start_channel(replace(case, is_chosen=True)))
        assert any("belongs to a former history" in each for each in done.warnings)
    else:
        assert "belongs to a former history" not in repr(start_channel(case))


def test_what_waits_around_a_start_of_the_source_is_started_only_if_that_is_selected() -> None:
    waits = replace(channel("a", runs=False), around_start=gtids("a:4-5"))
    servers = model(server("a", "a:1-9"), server("b", "a:1-3", waits))
    case = replace(a_case(servers, a_finding("A7", "a:4-9")), is_chosen=False)
    assert "whether it was shut down in order" in reason(start_channel(case))
    done = proposed(start_channel(replace(case, is_chosen=True)))
    assert done.actions
    assert any("the relay log of b has the former ones" in each for each in done.warnings)


def test_nothing_is_started_unasked_above_a_server_that_was_torn() -> None:
    waits = replace(server("b", "a:1-3", channel("a", runs=False)), torn_below="d")
    case = replace(
        a_case(model(server("a", "a:1-9"), waits), a_finding("A7", "a:4-9")), is_chosen=False
    )
    assert "d receives what b applies" in reason(start_channel(case))
    assert proposed(start_channel(replace(case, is_chosen=True))).actions


def test_nothing_is_started_unasked_beside_a_channel_that_skips_above() -> None:
    two = (channel("a", runs=False), replace(channel("c"), name="two"))
    for skips in (True, False):
        servers = model(
            server("a", "a:1-9"),
            replace(server("c", "a:1-3", channel("a")), skips_next=skips),
            replace(server("b", "a:1-3"), channels=two),
        )
        case = replace(a_case(servers, a_finding("A7", "a:4-9")), is_chosen=False)
        if skips:
            assert "c, which sends b the same transactions" in reason(start_channel(case))
        else:
            assert proposed(start_channel(case)).actions
