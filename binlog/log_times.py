"""Times in logs as dates: microseconds since 1970, as a server or damaged bytes have them.

A commit timestamp is a number in the GTID event, and can be after the year 9999, where Python has
no date. Such a time is shown as that number. In JSON, where a date is expected, it is null.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECONDS: Final = 1_000_000


def moment(microseconds: int) -> datetime | None:
    """Return the date; None if it is outside the years 1 to 9999."""
    try:
        return EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None


def moment_text(microseconds: int, *, form: str) -> str:
    """Return the date in a `strftime` format, or the number."""
    at = moment(microseconds)
    if at is None:
        return f"{microseconds:,} µs after 1970 (no date)"
    return f"{at:{form}}"
