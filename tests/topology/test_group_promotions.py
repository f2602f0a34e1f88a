"""Promotions with a replication group, without servers: who joins, who is pointed, what is lost."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from tests.snapshots import A, B, C, a_channel, a_cluster
from tests.topology.test_group_handshake import (
    BOOTSTRAP,
    JOIN,
    REPLICA,
    THREE,
    TWO,
    UUID_OF,
    D,
    left,
    matrix,
    member,
    promoted,
    server,
    sets,
    with_two_contents,
)
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import Severity, Verdict
from topology.handshake.promotion import promotion_of
from topology.handshake.promotion_steps import promotion_steps
from topology.readings.group_view import GroupMember, GroupSnapshot
from topology.readings.snapshot import ThreadState
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot


def test_a_secondary_becomes_primary_with_one_statement_and_members_are_not_pointed() -> None:
    promotion, steps = promoted("b", *THREE)
    assert promotion.verdict is Verdict.OK
    [step] = steps
    assert (step.server, step.statements) == (
        "b",
        (f"SELECT group_replication_set_as_primary('{B}');",),
    )


def test_the_primary_is_the_primary_already() -> None:
    promotion, [step] = promoted("a", *THREE)
    assert (promotion.verdict, step.statements) == (Verdict.OK, ())
    assert "is the primary" in step.what


def test_of_several_primaries_none_changes() -> None:
    promotion, [step] = promoted("b", *(member(name, "g:1-9", primaries="abc") for name in "abc"))
    assert (promotion.verdict, step.statements) == (Verdict.OK, ())
    assert "Every member" in step.what


def test_an_old_version_has_no_statement_for_it() -> None:
    old = ServerVersion(8, 0, 12)
    _, [step] = promoted("b", *(member(name, "g:1-9", version=old) for name in "abc"))
    assert (step.statements, "group_replication_member_weight" in step.what) == ((), True)


def test_a_channel_of_the_primary_is_stopped_before_it_changes() -> None:
    runs = a_channel("d", D, name="from_d")
    stopped = replace(runs, name="idle", receiver=ThreadState.STOPPED, applier=ThreadState.STOPPED)
    primary = member("a", "g:1-9", channels=(runs, stopped))
    _, steps = promoted("b", primary, *THREE[1:], server("d", "g:1-9"))
    assert [step.statements for step in steps if step.server == "a"] == [
        ("STOP REPLICA FOR CHANNEL 'from_d';",)
    ]


def test_a_replica_outside_is_pointed_to_the_new_primary() -> None:
    promotion, steps = promoted("b", *THREE, REPLICA)
    assert promotion.verdict is Verdict.OK
    assert [step.server for step in steps] == ["", "b", "d"]
    assert "CHANGE REPLICATION SOURCE TO SOURCE_HOST = 'b.example'" in steps[-1].statements[1]


def test_a_server_that_left_has_to_join_before_it_is_primary() -> None:
    promotion, steps = promoted("c", *TWO, left("c", "g:1-9"))
    assert promotion.verdict is Verdict.WARNING
    assert [step.statements for step in steps] == [
        JOIN,
        (f"SELECT group_replication_set_as_primary('{C}');",),
    ]
    gone = member("c", "g:1-9", sees="c", state="ERROR")
    _, steps = promoted("b", *TWO, gone)
    assert [(step.server, step.statements) for step in steps][1:] == [
        ("c", ("STOP GROUP_REPLICATION;", "START GROUP_REPLICATION;"))
    ]


def test_a_server_that_the_group_refuses_is_not_promoted() -> None:
    servers = (*TWO, left("c", "g:1-5 c:1"))
    promotion, [step] = promoted("c", *servers)
    assert (promotion.verdict, promotion.missing) == (Verdict.CRITICAL, ())
    assert (step.server, step.statements) == ("c", ())
    assert "the group refuses this server (3092)" in step.what
    # Promoting another member leaves it out, with what only it has.
    promotion, steps = promoted("b", *servers)
    assert promotion.verdict is Verdict.CRITICAL
    assert [(each.gtid_set, each.donor) for each in promotion.missing] == [(sets("c:1"), None)]
    assert not any(step.statements for step in steps if step.server == "c")
    assert promotion.best is None


def test_a_server_that_needs_purged_transactions_fetches_them_outside_the_group() -> None:
    servers = (
        member("a", "g:1-9", sees="ab", purged="g:1-8"),
        member("b", "g:1-9", sees="ab", purged="g:1-8"),
        left("c", "g:1-5"),
    )
    promotion, steps = promoted("b", *servers)
    assert promotion.verdict is Verdict.CRITICAL
    assert ["clone of a member" in step.what for step in steps if step.server == "c"] == [True]
    promotion, steps = promoted("b", *servers, REPLICA)
    assert promotion.verdict is Verdict.WARNING
    [fetches, joins] = [step.statements for step in steps if step.server == "c"]
    assert "SOURCE_HOST = 'd.example'" in fetches[1]
    assert joins == JOIN


def test_without_any_member_the_candidate_bootstraps_the_group() -> None:
    promotion, steps = promoted("c", left("b", "g:1-5"), left("c", "g:1-9"))
    assert promotion.verdict is Verdict.WARNING
    assert [(step.server, step.statements) for step in steps] == [("c", BOOTSTRAP), ("b", JOIN)]


def test_a_group_that_follows_a_server_outside_has_one_channel_on_its_primary() -> None:
    promotion, steps = promoted("d", *THREE, REPLICA)
    assert promotion.verdict is Verdict.OK
    assert [step.server for step in steps] == ["", "a", "d"]
    assert "SOURCE_HOST = 'd.example'" in steps[1].statements[1]
    # What the primary would be refused for is one obstacle, not one for each member.
    purged = server("d", "g:1-9 d:1-5", purged="d:1-3")
    assert [each.answer.replica for each in promoted("d", *THREE, purged)[0].obstacles] == ["a"]


def test_two_groups_are_linked_by_a_channel_between_primaries() -> None:
    """The second group has a name of its own; its primary receives for its other members."""
    name = str(UUID(int=8))
    view = tuple(
        GroupMember(UUID_OF[each], f"{each}.example", 3306, "ONLINE", role)
        for each, role in (("c", "PRIMARY"), ("d", "SECONDARY"))
    )
    second = tuple(
        server(
            each.host[0],
            "g:1-9",
            group=GroupSnapshot(name, "ONLINE", each.role, sets("g:1-9"), view),
            settings=(("gtid_mode", "ON"), ("group_replication_group_name", name)),
            channels=(a_channel("a", A),) if each.role == "PRIMARY" else (),
        )
        for each in view
    )
    found = matrix(*TWO, *second)
    assert found.verdict is Verdict.OK
    assert found.answer(replica="d", source="b").through == "c"
    assert found.answer(replica="b", source="c").through == "a"
    assert found.answer(replica="d", source="c").group == name


def test_a_server_with_another_content_neither_joins_nor_becomes_a_source() -> None:
    """The group was bootstrapped from b while a, which had more, was away."""
    outside = server("d", "g:1-9")
    snapshot = a_cluster(
        "cluster", left("a", "g:1-9"), member("b", "g:1-9", sees="b", primaries="b"), outside
    )
    promotion = promotion_of(with_two_contents(snapshot), "a")
    assert promotion.is_kept_out
    steps = promotion_steps(promotion, snapshot)
    assert any("Do not let it join the group before the repair" in step.what for step in steps)
    assert not any(step.statements for step in steps if step.server in ("a", "d"))
    assert not promotion_of(matrix(*snapshot.last), "a").is_kept_out


def test_a_server_that_left_by_an_error_accepts_clients_again() -> None:
    gone = member("c", "g:1-9", sees="c", state="ERROR")
    _, steps = promoted("c", *TWO, gone)
    assert steps[-1].statements == ("SET GLOBAL offline_mode = OFF;",)
    _, steps = promoted("c", *TWO, left("c", "g:1-9"))
    assert not any("offline_mode" in text for step in steps for text in step.statements)


@pytest.mark.parametrize("errno", [0, 1062])
def test_what_recovery_is_to_bring_does_not_arrive_behind_a_failed_worker(errno: int) -> None:
    """Recovery begins again after each error, so it moves, and never ends."""
    worker = WorkerSnapshot(1, sets("g:6") if errno else sets(""), errno, "a text" if errno else "")
    joining = member("c", "g:1-5", state="RECOVERING", received="g:1-6")
    assert joining.group is not None
    group = replace(joining.group, recovery_workers=(worker,))
    first = replace(joining, gtid_executed=sets("g:1-4"))
    snapshot = a_cluster("cluster", *THREE[:2], replace(joining, group=group))
    snapshot = replace(snapshot, first=(*snapshot.first[:2], replace(first, group=group, phase=1)))
    [found] = [each for each in audit_cluster(snapshot).findings if each.code == "T3"]
    assert (found.severity is Severity.INFO) is not bool(errno)
    assert bool(found.strategies) is not bool(errno)
    assert ("does not arrive by itself" in found.explanation) is bool(errno)
