"""The applier of a member of a replication group, in the terms of a channel's applier."""

from collections.abc import Iterator
from dataclasses import replace

from gtid import GtidSet
from topology.facts.applier_facts import ApplierFacts, waits_of
from topology.facts.applier_movement import at_work
from topology.readings.group_view import (
    DELIVERED_TO,
    GROUP_APPLIER,
    GROUP_RECOVERY,
    GroupSnapshot,
)
from topology.readings.snapshot import ChannelSnapshot, ReadServer, ServerSnapshot, ThreadState


def group_applier_facts(first: ReadServer, last: ReadServer) -> ApplierFacts:
    """Compute the facts of the applier of a member of a replication group.

    Its queue has no positions, and no counter skips anything of it. Nothing counts as passed.
    """
    before, after = (_group_channel(each) for each in (first, last))
    executed = last.gtid_executed
    applied = (executed - first.gtid_executed) & after.gtid_retrieved
    return ApplierFacts(
        channel=after,
        passed=GtidSet(),
        passed_is_proved=False,
        backlog=after.gtid_retrieved - executed,
        overtaken=GtidSet(),
        is_same=True,
        is_started=False,
        moved=bool(applied) or at_work(before) != at_work(after),
        is_delayed=False,
        waits=tuple(waits_of(after, before, last)),
    )


def failed_channels(server: ServerSnapshot) -> Iterator[ChannelSnapshot]:
    """Yield the channels of a server that left its group because a worker failed.

    A member is not ONLINE after such an error. Afterwards the workers keep it.
    """
    group = server.group
    if group is None or group.member_state == "ONLINE":
        return
    for name, workers in (
        (GROUP_APPLIER, group.workers),
        (GROUP_RECOVERY, group.recovery_workers),
    ):
        failed = next((each for each in workers if each.errno), None)
        if failed is not None:
            yield replace(
                _channel_of(group),
                name=name,
                applier=ThreadState.STOPPED,
                applier_errno=failed.errno,
                workers=workers,
            )


def _group_channel(server: ReadServer) -> ChannelSnapshot:
    assert server.group is not None, "the caller asked for members"
    return _channel_of(server.group)


def _channel_of(group: GroupSnapshot) -> ChannelSnapshot:
    """Return the queue of a member in the form of a channel; SHOW REPLICA STATUS has none of it."""
    runs = ThreadState.RUNNING if group.member_state in DELIVERED_TO else ThreadState.STOPPED
    return ChannelSnapshot(
        name=GROUP_APPLIER,
        source_host="",
        source_port=0,
        source_uuid=None,
        auto_position=True,
        gtid_retrieved=group.received,
        receiver=runs,
        receiver_errno=0,
        receiver_error="",
        receiver_error_at="",
        applier=runs,
        applier_errno=0,
        applier_error="",
        applier_error_at="",
        received_to=None,
        applied_to=None,
        lag_seconds=None,
        workers=group.workers,
        last_applied=GtidSet.union_of(each.last_applied for each in group.workers),
    )
