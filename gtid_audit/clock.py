"""The only clock of the application. Tests replace it."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the current time, in UTC."""
    return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Return seconds that never decrease, for measuring durations."""
    return time.monotonic()
