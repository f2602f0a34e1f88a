"""A4: whether the servers still share the server_uuid for which a receiver was disconnected.

A source serves one receiver of each server_uuid: the one that connected last. The other stops, and
keeps the error until its next start. A copy that has got its own server_uuid since needs nothing
else. What the audit read shows that only for the servers that it read.
"""

from typing import Final

from topology.catalogue.error_texts import ANOTHER_REPLICA, row_of
from topology.catalogue.findings import Evidence, Finding
from topology.facts.cluster_facts import ClusterFacts
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.rules.build import evidence

# The fact that a start is no longer in vain; `repair plan` depends on it (refused_before.py).
UUIDS_NOW: Final = "server_uuids of the servers that were read"
_TEXT: Final = (
    " The {count} servers of this audit have different server_uuids. If one of them was the copy,"
    " the cause is repaired, and {replica} only needs a start. If a server that this audit did not"
    " read has the server_uuid of {replica}, the two disconnect each other again: find it first."
)


def distinct_uuids(
    facts: ClusterFacts, source: str | None, replica: ServerSnapshot, channel: ChannelSnapshot
) -> tuple[tuple[Evidence, ...], str]:
    """Return what shows that no server that was read has the replica's server_uuid, and the text.

    Return nothing for another error, where a server_uuid is not known, and where the replica has
    several channels to the source: these disconnect each other as well.
    """
    found = row_of(channel.receiver_error)
    if found is None or found.title != ANOTHER_REPLICA:
        return (), ""
    uuids = [server.server_uuid for server in facts.last.values()]
    beside = [edge for edge in facts.graph.into(replica.name) if edge.source == source]
    if None in uuids or len({*uuids}) < len(uuids) or source is None or len(beside) > 1:
        return (), ""
    count = len(uuids)
    return (
        (evidence(UUIDS_NOW, f"{count}, all different", replica),),
        _TEXT.format(count=count, replica=replica.name),
    )


def have_distinct_uuids(finding: Finding) -> bool:
    """Return whether an A4 shows that the servers that were read have different server_uuids."""
    return finding.code == "A4" and any(each.fact == UUIDS_NOW for each in finding.evidence)
