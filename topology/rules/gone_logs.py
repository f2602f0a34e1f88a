"""Binary log files that a server lists but no longer has: deleted from disk, not by PURGE.

SHOW BINARY LOGS prints 0 bytes for a file that cannot be opened (seen on 9.7.4); every existing log
has a header. gtid_purged does not have the contents of that file, so no set shows that the server
cannot send it. A receiver that needs it stops with 1236.
"""

from topology.readings.snapshot import ServerSnapshot


def gone_logs_text(source: ServerSnapshot, *, replica: str) -> str:
    """Explain what a source can no longer send; "" if it has all files that it lists."""
    gone = source.gone_logs
    if not gone:
        return ""
    what = gone[0] if len(gone) == 1 else f"{len(gone)} files, the first {gone[0]},"
    return (
        f" {source.name} cannot open {what} of its binary logs (SHOW BINARY LOGS prints 0 bytes):"
        f" if {replica} needs transactions from there, it is refused with error 1236, although"
        " gtid_purged does not have them."
    )
