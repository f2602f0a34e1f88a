"""Guards of a script that starts a channel: it was not started since, nothing came before.

Both are about what happened between the plan and its script. Rows alone do not show it: a row may
have been changed and changed back.
"""

from collections.abc import Iterator

from gtid import GtidSet
from repair.actions import StartChannel
from repair.dialect import ChannelQuestions
from repair.guard import Guard
from repair.procedure import Setting
from repair.script import GNO_MAX, commits_nothing, literal, some_executed
from topology.snapshot import ThreadState


def not_halted(action: StartChannel, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that an operator did not start the channel and let it stand since: UNTIL, STOP.

    No table shows the condition of START REPLICA UNTIL. It leaves the receiver running; and what
    waited is executed in part. An applier that an error stopped has another guard.
    """
    name, arriving = action.server, setting.arriving
    channels = setting.seen[name].channels or ()
    seen = next(each for each in channels if each.name == action.channel)
    if seen.applier is not ThreadState.STOPPED:
        return
    stands = [
        *([asks.only_receives] if seen.receiver is ThreadState.STOPPED else []),
        *([some_executed(arriving)] if arriving and len(channels) == 1 else []),
    ]
    if stands:
        yield Guard(
            f"IFNULL({asks.runs}, FALSE) OR NOT ({' OR '.join(stands)})",
            f"{name}: the channel was started since the plan was made, and stands again (UNTIL, or"
            " STOP): an operator may want that; nothing was changed; audit and plan again",
        )


def writes_nothing(action: StartChannel, setting: Setting) -> Iterator[Guard]:
    """Require that no transaction may have met the rows that were compared, or come before them.

    A row that looks as before may have been changed and changed back. Until the first of the
    waiting transactions is applied nothing else may have been executed either: not with a tag, and
    not under the UUID of another server, unless another channel brings it.
    """
    server, reading = setting.server, setting.seen[action.server]
    if not (action.in_order or action.rows):
        return
    yield commits_nothing(server.name, server.server_uuid, reading.gtid_executed)
    if not action.waiting:
        return
    brought = (
        GtidSet.parse(f"{each.source_uuid}:1-{GNO_MAX}")
        for each in reading.channels or ()
        if each.name != action.channel and each.source_uuid is not None
    )
    known = GtidSet.union_of(
        (reading.gtid_executed or GtidSet(), server.executed, action.waiting, *brought)
    )
    yield Guard(
        f"GTID_SUBSET(@@GLOBAL.gtid_executed, {literal(known)}) OR {some_executed(action.waiting)}",
        f"{server.name}: it has executed transactions that the plan did not see, and what waits may"
        " be older than their rows; nothing was changed; audit and plan again",
    )
