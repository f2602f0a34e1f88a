"""A server whose gtid_executed is empty although it has a history: no step changes it.

`reset_and_purge` empties gtid_executed for a moment. If its script is interrupted there, the data
is on the server and no set shows it. A channel that is started then fetches the whole history, and
applies it to rows that already exist. A new replica, whose data is empty as well, looks the same,
so nothing is planned for either.

A source without channels is recognized by its replicas, which have GTIDs of its server_uuid. If a
client wrote on it now, its next commits would take GTIDs that the replicas have. The script that
holds the whole set would then refuse to run.

An empty transaction has the same effect on that script. It is refused as well if the channel is on
but has no connection: it waits for its source, or the source is about to refuse it. Such a channel
has fetched nothing since, and the script is still the only place that has the whole set.
"""

from collections.abc import Iterator

from repair.model.actions import Action, AppendPurged, AutoPositionOn, InjectEmpty, StartChannel
from repair.model.replication_model import Model, ModelServer
from topology.readings.dialect import dialect_of


def nothing_on_an_emptied_server(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Refuse every action on a replica that has executed nothing, while its source has.

    No channel from such a server is started either: its set must be restored first.
    """
    server = before[action.server]
    if is_emptied(server, before):
        yield (
            f"gtid_executed of {server.name} is empty, and its channels do not run: if a"
            " reset_and_purge script stopped there, run that script again: it has the whole set."
            " If the channel were started now, it would apply the whole history again. Start a"
            " new, empty replica by hand"
        )
    elif isinstance(action, InjectEmpty | AppendPurged) and _waits_for_a_source(server, before):
        yield (
            f"gtid_executed of {server.name} is empty, and a channel of it is not connected: if a"
            " reset_and_purge script stopped there, stop the channel and run that script again: it"
            " has the whole set, and refuses to run behind an empty transaction. When the channel"
            " connects, it applies the whole history again"
        )
    if holders := _have_its_gtids(server, before):
        yield (
            f"gtid_executed of {server.name} is empty, and {', '.join(holders)} has transactions"
            " of it: if a reset_and_purge script stopped there, run that script again: it has the"
            f" whole set. Until then let no client write to {server.name}"
        )
    if isinstance(action, StartChannel | AutoPositionOn):
        channel = server.channel(action.channel)
        source = before.servers.get(channel.source or "") if channel is not None else None
        if source is not None and (is_emptied(source, before) or _have_its_gtids(source, before)):
            yield (
                f"gtid_executed of {source.name}, its source, is empty: if a reset_and_purge script"
                " stopped there, run that script again first"
            )


def _have_its_gtids(server: ModelServer, model: Model) -> list[str]:
    """Return the servers with GTIDs of one that has none, where only a reset restores a set."""
    if server.executed or dialect_of(server.version).has_purged_append:
        return []
    return [
        other.name
        for other in model.servers.values()
        if other.executed.from_uuid(server.server_uuid)
    ]


def _waits_for_a_source(server: ModelServer, model: Model) -> bool:
    """Return whether a replica has executed nothing and cannot have been sent anything since."""
    return not server.executed and any(
        not channel.is_connected and channel.source in model.servers for channel in server.channels
    )


def is_emptied(server: ModelServer, model: Model) -> bool:
    """Return whether a replica has executed nothing, has a stopped channel, and may be sent all.

    In the model, its source may also be empty and receive next. What is refused after a step of a
    plan must be refused before it as well.
    """
    return not server.executed and any(
        not channel.running and channel.source is not None and channel.source in model.servers
        for channel in server.channels
    )
