"""Binary log files that a server no longer has although it did not purge them: deleted by hand.

1. SHOW BINARY LOGS prints 0 bytes for a file that it cannot open (seen on 9.7.4 and 5.6.24); an
   existing one has a header. A receiver that needs it stops with 1236.
2. If the line of binlog.index was removed as well, the numbers of the logs have a gap. A receiver
   passes over it without an error: what the log had never arrives.

gtid_purged does not have the contents of these files, so no set shows that the server cannot send
them. Where a search of the logs found what is due, they are of no importance.

And what is gone with a source that was not read: then a relay log may have the last copy.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.unlisted_events import unlisted_events
from topology.facts.unlogged import is_found
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.rules.build import many

_GONE: Final = (
    " {source} cannot open {what} of its binary logs (SHOW BINARY LOGS prints 0 bytes): if"
    " {replica} needs transactions from there, it is refused with error 1236, although gtid_purged"
    " does not have them."
)
_UNLISTED: Final = (
    " The binary logs of {source} have no {what}: if that log was deleted by hand and {replica}"
    " needs transactions from there, they never arrive, and no error shows it."
)


def gone_logs_text(source: ServerSnapshot, *, replica: str, needed: GtidSet | None = None) -> str:
    """Explain what a source can no longer send; "" if it has all files, or all of `needed`.

    Without `needed` the files alone decide.
    """
    if needed is not None and is_found(needed, source):
        return ""
    gone, unlisted = source.gone_logs, source.unlisted_logs
    return "".join(
        text.format(source=source.name, replica=replica, what=what)
        for text, what in ((_GONE, _named(gone)), (_UNLISTED, _named(unlisted)))
        if what
    )


def _named(files: tuple[str, ...]) -> str:
    if len(files) < 2:  # noqa: PLR2004 - one, or none
        return "".join(files)
    return f"{len(files)} files, the first {files[0]},"


def last_copy_text(
    facts: ClusterFacts, source: str | None, replica: ServerSnapshot, channel: ChannelSnapshot
) -> str:
    """Warn about what only a relay log may have: its source was not read, and may be lost."""
    left = channel.gtid_retrieved - (replica.gtid_executed or GtidSet())
    is_read = any(edge.source == source for edge in facts.edges_into(replica.name))
    unlisted = unlisted_events(replica, channel)
    if is_read or not (left or unlisted):
        return ""
    what = many(left) if left else f"what its source logged from {unlisted}, without GTIDs,"
    return (
        f" It has received {what} that it has not applied, and its source was not read: if that is"
        " lost, the relay log may be the last copy. It is deleted by any change of the source or to"
        " auto-position, and by a clone: let it be applied first."
    )
