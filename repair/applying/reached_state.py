"""Compares a server after a step with the state in which the simulation of that step ended.

1. Replication goes on while a plan is applied: a server may have more GTIDs than the simulation,
   and may have purged more. It must not have fewer, and no channel may differ.
2. What has not arrived yet is no difference while the channels of the server run: the caller reads
   again, up to a limit.
3. A script checks its own goal on its own server. This comparison also covers the servers below it,
   which the script cannot query.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from gtid import GtidSet
from repair.scripts.steps import ExpectedState
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot


@dataclass(frozen=True, slots=True)
class ReachedState:
    """What one server has, and does not have, of the state that a step should end in."""

    server: str
    arriving: GtidSet  # not executed yet, while its channels run
    differences: tuple[str, ...]  # each with the expected and the actual state
    delay_seconds: int = 0  # the largest SOURCE_DELAY of its channels


def reached(
    before: ExpectedState,
    after: ExpectedState,
    seen: ServerSnapshot,
    names: Mapping[UUID, str],
) -> ReachedState:
    """Compare the reading of a server with the simulated state before and after a step.

    `names` has the servers of the plan by their UUID.
    """
    assert before.server == after.server == seen.name, "one server"
    if seen.gtid_executed is None or seen.gtid_purged is None or seen.channels is None:
        why = "; ".join(f"{each.fact}: {each.detail}" for each in seen.unread)
        return ReachedState(seen.name, GtidSet(), (f"it could not be read: {why}",))
    found = list(_channel_differences(after, seen.channels, names))
    added = GtidSet.parse(after.gtid_purged) - GtidSet.parse(before.gtid_purged)
    if not added <= seen.gtid_purged:
        found.append(
            f"gtid_purged: expected to contain {added.shortened()}, found"
            f" {seen.gtid_purged.shortened()}"
        )
    missing = GtidSet.parse(after.gtid_executed) - seen.gtid_executed
    may_arrive = any(each.is_on for each in seen.channels) and not found
    if missing and not may_arrive:
        found.append(
            f"gtid_executed: {missing.shortened()} is missing; expected"
            f" {GtidSet.parse(after.gtid_executed).shortened()}, found"
            f" {seen.gtid_executed.shortened()}"
        )
    return ReachedState(
        seen.name,
        missing if may_arrive else GtidSet(),
        tuple(found),
        max((each.delay_seconds for each in seen.channels), default=0),
    )


def _channel_differences(
    after: ExpectedState, channels: tuple[ChannelSnapshot, ...], names: Mapping[UUID, str]
) -> Iterator[str]:
    seen = {each.name: each for each in channels}
    expected = {each.name: each for each in after.replication}
    for name, channel in seen.items():
        if name not in expected:
            yield (
                f"channel {name!r} from {channel.source_host}:{channel.source_port} was added: the"
                " plan does not know it"
            )
    for name, wanted in expected.items():
        channel_seen = seen.get(name)
        if channel_seen is None:
            yield f"channel: expected {wanted}, found none"
            continue
        source = names.get(channel_seen.source_uuid) if channel_seen.source_uuid else None
        # A source that was not read has no UUID in the plan: the guards of scripts compare it.
        is_same_source = channel_seen.source_uuid is None or source in (
            wanted.source,
            None if wanted.source not in names.values() else wanted.source,
        )
        as_wanted = (channel_seen.auto_position, channel_seen.is_on) == (
            wanted.auto_position,
            wanted.running,
        )
        if not (is_same_source and as_wanted):
            yield f"channel: expected {wanted}, found {_words(channel_seen, source)}"


def _words(channel: ChannelSnapshot, source: str | None) -> str:
    """Return the state of a channel as it was read, with the errors that stopped it."""
    errors = [
        f"error {number}: {text}"
        for number, text in (
            (channel.receiver_errno, channel.receiver_error),
            (channel.applier_errno, channel.applier_error),
        )
        if number
    ]
    where = source or f"{channel.source_host}:{channel.source_port}"
    position = "on" if channel.auto_position else "off"
    state = "running" if channel.is_on else "stopped"
    found = f"{channel.name!r} from {where}, auto-position {position}, {state}"
    return "; ".join((found, *errors))
