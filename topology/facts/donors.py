"""Servers that may send to a replica what its own source cannot: pure.

By its sets a server has a transaction in its binary logs if it has executed and not purged it. The
sets do not show a log that was deleted by hand, or that the server cannot open (missing_logs.py).
Such a server is a donor only if there is no other one, and then it is not a certain one: a replica
that is pointed to it may be refused with error 1236, as by its own source.

A server whose version and the replica's refuse each other (5.6 and 9.7) is no donor.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.missing_logs import log_doubts
from topology.facts.unlogged import without_event
from topology.readings.version import refuse_each_other

# The evidence that lists the servers with a doubt; the instruction of donor_refetch takes it.
DOUBTFUL_DONORS: Final = "servers that may not be able to send it: a log is missing or was not read"


@dataclass(frozen=True, slots=True)
class Donor:
    """A server with transactions in its binary logs, by its sets."""

    name: str
    held: GtidSet  # what it has of those that are wanted; never empty
    doubt: str = ""  # why it may not be able to send them; "" if nothing shows that


def donors_of(
    facts: ClusterFacts, wanted: GtidSet, *, replica: str, apart_from: Collection[str]
) -> tuple[Donor, ...]:
    """Return the servers that have any of `wanted` in their logs: first those without a doubt."""
    found = []
    receiving = facts.last[replica].version if replica in facts.last else None
    for name in sorted(facts.fully_read.keys() - set(apart_from)):
        server = facts.fully_read[name].last
        if receiving and server.version and refuse_each_other(server.version, receiving):
            continue
        held = wanted & facts.first[name].logged
        held -= without_event(held, server)
        if held:
            doubt = "; ".join(log_doubts(server, held, replica=replica))
            found.append(Donor(name, held, doubt))
    return tuple(sorted(found, key=lambda each: (bool(each.doubt), each.name)))
