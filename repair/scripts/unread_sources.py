"""Warnings about what a channel delivers, or its source refuses, that no reading shows.

With auto-position a source refuses a replica that has GTIDs of the source's own server_uuid which
the source does not have (error 1236). The model has only the GTIDs of servers that were read. Of a
relay log it has only what the server lists as received.
"""

from collections.abc import Iterator

from repair.model.actions import AutoPositionOn, ResetAndPurge, StartChannel
from repair.model.replication_model import upstream
from repair.scripts.procedure import Setting
from topology.facts.applier_facts import may_end_uncounted
from topology.facts.unseen import address_of


def reconnections(action: ResetAndPurge, setting: Setting) -> Iterator[str]:
    """Yield which receivers reconnect to a server that was not read.

    A source may no longer accept a receiver that is still connected, because the source may have
    been reset since.
    """
    for name in action.restart:
        if setting.known(name).source not in setting.before.servers:
            yield (
                f"the receiver of {action.server} connects again to"
                f" {address_of(setting.channel(name))}, which was not read and may refuse it (error"
                " 1236): add that server to the audit"
            )


def unknown_mode(action: AutoPositionOn | StartChannel, setting: Setting) -> Iterator[str]:
    """Yield a warning that a source with unread settings may refuse auto-position (13117)."""
    channel = setting.known(action.channel)
    source = setting.before.servers.get(channel.source or "")
    asks_by_sets = isinstance(action, AutoPositionOn) or channel.auto_position
    if source is not None and asks_by_sets and not source.are_settings_known:
        yield (
            f"the settings of {source.name} were not read: unless gtid_mode is ON there, it refuses"
            f" the receiver of {action.server} when this script starts it (error 13117)"
        )


def uncounted(action: StartChannel, setting: Setting) -> Iterator[str]:
    """Yield a warning that a relay log may hold a transaction of a former history in no set.

    What the source still has is planned and compared as missing. What it lost since, by a reset or
    a crash, is not visible anywhere.
    """
    name, channel = action.server, setting.channel(action.channel)
    source = setting.known(action.channel).source
    if source is not None and may_end_uncounted(setting.seen[name], channel):
        reset = setting.dialect.reset_binary_logs_and_gtids
        yield (
            f"MySQL before 5.7 does not count the last transaction that was in a relay log when its"
            f" receiver connected: {name} executes it. If {source} lost it since"
            f" ({reset}, a crash, a clone), it is errant on {name} afterwards (E1, E3 or E6; C2"
            " where a server with its server_id drops it)"
        )


def sent_besides(action: AutoPositionOn, setting: Setting) -> Iterator[str]:
    """Yield the other channels that deliver GTIDs that this channel's source may not have.

    With a file position the source compares nothing when the receiver connects.
    """
    here, source = action.server, setting.known(action.channel).source
    if source is None or setting.known(action.channel).auto_position:
        return
    others = [(here, each) for each in setting.channels(here) if each.name != action.channel]
    sources = {each.source for each in setting.server.channels if each.name != action.channel}
    beside = {each for each in sources if each is not None and each in setting.before.servers}
    above = beside.union(*(upstream(setting.before, each) for each in beside)) - {here}
    others += [(name, each) for name in sorted(above) for each in setting.channels(name)]
    for name, each in others:
        known = setting.before[name].channel(each.name)
        if known is not None and known.source not in setting.before.servers:
            yield (
                f"{address_of(each)}, from which {name} replicates, was not read: if it sends GTIDs"
                f" of {source} that {source} does not have, {source} then refuses the receiver of"
                f" {here} (error 1236)"
            )
