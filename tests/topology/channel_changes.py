"""Changes of one fact of all channels of a server, by name; see fact_changes.py."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from gtid import GtidSet
from tests.topology.fact_changes import STRANGER, Change, Seen, executed_by, highest_of
from topology.readings.snapshot import ChannelSnapshot, LogPosition, ServerSnapshot, ThreadState
from topology.readings.worker import ROW_LOCK_RETRY, WorkerSnapshot

_SECOND = timedelta(seconds=1)


def _channels(make: Callable[[ChannelSnapshot, ServerSnapshot, Seen], Mapping[str, Any]]) -> Change:
    def change(server: ServerSnapshot, seen: Seen) -> ServerSnapshot:
        if server.channels is None:
            return server
        made = (replace(each, **make(each, server, seen)) for each in server.channels)
        return replace(server, channels=tuple(made))

    return change


def _always(**facts: Any) -> Change:
    return _channels(lambda _channel, _server, _seen: facts)


def _missing(server: ServerSnapshot, seen: Seen) -> GtidSet:
    return seen.everything - executed_by(server)


def _worker(server: ServerSnapshot, seen: Seen, **facts: Any) -> Mapping[str, Any]:
    """Return a worker at the first missing transaction, or at the one of `last`."""
    applying = _missing(server, seen).first(1)
    return {"workers": (replace(WorkerSnapshot(1, applying, 0, ""), **facts),)}


_IDLE = "Waiting for an event from Coordinator"
_READ_ALL = "Replica has read all relay log; waiting for more updates"
_EARLY = LogPosition.of(file="binlog.000001", position=4)
_LATE = LogPosition.of(file="binlog.000099", position=4)

OF_CHANNELS: Mapping[str, Change] = {
    "auto-position off": _always(auto_position=False),
    "auto-position on": _always(auto_position=True),
    "never connected": _always(source_uuid=None, source_server_id=None, received_to=None),
    "source_uuid of a stranger": _always(source_uuid=STRANGER),
    "source at another address": _always(source_host="elsewhere", source_port=3307),
    "source_server_id 4711": _always(source_server_id=4711),
    "source_server_id unknown": _always(source_server_id=None),
    "source_server_id of the next": _channels(
        lambda _c, s, seen: {"source_server_id": seen.next_of(s).server_id}
    ),
    "retrieved: nothing": _always(gtid_retrieved=GtidSet()),
    "retrieved: everything": _channels(lambda _c, _s, seen: {"gtid_retrieved": seen.everything}),
    "retrieved: all missing": _channels(
        lambda c, s, seen: {"gtid_retrieved": c.gtid_retrieved | _missing(s, seen)}
    ),
    "retrieved: with a hole": _channels(
        lambda _c, _s, seen: {
            "gtid_retrieved": seen.everything.first(1) | highest_of(seen.everything)
        }
    ),
    "receiver running": _always(receiver=ThreadState.RUNNING, receiver_errno=0, receiver_error=""),
    "receiver connecting": _always(receiver=ThreadState.CONNECTING),
    "receiver stopped": _always(receiver=ThreadState.STOPPED),
    "receiver cannot connect": _always(
        receiver=ThreadState.CONNECTING, receiver_errno=2003, receiver_error="error connecting"
    ),
    "receiver failed": _always(
        receiver=ThreadState.STOPPED,
        receiver_errno=13114,
        receiver_error="Got fatal error 1236 from source when reading data from binary log",
    ),
    "receiver error without a number": _always(receiver_error="odd"),
    "applier running": _always(applier=ThreadState.RUNNING, applier_errno=0, applier_error=""),
    "applier stopped": _always(applier=ThreadState.STOPPED),
    "applier error without a number": _always(applier=ThreadState.STOPPED, applier_error="odd"),
    **{
        f"applier failed with {errno}": _always(
            applier=ThreadState.STOPPED, applier_errno=errno, applier_error="it says why"
        )
        for errno in (1032, 1062, 1146, 1756)
    },
    "has read all": _always(applier_state=_READ_ALL, workers=()),
    "has read all, an idle worker": _always(
        applier_state=_READ_ALL, workers=(WorkerSnapshot(1, GtidSet(), 0, "", state=_IDLE),)
    ),
    "a worker at the first missing": _channels(
        lambda _c, s, seen: _worker(s, seen, state="Executing event", applying_seconds=5)
    ),
    "a worker at it for two minutes": _channels(
        lambda _c, s, seen: _worker(s, seen, state="Executing event", applying_seconds=120)
    ),
    "a worker waits for a lock": _channels(
        lambda _c, s, seen: _worker(
            s, seen, state="Waiting for table metadata lock", applying_seconds=120
        )
    ),
    "a worker waits for a lock, no age": _channels(
        lambda _c, s, seen: _worker(s, seen, state="Waiting for table metadata lock")
    ),
    "a worker tries a row lock again": _channels(
        lambda _c, s, seen: _worker(
            s, seen, state=f"Executing event, {ROW_LOCK_RETRY}", applying_seconds=99
        )
    ),
    "a worker waits for semi-sync": _channels(
        lambda _c, s, seen: _worker(
            s, seen, state="Waiting for semi-sync ACK from replica", applying_seconds=99
        )
    ),
    "a worker waits for a GTID": _channels(
        lambda _c, s, seen: _worker(
            s, seen, applying=GtidSet(), state="Waiting for GTID to be committed"
        )
    ),
    "a worker failed": _channels(
        lambda _c, s, seen: _worker(s, seen, errno=1062, error="duplicate")
    ),
    "a worker applied the highest last": _channels(
        lambda _c, s, seen: _worker(
            s,
            seen,
            applying=GtidSet(),
            state=_IDLE,
            last_applied=highest_of(seen.everything).first(1),
        )
    ),
    "applier state delayed": _always(
        applier_state="Waiting until SOURCE_DELAY seconds after source executed event",
        delay_seconds=60,
        delay_remaining_seconds=30,
    ),
    **{f"delay {seconds}": _always(delay_seconds=seconds) for seconds in (60, 110, 111)},
    "applier waits for a lock": _always(applier_state="Waiting for global read lock", workers=()),
    "received_to early": _always(received_to=_EARLY),
    "received_to late": _always(received_to=_LATE),
    "received_to unknown": _always(received_to=None),
    "applied_to early": _always(applied_to=_EARLY),
    "applied_to late": _always(applied_to=_LATE),
    "applied_to unknown": _always(applied_to=None),
    "relay log applied to a place": _always(relay_applied_to=_EARLY),
    "lag 0": _always(lag_seconds=0),
    "lag 100": _always(lag_seconds=100),
    "lag unknown": _always(lag_seconds=None),
    "until": _always(until="SQL_BEFORE_GTIDS"),
    "skip counter": _always(skip_counter=1),
    "ignores the next": _channels(
        lambda _c, s, seen: {"ignored_server_ids": (seen.next_of(s).server_id or 0,)}
    ),
    "ignores itself": _channels(lambda _c, s, _seen: {"ignored_server_ids": (s.server_id or 0,)}),
    "queued the highest last": _channels(
        lambda _c, s, seen: {
            "last_queued": highest_of(seen.everything).first(1),
            "last_queued_committed_at": s.read_ended - 60 * _SECOND,
        }
    ),
    "applied the highest last": _channels(
        lambda _c, _s, seen: {"last_applied": highest_of(seen.everything).first(1)}
    ),
    "another name": _channels(lambda c, _s, _seen: {"name": f"other {c.name}"}),
    "from an address outside too": lambda server, _seen: replace(
        server,
        channels=tuple(made for each in server.channels or () for made in (each, _outside(each))),
    ),
    "from the next too": lambda server, seen: replace(
        server,
        channels=tuple(
            made
            for each in server.channels or ()
            for made in (each, _from(seen.next_of(server), each))
        ),
    ),
}


def _outside(like: ChannelSnapshot) -> ChannelSnapshot:
    return replace(like, name=f"x {like.name}", source_host="x", source_uuid=STRANGER)


def _from(source: ServerSnapshot, like: ChannelSnapshot) -> ChannelSnapshot:
    return replace(
        like,
        name=f"second {like.name}",
        source_host=source.host,
        source_port=source.port,
        source_uuid=source.server_uuid,
    )
