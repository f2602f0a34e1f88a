"""E5, F2: UUIDs that belong to no audited server.

No statement removes a UUID from gtid_executed: only RESET BINARY LOGS AND GTIDS with a smaller
gtid_purged does, on all servers at once. So a few old UUIDs are no finding; F2 begins where every
connection with auto-position has many of them to send and to compare.
"""

from collections.abc import Iterator

from gtid import GtidSet
from topology.catalogue.findings import Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.unknown_origins import unknown_origins
from topology.rules.build import Rules, evidence, finding, many


def unknown_origin(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E5: servers are missing transactions whose UUID no audited server has."""
    found = unknown_origins(facts)
    if found is None or not found.missing:
        return
    gtids = GtidSet.union_of(missing for _, missing in found.missing)
    holders = [
        (name, held)
        for name, each in sorted(facts.fully_read.items())
        if (held := gtids & each.first.gtid_executed)
    ]
    yield finding(
        facts,
        "E5",
        gtid_set=gtids,
        grade=Grade.LIKELY,
        strategies=(),
        proof=(
            *(
                evidence("executed, with the UUID of no audited server", held, facts.first[name])
                for name, held in holders
            ),
            *(
                evidence("not executed", missing, facts.last[name])
                for name, missing in found.missing
            ),
        ),
        explanation=f"{', '.join(name for name, _ in holders)} executed {many(gtids)} with the UUID"
        f" of no audited server. {_without(found.missing)}. Possible causes: a session set"
        " gtid_next by hand; a program applies the binary log of another server; a former"
        " server_uuid of one of these servers; a server that no longer exists"
        f"{_of_a_group(facts)}.",
    )


def _of_a_group(facts: ClusterFacts) -> str:
    """Return the cause that only the settings exclude: a group commits under its own name."""
    unread = sorted(name for name, each in facts.first.items() if each.settings is None)
    if not unread:
        return ""
    return f"; a replication group of {', '.join(unread)}, whose settings were not read"


def _without(missing: tuple[tuple[str, GtidSet], ...]) -> str:
    names = [name for name, _ in missing]
    if len(names) == 1:
        return f"{names[0]} does not have all of them"
    return f"{', '.join(names)} do not have all of them"


def dead_uuids(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield F2: many UUIDs belong to no audited server, and all servers agree on them."""
    found = unknown_origins(facts)
    if found is None or len(found.alike.uuids) <= facts.policy.dead_uuids_max:
        return
    servers = sorted(facts.fully_read)
    agree = "agree on them" if len(servers) > 1 else "has the same of them in both readings"
    yield finding(
        facts,
        "F2",
        gtid_set=found.alike,
        grade=Grade.LIKELY,
        strategies=(),
        proof=tuple(
            evidence("executed, with the UUID of no audited server", found.alike, facts.last[each])
            for each in servers
        ),
        explanation=f"gtid_executed has {len(found.alike.uuids):,} UUIDs of no audited server, and"
        f" {', '.join(servers)} {agree}. Every connection with auto-position sends and"
        " compares them. Backups and servers that are not audited may still have other sets. No"
        " statement removes a UUID: the next time that all servers are built from one copy, leave"
        " these out of its gtid_purged.",
    )


RULES: Rules = (
    unknown_origin,  # E5
    dead_uuids,  # F2
)
