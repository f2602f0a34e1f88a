"""Extra GTIDs that a channel may have given to transactions of its source.

With ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS (8.0.23) a channel gives what it receives without a GTID
the UUID of its replica, or another one. It needs a file position, and may use auto-position since.
No set shows that its source has these transactions: they look errant. The events keep the server_id
of the source (seen on 9.7.4), so the replica's log separates them from what clients wrote on the
replica.
"""

from typing import Final

from gtid import GtidSet
from topology.facts.edge_facts import EdgeFacts
from topology.readings.dialect import dialect_of
from topology.readings.history_evidence import ends_of
from topology.readings.snapshot import ServerSnapshot

_TEXT: Final = (
    " The log of {replica} has {what} with the server_id of {source}. Possible causes: the channel"
    " of {replica} gave it a GTID (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS), and {source} has its"
    " rows; or {source} committed it under this GTID (a former server_uuid, gtid_next) and has lost"
    " it since. Compare the rows before you choose a repair."
)
_UNREAD: Final = (
    " The log of {replica} does not show which server committed it. If the channel of {replica}"
    " gives GTIDs to what has none (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS), {source} has its rows."
)


def maybe_assigned(edge: EdgeFacts, replica: ServerSnapshot) -> GtidSet:
    """Return the ends of the extra GTIDs that a channel may have given; the log decides."""
    if not _may_assign(replica):
        return GtidSet()
    return GtidSet.union_of(ends_of(edge.errant & replica.logged))


def _may_assign(replica: ServerSnapshot) -> bool:
    return replica.version is not None and dialect_of(replica.version).assigns_gtids


def assigned_text(
    edge: EdgeFacts, gtid_set: GtidSet, replica: ServerSnapshot, source: ServerSnapshot
) -> str:
    """Explain that a channel may have given the extra GTIDs; "" if it certainly did not.

    Under the UUID of the source, a crash explains its server_id (E3).
    """
    evidence = replica.history_evidence
    if not _may_assign(replica) or evidence is None:
        return ""  # no log was read at all: of a run that was stored without logs
    asked = ends_of(gtid_set & replica.logged)
    ids = {record.gtid: record.server_id for record in evidence.commits}
    names = {"replica": replica.name, "source": source.name}
    is_unread = bool(gtid_set - replica.logged) or any(gtid not in ids for gtid in asked)
    if is_unread and not edge.channel.auto_position:
        return _UNREAD.format(**names)
    found = GtidSet.union_of(
        gtid for gtid in asked if ids.get(gtid) == source.server_id is not None
    )
    if source.server_uuid is not None:
        found = found.without_uuid(source.server_uuid)
    return _TEXT.format(what=found.shortened(), **names) if found else ""
