"""Decides which servers' starts an audit compares contents after: cheap to ask, and to import.

1. Reused numbers follow a lost tail, and a tail is lost when a server stops without warning. So an
   audit looks behind every start since its last look at the server, and at every one of the last
   day besides: what was found stays in sight that long.
2. Whoever has no memory of a last look (`pair`, an audit without --out, a server not seen before)
   has the last day.
3. How long a server is up is measured by its own clock, how long ago it was looked at by ours: a
   clock that was set anew with the server hides no start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from topology.contents import ContentReading
from topology.snapshot import ClusterSnapshot, ServerSnapshot

RECENT: Final = timedelta(hours=24)
# Uptimes are in whole seconds, and counted from early in a server's start.
_SLACK: Final = timedelta(seconds=2)
_NEVER: Final[Mapping[UUID, datetime]] = {}


@dataclass(frozen=True, slots=True)
class Looked:
    """What came of a look at the contents of a cluster, or of two servers."""

    reading: ContentReading | None  # None if no two servers were compared
    # Servers with a start that could not be looked behind, and another time may be.
    look_again: frozenset[str] = frozenset()


def looked_back(
    snapshot: ClusterSnapshot, chosen: bool | None, seen: Mapping[UUID, datetime] = _NEVER
) -> dict[str, timedelta | None]:
    """Return how far back the starts of which servers are looked at; None: as far as the logs go.

    Args:
        snapshot: the cluster as it was just read.
        chosen: --content or --no-content; None if neither was given.
        seen: by server_uuid, when the starts of a server were last looked at, by our clock.
    """
    if chosen is False:
        return {}
    servers = [server for server in snapshot.last if server.is_judgeable]
    if chosen:
        return {server.name: None for server in servers}
    return {server.name: back for server in servers if (back := _since_start(server, seen))}


def _since_start(server: ServerSnapshot, seen: Mapping[UUID, datetime]) -> timedelta | None:
    """Return how far back to look if the server has started since then."""
    assert server.server_uuid is not None, "only judgeable servers are asked about"
    if server.uptime_seconds is None:
        return None  # which the audit says
    back = RECENT
    if server.server_uuid in seen:
        back = max(back, server.read_ended - seen[server.server_uuid] + _SLACK)
    return back if timedelta(seconds=server.uptime_seconds) < back else None
