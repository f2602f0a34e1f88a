"""Whether two readings show one server without a reset or restart between them (finding U2)."""

from topology.readings.snapshot import ReadServer


def sign_of_tearing(first: ReadServer, last: ReadServer) -> str | None:
    """Return what shows a reset, restart or change of the server between two readings, or None."""
    if first.server_uuid != last.server_uuid:
        return f"server_uuid was {first.server_uuid} and then {last.server_uuid}"
    for reading in (first, last):
        if not reading.gtid_purged <= reading.gtid_executed:
            beyond = reading.gtid_purged - reading.gtid_executed
            return f"gtid_purged holds {beyond}, which gtid_executed does not"
    if not first.gtid_executed <= last.gtid_executed:
        shrunk = first.gtid_executed - last.gtid_executed
        return f"gtid_executed lost {shrunk} between the readings"
    before, after = first.uptime_seconds, last.uptime_seconds
    if before is not None and after is not None and after < before:
        return f"uptime fell from {before} to {after} seconds"
    return None
