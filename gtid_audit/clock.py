"""The only clock of the application. Tests put their own in its place."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the time, in UTC."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Return seconds that never go back, for durations."""
    return time.monotonic()
