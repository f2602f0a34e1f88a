"""The answers of sources, without servers: which check decides, and what follows an acceptance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GtidSet
from tests.hypothesis_profiles import laws
from tests.snapshots import A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Verdict
from topology.facts.refusal_texts import more_gtids_text, purged_text
from topology.facts.source_answer import FailedCheck, Outcome
from topology.handshake.matrix import HandshakeMatrix, handshake_matrix
from topology.handshake.offered_sets import OFFERED, answers_to_set
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.policy import Policy
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import (
    LogPosition,
    ServerSnapshot,
    ThreadState,
)
from topology.readings.version import ServerVersion

NEW, OLD, EIGHT = ServerVersion(9, 7, 4), ServerVersion(5, 6, 24), ServerVersion(8, 0, 36)
UUID_OF = {"a": A, "b": B, "c": C, "d": UUID("dddddddd-0000-0000-0000-000000000000")}


def sets(text: str) -> GtidSet:
    """Parse `a:1-3 b:1`, with letters for the servers' UUIDs."""
    parts = (part.partition(":") for part in text.split())
    return GtidSet.parse(",".join(f"{UUID_OF[name]}:{rest}" for name, _, rest in parts))


def one(name: str, executed: str, *, purged: str = "", **facts: Any) -> ServerSnapshot:
    made = a_server(name, UUID_OF[name], sets(executed))
    return replace(made, gtid_purged=sets(purged), **facts)


def matrix(*servers: ServerSnapshot, policy: Policy | None = None) -> HandshakeMatrix:
    snapshot = a_cluster("cluster", *servers)
    policy = policy or Policy()
    return handshake_matrix(snapshot, audit_cluster(snapshot, policy), policy)


def settings(**changed: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({"gtid_mode": "ON", **changed}.items()))


# -- one answer -----------------------------------------------------------------------------------


def test_equal_servers_serve_each_other() -> None:
    found = matrix(one("a", "a:1-3"), one("b", "a:1-3"))
    assert found.verdict is Verdict.OK
    assert all(each.attaches and not each.fetched for each in found.answers)


def test_what_is_missing_is_fetched() -> None:
    answer = matrix(one("a", "a:1-5"), one("b", "a:1-3")).answer(replica="b", source="a")
    assert (answer.outcome, answer.fetched) == (Outcome.SERVED, sets("a:4-5"))


def test_a_source_that_lost_its_own_refuses() -> None:
    found = matrix(one("a", "a:1-3"), one("b", "a:1-5"))
    answer = found.answer(replica="b", source="a")
    assert (answer.refusal, answer.gtid_set) == (FailedCheck.MORE_GTIDS, sets("a:4-5"))
    back = found.answer(replica="a", source="b")
    assert (back.outcome, back.dropped) == (Outcome.INCOMPLETE, sets("a:4-5"))
    assert found.verdict is Verdict.CRITICAL


def test_a_commit_under_way_is_not_lost() -> None:
    found = matrix(one("a", "a:1-3", gtid_owned=sets("a:4")), one("b", "a:1-4"))
    assert found.answer(replica="b", source="a").attaches


def test_a_source_that_purged_refuses_unless_the_relay_log_has_it() -> None:
    source = one("a", "a:1-5", purged="a:1-4")
    answer = matrix(source, one("b", "a:1-3")).answer(replica="b", source="a")
    assert (answer.refusal, answer.gtid_set) == (FailedCheck.PURGED, sets("a:4"))
    received = a_channel("a", A, gtid_retrieved=sets("a:4"))
    answer = matrix(source, one("b", "a:1-3", channels=(received,))).answer(replica="b", source="a")
    assert answer.attaches


def test_an_errant_transaction_is_hidden_and_an_allowed_one_is_not() -> None:
    pair = (one("a", "a:1-3"), one("b", "a:1-3 b:1"))
    answer = matrix(*pair).answer(replica="b", source="a")
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("b:1"))
    allowed = Policy(allowed_uuids=frozenset({B}))
    assert matrix(*pair, policy=allowed).answer(replica="b", source="a").attaches


def test_what_is_on_its_way_to_the_source_is_not_hidden() -> None:
    """b applies what it received from a; a stopped applier never will."""
    channel = a_channel("a", A, gtid_retrieved=sets("a:1-5"), applied_to=None)
    behind = one("b", "a:1-4", channels=(channel,))
    answer = matrix(one("a", "a:1-5"), behind).answer(replica="a", source="b")
    assert answer.refusal is None
    stopped = replace(channel, applier=ThreadState.STOPPED)
    answer = matrix(one("a", "a:1-5"), replace(behind, channels=(stopped,))).answer(
        replica="a", source="b"
    )
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("a:5"))


def test_what_is_only_likely_to_arrive_leaves_the_answer_open() -> None:
    """The receiver runs and received nothing between the readings (T3, likely)."""
    at = LogPosition.of(file="binlog.000003", position=4000)
    channel = a_channel("a", A, received_to=at, applied_to=at)
    behind = one("b", "a:1-4", channels=(channel,))
    answer = matrix(one("a", "a:1-5"), behind).answer(replica="a", source="b")
    assert (answer.outcome, answer.unread) == (
        Outcome.UNKNOWN,
        f"whether {A}:5 arrives on b",
    )


@pytest.mark.parametrize(
    ("source", "replica", "refusal"),
    [
        ({"settings": settings(log_bin="OFF")}, {}, FailedCheck.NO_BINARY_LOG),
        ({"settings": settings(gtid_mode="ON_PERMISSIVE")}, {}, FailedCheck.SOURCE_MODE),
        ({"server_id": 7}, {"server_id": 7}, FailedCheck.SAME_SERVER_ID),
        ({"server_id": 0}, {}, FailedCheck.NO_SERVER_ID),
        ({}, {"server_id": 0}, FailedCheck.NO_SERVER_ID),
        ({"server_uuid": B}, {}, FailedCheck.SAME_SERVER_UUID),
        ({"version": OLD}, {}, FailedCheck.VERSIONS),
        ({}, {"version": OLD}, FailedCheck.VERSIONS),
    ],
)
def test_settings_and_identity_refuse(
    source: dict[str, Any], replica: dict[str, Any], refusal: FailedCheck
) -> None:
    found = matrix(one("a", "a:1", **source), one("b", "a:1", **replica))
    assert found.answer(replica="b", source="a").refusal is refusal


def test_a_server_without_readings_or_settings_is_unknown() -> None:
    found = matrix(one("a", "a:1"), an_unread("b"))
    assert {each.outcome for each in found.answers} == {Outcome.UNKNOWN}
    assert [name for name, _ in found.unread] == ["b"]
    assert found.verdict is Verdict.UNKNOWN
    found = matrix(one("a", "a:1"), one("b", "a:1", settings=None, notable_settings=None))
    assert found.answer(replica="a", source="b").unread == "the settings of b"
    assert found.verdict is Verdict.UNKNOWN


def test_a_member_that_does_not_show_its_group_is_not_evaluated() -> None:
    group = GroupSnapshot("6a3e3b5e-0000-11ee-8000-000000000001", "ONLINE", "SECONDARY", GtidSet())
    found = matrix(one("a", "a:1-9"), one("b", "a:1-9", group=group))
    assert found.verdict is Verdict.UNKNOWN
    [(server, reason)] = found.unread
    assert (server, reason.partition(": ")[2]) == ("b", "b did not show the members of its group")


def test_what_the_source_has_received_is_told_from_what_it_never_gets() -> None:
    waiting = a_channel("b", B, gtid_retrieved=sets("b:1-4"), applier=ThreadState.STOPPED)
    found = matrix(one("a", "b:1-3", channels=(waiting,)), one("b", "b:1-4"))
    answer = found.answer(replica="b", source="a")
    assert answer.received == answer.gtid_set == sets("b:4")


numbers = st.frozensets(st.integers(1, 5))


@laws()
@given(numbers, numbers, numbers, numbers)
def test_the_answer_agrees_with_the_checks_of_the_server(
    has: frozenset[int], gone: frozenset[int], own: frozenset[int], other: frozenset[int]
) -> None:
    """Source: it lost `own - has`; purged is part of executed. Read from check_start_file."""
    purged = has & gone
    executed = {"a": has, "b": frozenset({1})}
    sent = {"a": own, "b": other}

    def as_set(numbers_of: dict[str, frozenset[int]]) -> GtidSet:
        texts = [
            f"{UUID_OF[name]}:{':'.join(map(str, sorted(ns)))}"
            for name, ns in numbers_of.items()
            if ns
        ]
        return GtidSet.parse(",".join(texts))

    source = replace(
        a_server("a", A, as_set(executed)), gtid_purged=as_set({"a": purged, "b": frozenset()})
    )
    answer = matrix(source, a_server("b", B, as_set(sent))).answer(replica="b", source="a")
    if own - has:
        assert answer.refusal is FailedCheck.MORE_GTIDS
    elif purged - own:
        assert answer.refusal is FailedCheck.PURGED
    elif other - {1}:
        assert answer.outcome is Outcome.DIVERGED
    elif 1 not in other:
        assert answer.outcome is Outcome.INCOMPLETE
    else:
        assert answer.outcome is Outcome.SERVED


# -- a set ----------------------------------------------------------------------------------------


def test_a_set_is_answered_by_every_server() -> None:
    servers = (one("a", "a:1-5", purged="a:1-3"), one("b", "a:1-5"), one("c", "a:1-5 c:1"))
    snapshot = a_cluster("cluster", *servers)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("a:1-2"))
    assert [(each.source, each.replica, each.refusal) for each in found.answers] == [
        ("a", OFFERED, FailedCheck.PURGED),
        ("b", OFFERED, None),
        ("c", OFFERED, None),
    ]
    assert found.verdict is Verdict.WARNING
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("c:1-2"))
    assert found.answers[2].refusal is FailedCheck.MORE_GTIDS


def test_what_may_still_be_delivered_is_a_doubt_about_an_offered_set() -> None:
    behind = one("b", "a:1-5", channels=(a_channel("a", A, gtid_retrieved=sets("a:1-5")),))
    snapshot = a_cluster("cluster", an_unread("a"), behind)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("a:1-6"))
    answer = found.answers[1]
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("a:6"))
    assert answer.doubts == ("they may still arrive on b from a (not read, or not evaluated)",)
    snapshot = a_cluster("cluster", one("a", "a:1-5"), behind)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("c:1"))
    assert [each.outcome for each in found.answers] == [Outcome.DIVERGED] * 2
    assert [each.doubts for each in found.answers] == [(), ()]


@pytest.mark.parametrize(("version", "is_doubted"), [(OLD, True), (EIGHT, False)])
def test_what_a_relay_log_of_5_6_does_not_list_is_a_doubt(
    version: ServerVersion, is_doubted: bool
) -> None:
    """The applier of b is not at the end of its relay log, whose last transaction no set lists."""
    stopped = a_channel(
        "a",
        A,
        receiver=ThreadState.STOPPED,
        gtid_retrieved=sets("a:1-4"),
        applier_state="System lock",
    )
    servers = (
        one("a", "a:1-6", version=version),
        one("b", "a:1-4", version=version, channels=(stopped,)),
        one("c", "a:1-4", version=version, channels=(a_channel("b", B),)),
    )
    snapshot = a_cluster("cluster", *servers)
    found = answers_to_set(snapshot, audit_cluster(snapshot), Policy(), sets("a:1-5"))
    for answer in found.answers[1:]:
        said = f"they may still arrive on {answer.source} from the relay log of b"
        is_said = any(doubt.startswith(said) for doubt in answer.doubts)
        assert (answer.outcome, is_said) == (Outcome.DIVERGED, is_doubted)


def test_a_server_whose_channels_were_not_read_may_get_what_is_extra() -> None:
    found = matrix(one("a", "a:1-5"), one("b", "a:1-4", channels=None))
    answer = found.answer(replica="a", source="b")
    assert (answer.outcome, answer.unread) == (Outcome.UNKNOWN, "the channels of b")


# -- promotion ------------------------------------------------------------------------------------


def test_a_promotion_lists_what_to_fetch_and_from_where() -> None:
    found = matrix(one("a", "a:1-5", purged="a:1-4"), one("b", "a:1-5 b:1"), one("c", "a:1-2"))
    promotion = promotion_of(found, "a")
    assert promotion.verdict is Verdict.WARNING
    assert [(each.gtid_set, each.donor) for each in promotion.missing] == [(sets("b:1"), "b")]
    assert [(each.answer.replica, each.donor) for each in promotion.obstacles] == [
        ("b", None),
        ("c", "b"),
    ]
    assert promotion.best == "b"
    assert promotion_of(found, "b").verdict is Verdict.OK
    assert promotion_of(found, "b").best is None


def test_a_server_whose_version_all_others_refuse_is_not_the_better_candidate() -> None:
    """It has more than they have, and yet none of them could follow it."""
    servers = (one("a", "a:1-9 c:1", version=OLD), one("b", "a:1-9"), one("c", "a:1-9"))
    assert promotion_of(matrix(*servers), "b").best is None
    newer = replace(servers[0], version=NEW)
    assert promotion_of(matrix(newer, *servers[1:]), "b").best == "a"


def test_no_candidate_is_better_that_loses_what_another_one_has() -> None:
    """b has purged what c lacks: c must be rebuilt. With c as the source, c:1-5 alone is left."""
    found = matrix(one("b", "a:1-10", purged="a:1-10"), one("c", "a:1-5"))
    assert promotion_of(found, "b").best is None
    promotion = promotion_of(found, "c")
    assert [(each.gtid_set, each.donor) for each in promotion.missing] == [(sets("a:6-10"), None)]
    assert promotion.best == "b"


def test_a_candidate_waits_for_what_it_fetches() -> None:
    servers = (one("a", "a:1-5"), one("b", "a:1-5 b:1"))
    promotion = promotion_of(matrix(*servers), "a")
    [fetch] = [
        step
        for step in promotion_steps(promotion, a_cluster("cluster", *servers))
        if "It misses" in step.what
    ]
    assert f"WAIT_FOR_EXECUTED_GTID_SET('{B}:1')" in fetch.statements[-1]


def test_a_promotion_that_strands_a_server_is_critical() -> None:
    found = matrix(
        one("a", "a:1-5", purged="a:1-4"), one("b", "a:1-5", purged="a:1-4"), one("c", "")
    )
    promotion = promotion_of(found, "a")
    assert promotion.verdict is Verdict.CRITICAL
    assert [(each.answer.replica, each.donor) for each in promotion.obstacles] == [("c", None)]


def test_a_promotion_with_an_unread_server_is_unknown() -> None:
    assert promotion_of(matrix(one("a", "a:1"), an_unread("b")), "a").verdict is Verdict.UNKNOWN
    with pytest.raises(KeyError):
        promotion_of(matrix(one("a", "a:1"), one("b", "a:1")), "z")


@pytest.mark.parametrize("applier", [ThreadState.RUNNING, ThreadState.STOPPED])
def test_nothing_is_pointed_while_a_relay_log_has_the_last_copy(applier: ThreadState) -> None:
    """a is gone; only the relay log of c has a:5: a change of its source would delete it."""
    received = a_channel("a", A, gtid_retrieved=sets("a:1-5"), applier=applier, applied_to=None)
    servers = (one("b", "a:1-4"), one("c", "a:1-4", channels=(received,)))
    found = matrix(*servers)
    answer = found.answer(replica="c", source="b")
    assert (answer.outcome, answer.gtid_set) == (Outcome.DIVERGED, sets("a:5"))
    for candidate in ("b", "c"):
        promotion = promotion_of(found, candidate)
        assert promotion.verdict in (Verdict.UNKNOWN, Verdict.CRITICAL)
        steps = promotion_steps(promotion, a_cluster("cluster", *servers))
        assert not any("CHANGE" in text for step in steps for text in step.statements)
        assert [step.server for step in steps] == ["", "a.example:3306", "c", ""]
        assert "This source was not read" in steps[1].what
        if applier is ThreadState.RUNNING:
            assert f"WAIT_FOR_EXECUTED_GTID_SET('{A}:5')" in steps[2].statements[0]
        else:
            assert steps[2].statements == (), "it would not end"
            assert "then start it on c: START REPLICA SQL_THREAD." in steps[2].what


def test_a_server_whose_obstacle_no_statement_clears_is_not_pointed() -> None:
    servers = (one("a", "a:1-3"), one("b", "a:1-5"), one("c", "a:1-3"))
    snapshot = a_cluster("cluster", *servers)
    steps = promotion_steps(promotion_of(matrix(*servers), "a"), snapshot)
    pointed = {step.server for step in steps if step.statements}
    assert pointed == {"c"}
    assert "Do not point it to a before the repair" in steps[-2].what


def test_the_steps_use_the_channels_addresses_and_the_words_of_each_version() -> None:
    channel = a_channel("inside-a", A)
    servers = (
        one("a", "a:1"),
        one("b", "a:1", channels=(channel,)),
        one("c", "a:1", version=EIGHT),
    )
    snapshot = a_cluster("cluster", *servers)
    found = handshake_matrix(snapshot, audit_cluster(snapshot), Policy())
    change = (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'inside-a.example', SOURCE_PORT = 3306,"
        " SOURCE_USER = '(account)', SOURCE_PASSWORD = '(password)', SOURCE_SSL = 1,"
        " SOURCE_AUTO_POSITION = 1;"
    )
    stop, versions, c = promotion_steps(promotion_of(found, "a"), snapshot)  # b follows a already
    assert "Stop all writes" in stop.what
    assert versions.what.startswith("A runs 9.7.4 and c 8.0.36: ")
    assert c.server == "c"
    assert c.statements == (
        "STOP REPLICA;",
        change,
        "START REPLICA;",
    )


OFF = (("log_replica_updates", "OFF"),)
FILTERED = a_channel("a", A, filters=("Replicate_Do_DB = d",))


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (
            {"settings": (("binlog_ignore_db", "d"),)},
            "B does not log all of its changes (binlog_ig",
        ),
        ({"settings": (("binlog_do_db", "d"),)}, "B does not log all of its changes (binlog_do_db"),
        ({"channels": (FILTERED,)}, "B does not apply all that it receives (Replicate_Do_DB = d)"),
        ({"channels": (a_channel("a", A),), "settings": OFF}, "B does not log what it receives"),
        ({"channels": (a_channel("a", A),)}, ""),
        ({"settings": OFF}, ""),  # it receives nothing
    ],
)
def test_what_a_candidate_leaves_out_is_a_warning(facts: dict[str, Any], said: str) -> None:
    servers = (one("a", "a:1"), one("b", "a:1", **facts))
    promotion = promotion_of(matrix(*servers), "b")
    steps = promotion_steps(promotion, a_cluster("cluster", *servers))
    assert promotion.verdict is (Verdict.WARNING if said else Verdict.OK)
    assert [step.server for step in steps if said and step.what.startswith(said)] == ["b"] * bool(
        said
    )


def test_a_source_that_is_not_one_of_the_servers_makes_the_answer_unknown() -> None:
    """Only it may have its last transactions."""
    gone = a_channel("x", C)
    servers = (one("a", "a:1", channels=(gone,)), one("b", "a:1", channels=(gone,)))
    found = matrix(*servers)
    assert found.unread == (
        ("x.example:3306", "it is the source of a, b, and is not one of these servers"),
    )
    assert found.verdict is promotion_of(found, "a").verdict is Verdict.UNKNOWN
    snapshot = a_cluster("cluster", *servers)
    declared = Policy(external_sources=frozenset({"x.example:3306"}))
    assert handshake_matrix(snapshot, audit_cluster(snapshot, declared), declared).unread == ()


def test_a_source_that_requires_tls_is_named_and_its_channels_get_it() -> None:
    channel = a_channel("a", A)
    servers = (
        one("a", "a:1"),
        one("b", "a:1", settings=(("require_secure_transport", "ON"),), channels=(channel,)),
        one("c", "a:1", channels=(channel,)),
    )
    snapshot = a_cluster("cluster", *servers)
    found = matrix(*servers)
    doubt = "b has require_secure_transport = ON: it refuses a channel without SOURCE_SSL = 1"
    assert [each for each in found.answer(replica="c", source="b").doubts if doubt in each]
    assert not found.answer(replica="c", source="a").doubts
    steps = promotion_steps(promotion_of(found, "b"), snapshot)
    [change] = [step.statements[1] for step in steps if step.server == "c" and step.statements]
    assert "SOURCE_PORT = 3306, SOURCE_SSL = 1, SOURCE_AUTO_POSITION = 1;" in change


def test_a_replica_that_is_connected_has_what_its_source_requires() -> None:
    channel = a_channel("a", A)
    tls = one("a", "a:1", settings=(("require_secure_transport", "ON"),))
    found = matrix(tls, one("b", "a:1", channels=(channel,)))
    assert not found.answer(replica="b", source="a").doubts


def test_a_server_without_a_channel_needs_an_account_and_the_candidate_is_detached() -> None:
    channel = a_channel("a", A)
    servers = (
        one("a", "a:1"),
        one("b", "a:1", channels=(channel,), settings=(("read_only", "ON"),)),
        one("c", "a:1", channels=(channel,)),
    )
    snapshot = a_cluster("cluster", *servers)
    _, a, c, b = promotion_steps(promotion_of(matrix(*servers), "b"), snapshot)
    assert "It has no channel: put in the account" in a.what
    assert "SOURCE_USER = '(account)', SOURCE_PASSWORD = '(password)'," in a.statements[1]
    assert "account" not in c.what + "".join(c.statements)
    assert (b.server, b.statements) == (
        "b",
        ("STOP REPLICA;", "RESET REPLICA ALL;", "SET GLOBAL read_only = OFF;"),
    )
    assert "Detach it from its former source" in b.what


def test_without_a_version_a_step_has_no_statement() -> None:
    """The statements of another version would fail, or do something else."""
    channel = a_channel("a", A)
    servers = (
        one("a", "a:1", version=None),
        one("b", "a:1", version=None, channels=(channel,)),
        one("c", "a:1-2", channels=(channel,)),
    )
    snapshot = a_cluster("cluster", *servers)
    steps = promotion_steps(promotion_of(matrix(*servers), "b"), snapshot)
    without = [step for step in steps if step.what.endswith("audit the servers again.")]
    assert {step.server for step in without} >= {"a", "b"}
    assert not any(step.statements for step in steps if step.server in ("a", "b"))


def test_without_a_version_a_wait_has_no_statement() -> None:
    channel = a_channel("a", A, gtid_retrieved=sets("a:1-2"))
    servers = (one("a", "a:1-2"), one("b", "a:1", version=None, channels=(channel,)))
    snapshot = a_cluster("cluster", *servers)
    steps = promotion_steps(promotion_of(matrix(*servers), "b"), snapshot)
    waits = [step for step in steps if step.server == "b" and "Wait until it has" in step.what]
    assert [step.statements for step in waits] == [()]


# -- texts ----------------------------------------------------------------------------------------


def test_texts_of_versions_that_were_not_seen_say_so() -> None:
    assert more_gtids_text(NEW, NEW).seen_on == "9.7.4"
    assert more_gtids_text(OLD, OLD).seen_on == "5.6.24"
    assert more_gtids_text(EIGHT, EIGHT).seen_on is None
    assert more_gtids_text(OLD, NEW).seen_on is None


def test_the_sets_of_a_purged_text_are_printed_as_the_server_prints_them() -> None:
    both = purged_text(NEW, NEW, sent=sets("a:1 b:1"), missing=sets("a:2"))
    assert f"'{A}:1,\n{B}:1', and the missing transactions are '{A}:2'" in both.text
    assert (both.errno, both.seen_on) == (13114, "9.7.4")
    old = purged_text(OLD, OLD, sent=sets("a:1"), missing=sets("a:2"))
    assert old.errno == 1236
    assert str(A) not in old.text
    master = purged_text(EIGHT, EIGHT, sent=sets("a:1"), missing=sets("a:2"))
    assert "because the master purged" in master.text
    assert master.text.startswith("Got fatal error 1236 from master")
