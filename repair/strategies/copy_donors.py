"""Which server to copy where a server's data is replaced (`reclone`).

1. By default it is the finding's source: the replica follows it afterwards.
2. It is another one if the source was not read completely, if it cannot serve a replica by
   auto-position, or if another finding shows that its own data is doubtful (DOUBTS).
3. A server with several channels also has what its other sources have, and the finding's source
   has not: then it is a server that has both, if there is one.
4. Another server is named only if it has everything: all that the source has executed, and nothing
   else, which the replica would have besides. If the source was not read, it must have all that the
   other servers have. No finding may be about its own data.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from repair.model.replication_model import ModelServer
from repair.strategies.instruction_context import Situation
from topology.catalogue.findings import Finding, Severity
from topology.readings.version import refuse_each_other

# Findings that make the data of a server doubtful, and which end of the finding that server is. E6
# is not one of them: a source that was reset is where its replicas continue.
_REPLICA: Final = ("replica",)
DOUBTS: Final[Mapping[str, tuple[str, ...]]] = {
    "E3": ("source",),  # it lost them
    "E4": ("source", "replica"),  # which of the two is right is not known
    **dict.fromkeys(("E1", "E2", "J3"), _REPLICA),  # it has transactions of its own
    **dict.fromkeys(("H1", "H2", "H3", "H4", "H5", "H8", "P1", "J2"), _REPLICA),  # it misses some
    **dict.fromkeys(("A1", "A2", "A3"), _REPLICA),  # its applier is stopped by an error
}


@dataclass(frozen=True, slots=True)
class CopyDonor:
    """The server to copy, the one to follow afterwards, and why the source is not both."""

    server: ModelServer
    source: ModelServer
    note: str = ""


def donor_of_copy(situation: Situation, here: ModelServer) -> CopyDonor | None:
    """Return the server to copy to `here`; None if no server that was read is known to have all."""
    source = situation.model.servers.get(situation.finding.source or "")
    if source is None:
        return _instead_of_unread(situation, here)
    if elsewhere := of_other_sources(situation, here):
        return _with_both(situation, source, here, elsewhere)
    why = "; ".join(_reasons_against(situation, source, here))
    if not why:
        return CopyDonor(source, source)
    for other in _others(situation, here):
        if other.executed == source.executed:
            note = (
                f"copy {other.name}, not {source.name}: {why}. {other.name} has executed the same"
            )
            return CopyDonor(other, source if _serves(source) else other, note)
    return CopyDonor(
        source,
        source,
        f"{source.name} is a doubtful donor: {why}. No other audited server without such a finding"
        " has exactly the same transactions: answer that finding first",
    )


def of_other_sources(situation: Situation, here: ModelServer) -> GtidSet:
    """Return what a server received on its other channels, and the finding's source has not."""
    servers, finding = situation.model.servers, situation.finding
    source = servers.get(finding.source or "")
    if source is None:
        return GtidSet()
    others = (servers.get(each.source or "") for each in here.channels)
    had = GtidSet.union_of(
        each.executed for each in others if each is not None and each.name != source.name
    )
    return (here.executed & had) - source.executed


def _with_both(
    situation: Situation, source: ModelServer, here: ModelServer, elsewhere: GtidSet
) -> CopyDonor | None:
    """Return a server that has all of the finding's source, and what other sources sent."""
    for other in _others(situation, here):
        if source.executed | elsewhere <= other.executed:
            note = (
                f"copy {other.name}, not {source.name}: {here.name} also has the transactions of"
                f" other sources, which {source.name} does not have. {other.name} has both"
            )
            return CopyDonor(other, source if _serves(source) else other, note)
    return None


def _serves(server: ModelServer) -> bool:
    """Return whether a replica can follow a server by auto-position."""
    return server.has_log and server.sends_by_sets


def _instead_of_unread(situation: Situation, here: ModelServer) -> CopyDonor | None:
    """Return a server that has all that the servers other than `here` have executed."""
    servers = situation.model.servers.values()
    known = GtidSet.union_of(each.executed for each in servers if each.name != here.name)
    for other in _others(situation, here):
        if known <= other.executed:
            unread = situation.finding.source or "the source"
            note = (
                f"copy {other.name}, because {unread} was not read completely: {other.name} has all"
                f" that the other servers of this audit have executed. Point {here.name} back to"
                f" {unread} when an audit has read both"
            )
            return CopyDonor(other, other, note)
    return None


def _others(situation: Situation, here: ModelServer) -> Iterator[ModelServer]:
    """Yield the servers that may be copied instead of the source, by name."""
    for name, each in sorted(situation.model.servers.items()):
        if name in (here.name, situation.finding.source):
            continue
        if refuse_each_other(each.version, here.version):
            continue
        if not any(_reasons_against(situation, each, here)):
            yield each


def _reasons_against(situation: Situation, donor: ModelServer, here: ModelServer) -> Iterator[str]:
    """Yield why a server should not be copied to `here`."""
    if not donor.has_log:
        yield f"{donor.name} writes no binary log, so it cannot serve {here.name} afterwards"
    elif not donor.sends_by_sets:
        yield f"gtid_mode of {donor.name} is not ON, so it serves no replica by auto-position"
    for each in situation.beside.findings:
        ends = {"source": each.source, "replica": each.replica}
        is_about = any(ends[end] == donor.name for end in DOUBTS.get(each.code, ()))
        if is_about and here.name not in ends.values() and each.severity is not Severity.INFO:
            yield _short(each)


def _short(finding: Finding) -> str:
    ends = " → ".join(end for end in (finding.source, finding.replica) if end is not None)
    gtids = f": {finding.gtid_set.shortened()}" if finding.gtid_set else ""
    return f"the audit reports {finding.code} {finding.name}, {ends}{gtids}"
