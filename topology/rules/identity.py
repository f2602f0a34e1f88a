"""C1, U1, U2: which servers answered, and what could not be read."""

from collections.abc import Iterator

from topology.facts import ClusterFacts
from topology.findings import Finding, Grade
from topology.rules.build import Rules, evidence, finding
from topology.snapshot import ServerSnapshot, UnreadReason
from topology.unseen import unevaluated_kind
from topology.version import Vendor


def duplicate_server_uuid(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield C1: two servers with one UUID, one finding per server after the first of the group."""
    for first, *others in facts.twins:
        for other in others:
            if (first, other) in facts.same:
                continue  # one server under two names: not_compared in partial.py
            pair = (facts.last[first], facts.last[other])
            yield finding(
                facts,
                "C1",
                source=first,
                replica=other,
                grade=Grade.PROVED,
                proof=(
                    *(evidence("server_uuid", server.server_uuid, server) for server in pair),
                    *(
                        evidence(name, server.setting(name), server)
                        for name in ("hostname", "port", "datadir")
                        for server in pair
                    ),
                ),
                explanation=f"{first} and {other} have the same server_uuid. Their transactions"
                " cannot be distinguished, and no comparison of their sets is valid.",
            )


def unreadable_facts(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U1: one finding for each server that did not answer everything."""
    for name in sorted(facts.last):
        unread = {
            fact: server
            for server in (facts.first[name], facts.last[name])
            for fact in server.unread
        }
        if unread and not _is_of_a_kind_not_evaluated(facts.last[name]):
            unsupported = all(fact.reason is UnreadReason.UNSUPPORTED for fact in unread)
            listed = ", ".join(sorted({fact.fact for fact in unread}))
            yield finding(
                facts,
                "U1",
                replica=name,
                grade=Grade.UNKNOWN,
                strategies=("configure",) if unsupported else None,
                proof=tuple(
                    evidence(fact.fact, f"{fact.reason.value}: {fact.detail}", server)
                    for fact, server in sorted(unread.items(), key=lambda item: item[0])
                ),
                explanation=f"gtid-audit could not read from {name}: {listed}. It does not"
                " evaluate what depends on it.",
            )


def _is_of_a_kind_not_evaluated(server: ServerSnapshot) -> bool:
    """Return whether U4 reports the server: MariaDB has no MySQL GTIDs to read."""
    return server.vendor is Vendor.MARIADB and unevaluated_kind(server) is not None


def torn_reading(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield U2: the server was reset, restarted or replaced between the two readings."""
    for name, sign in facts.torn:
        yield finding(
            facts,
            "U2",
            replica=name,
            grade=Grade.UNKNOWN,
            proof=(evidence("what shows it", sign, facts.last[name]),),
            explanation=f"{name} was restarted or reset while gtid-audit read it. Its sets are not"
            " evaluated.",
        )


RULES: Rules = (
    duplicate_server_uuid,  # C1
    unreadable_facts,  # U1
    torn_reading,  # U2
)
