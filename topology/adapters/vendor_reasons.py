"""Adds a vendor's reason to a fact that its service does not give.

Only where the server refused a fact or does not have it. A server that did not answer in time, or
whose answer cannot be parsed, has another cause.
"""

from dataclasses import replace
from typing import Final

from topology.readings.snapshot import UnreadFact, UnreadReason
from topology.readings.vendors import Vendor, reason_of

_NOT_GIVEN: Final = frozenset(
    {UnreadReason.PRIVILEGE, UnreadReason.UNSUPPORTED, UnreadReason.ERROR}
)


def with_vendor_reason(vendor: Vendor | None, fact: UnreadFact) -> UnreadFact:
    """Return an unread fact with the vendor's reason after the server's own message."""
    reason = reason_of(vendor, fact.fact)
    if not reason or fact.reason not in _NOT_GIVEN:
        return fact
    return replace(fact, detail=f"{fact.detail} ({reason})")
