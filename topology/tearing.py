"""Whether two readings show one server without a reset or restart between them (finding U2)."""

from gtid import GtidSet
from topology.snapshot import ServerSnapshot


def sign_of_tearing(first: ServerSnapshot, last: ServerSnapshot) -> str | None:
    """Return what shows a reset, restart or change of the server between two readings, or None."""
    if not first.is_fully_read or not last.is_fully_read:
        return None
    if first.server_uuid != last.server_uuid:
        return f"server_uuid was {first.server_uuid} and then {last.server_uuid}"
    for reading in (first, last):
        if not _set(reading.gtid_purged) <= _set(reading.gtid_executed):
            beyond = _set(reading.gtid_purged) - _set(reading.gtid_executed)
            return f"gtid_purged holds {beyond}, which gtid_executed does not"
    if not _set(first.gtid_executed) <= _set(last.gtid_executed):
        shrunk = _set(first.gtid_executed) - _set(last.gtid_executed)
        return f"gtid_executed lost {shrunk} between the readings"
    before, after = first.uptime_seconds, last.uptime_seconds
    if before is not None and after is not None and after < before:
        return f"uptime fell from {before} to {after} seconds"
    return None


def _set(gtid_set: GtidSet | None) -> GtidSet:
    assert gtid_set is not None, "only servers with all facts are compared"
    return gtid_set
