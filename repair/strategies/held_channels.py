"""What a manual instruction must not do on the way: start what is held back, or fill a hole.

How it works
------------
Many settings take effect only while a thread is stopped, or after a restart. The statements that
start it again would also start

* an applier that an operator stopped, or started with UNTIL, before a transaction that must not be
  applied (A7);
* every other channel of the server, if the statement names none.

So these statements start what runs now, channel by channel, and nothing else; and a restart is
announced with what it would start.

With auto-position a source sends all that a replica misses, also what its channel was moved past
(H1, H8): after later transactions, so an older row replaces a newer one. And it refuses the replica
if it has purged some of it (P1, H3). What was planned for such a finding decides that, so no
instruction switches the channel before.
"""

from collections.abc import Sequence

from gtid import GtidSet
from repair.model.replication_model import Model, ModelChannel, ModelServer
from repair.sql.channel_queries import for_channel
from repair.strategies.instruction_context import Situation, in_order
from topology.readings.dialect import dialect_of


def held(server: ModelServer | None) -> tuple[ModelChannel, ...]:
    """Return the channels that were stopped, or will stop, without an error."""
    channels = () if server is None else server.channels
    return tuple(each for each in channels if not each.running and not each.is_stuck)


def while_appliers_stand(situation: Situation, change: str, then: str = "") -> str:
    """Return the statements that change a setting while the appliers of the replica are stopped.

    `then` follows them, before the note on what they do not start.
    """
    words = situation.dialect
    replica = situation.model.servers.get(situation.finding.replica or "")
    stop, start = f"{words.stop_replica} SQL_THREAD", f"{words.start_replica} SQL_THREAD"
    if replica is None or all(each.running for each in replica.channels):
        return in_order(stop, change, start) + then
    starts = [
        f"{start}{for_channel(words, each.name)}" for each in replica.channels if each.running
    ]
    statements = in_order(*((stop,) if starts else ()), change, *starts)
    return f"{statements}{then}{_not_started(replica)}"


def while_channel_stands(situation: Situation, change: str, then: str = "") -> str:
    """Return the same for the channel of the finding, whose receiver reads the setting."""
    words, where = situation.dialect, situation.channel
    replica = situation.model.servers.get(situation.finding.replica or "")
    stop, start = f"{words.stop_replica}{where}", f"{words.start_replica}{where}"
    channel = next(
        (each for each in held(replica) if each.name == (situation.finding.channel or "")), None
    )
    if channel is None or replica is None:
        return in_order(stop, change, start) + then
    starts = (f"{words.start_replica} IO_THREAD{where}",) if channel.is_connected else ()
    return f"{in_order(stop, change, *starts)}{then}{_not_started(replica)}"


def restarting(name: str | None, model: Model) -> str:
    """Return what to do before a restart of a server that would start a channel; "" if none."""
    server = model.servers.get(name or "")
    if server is None or not held(server):
        return ""
    option = dialect_of(server.version).skip_replica_start
    return (
        f"a restart also starts {_named(held(server))} of {server.name}, stopped now (see A7):"
        f" decide about it first, or set {option} = ON in the configuration file of"
        f" {server.name}. Then "
    )


def before_auto_position(situation: Situation) -> str:
    """Return what has to be repaired before the replica uses auto-position; "" if nothing has.

    What waits in its relay logs is applied before the switch, so what a channel was moved past
    arrives after it. Before 5.7, sets do not show the last transaction that a channel received.
    """
    model = situation.model
    replica = model.servers.get(situation.finding.replica or "")
    channels = () if replica is None else replica.channels
    if replica is None or not channels:
        return ""
    texts = []
    applied_before = GtidSet.union_of((replica.executed, *(each.retrieved for each in channels)))
    for channel in channels:
        source = model.servers.get(channel.source or "")
        if channel.auto_position:
            continue
        if source is None:
            texts.append(
                "gtid-audit did not read its source: audit the two together first, because"
                " auto-position also brings what the channel was moved past"
            )
            continue
        waiting = channel.retrieved - channel.passed - channel.bypassed
        missing = source.executed - replica.executed - waiting
        late = missing & (applied_before.filled() | channel.bypassed)
        gone = source.purged - replica.executed - waiting
        texts += _refused(source.name, gone) if gone else _late(source.name, late)
    return "; ".join(texts)


def _refused(source: str, gone: GtidSet) -> list[str]:
    return [f"{source} has purged {gone.shortened()}, and would refuse the connection (1236)"]


def _late(source: str, late: GtidSet) -> list[str]:
    text = (
        f"{source} would then send {late.shortened()}, which the channel was moved past, and it"
        " would be applied after later transactions: an older row may replace a newer one, and all"
        " sets are equal afterwards"
    )
    return [text] if late else []


def _not_started(replica: ModelServer) -> str:
    return (
        f". This does not start {_named(held(replica))}, stopped now (see A7): decide about it"
        " first"
        if held(replica)
        else ""
    )


def _named(channels: Sequence[ModelChannel]) -> str:
    names = ", ".join(each.name or "(default)" for each in channels)
    return f"the applier of channel {names}" if len(channels) == 1 else f"the channels {names}"
