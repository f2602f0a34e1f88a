"""Decides whether an audit compares the content of transactions: cheap to ask, and to import.

Reused numbers follow a lost tail, and a tail is lost when a server stops without warning. Without
--content or --no-content a server is looked at if it started within the last day: an audit every
night then looks at every start once.
"""

from datetime import timedelta
from typing import Final

from topology.snapshot import ClusterSnapshot, ServerSnapshot

RECENT: Final = timedelta(hours=24)


def is_content_due(snapshot: ClusterSnapshot, chosen: bool | None) -> bool:
    """Tell whether --content (None: neither it nor --no-content) asks for a comparison here."""
    if chosen is not None:
        return chosen
    return any(started_recently(server) for server in snapshot.last)


def started_recently(server: ServerSnapshot) -> bool:
    """Tell whether a server that was read started within RECENT."""
    uptime = server.uptime_seconds
    return server.is_judgeable and uptime is not None and uptime < RECENT.total_seconds()
