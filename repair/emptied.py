"""A server whose gtid_executed is empty although it is a replica: it is left alone.

`reset_and_purge` empties gtid_executed for a moment. If its script is interrupted there, the data
is on the server and no set shows it: a channel that is started then fetches the whole history, and
applies it to rows that are there. A new replica, whose data is empty as well, looks the same, so
nothing is planned for either.
"""

from collections.abc import Iterator

from repair.actions import Action, AutoPositionOn, StartChannel
from repair.model import Model, ModelServer


def nothing_on_an_emptied_server(before: Model, _after: Model, action: Action) -> Iterator[str]:
    """Refuse every action on a replica that has executed nothing, while its source has.

    A channel from such a server is not started either: its set comes back first.
    """
    server = before[action.server]
    if is_emptied(server, before):
        yield (
            f"gtid_executed of {server.name} is empty, and its channels do not run: if a"
            " reset_and_purge script stopped there, run that script again, which holds the whole"
            " set; started now, the channel would apply the whole history again. A new and empty"
            " replica is started by hand"
        )
    if isinstance(action, StartChannel | AutoPositionOn):
        channel = server.channel(action.channel)
        source = before.servers.get(channel.source or "") if channel is not None else None
        if source is not None and is_emptied(source, before):
            yield (
                f"gtid_executed of {source.name}, its source, is empty: if a reset_and_purge script"
                " stopped there, run that script again first"
            )


def is_emptied(server: ModelServer, model: Model) -> bool:
    """Return whether a replica holds nothing, a channel of it is stopped, and it may be sent all.

    Its source may hold nothing yet in the model and be the next to receive: what is refused behind
    a step of a plan must be refused before it as well.
    """
    return not server.executed and any(
        not channel.running and channel.source is not None and channel.source in model.servers
        for channel in server.channels
    )
