"""The JSON document of `schema drift`, and the unified diff that its text shows, too. Pure."""

from collections.abc import Sequence
from difflib import unified_diff
from typing import Any, Final

from topology.catalogue.findings import worst_verdict
from topology.definitions.drift_classes import DRIFT_CLASSES
from topology.definitions.object_drift import ClusterDrift, ObjectDrift, PairDrift
from topology.documents.document_version import versioned
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.snapshot import UnreadFact

_CONTEXT_LINES: Final = 2


def drift_document(clusters: Sequence[ClusterDrift]) -> dict[str, Any]:
    """Return the JSON document."""
    return versioned(
        {
            "verdict": worst_verdict(each.verdict for each in clusters).value,
            "clusters": [_cluster(each) for each in clusters],
            "unknown": [
                unread_item(each.cluster, server, fact)
                for each in clusters
                for server, fact in each.unknown
            ],
        }
    )


def unread_item(cluster: str, server: str, fact: UnreadFact) -> dict[str, Any]:
    """Return what could not be read."""
    return {
        "cluster": cluster,
        "server": server,
        "fact": fact.fact,
        "reason": f"{fact.reason.value}: {fact.detail}",
    }


def diff_lines(difference: ObjectDrift, *, source: str, replica: str) -> list[str]:
    """Return the unified diff from the source's definition to the replica's, in canonical form."""
    ours = difference.source.lines if difference.source else ()
    theirs = difference.replica.lines if difference.replica else ()
    return list(unified_diff(ours, theirs, source, replica, n=_CONTEXT_LINES, lineterm=""))


def ddl_item(ddl: LoggedDdl) -> dict[str, Any]:
    """Return one DDL transaction."""
    return {
        "gtid": str(ddl.gtid),
        "committed_at": ddl.committed_at.isoformat() if ddl.committed_at else None,
        "statement": ddl.statement or None,
    }


def _cluster(cluster: ClusterDrift) -> dict[str, Any]:
    return {
        "cluster": cluster.cluster,
        "verdict": cluster.verdict.value,
        "servers": list(cluster.servers),
        "pairs": [_pair(each) for each in cluster.pairs],
    }


def _pair(pair: PairDrift) -> dict[str, Any]:
    return {
        "source": pair.source,
        "replica": pair.replica,
        "has_channel": pair.facts.has_channel,
        "verdict": pair.verdict.value,
        "compared_count": pair.compared_count,
        "on_the_way_count": pair.facts.way.gtids.gtid_count,
        "differences": [_difference(each, pair) for each in pair.differences],
    }


def _difference(difference: ObjectDrift, pair: PairDrift) -> dict[str, Any]:
    key = difference.key
    return {
        "kind": key.kind.value,
        "schema": key.schema,
        "name": key.name or None,
        "name_on_replica": str(difference.replica_key) if difference.replica_key else None,
        "classes": [each.value for each in difference.classes],
        "severity": difference.severity.value,
        "grade": difference.grade.value,
        "causes": list(difference.causes),
        "is_filtered": difference.is_filtered,
        "contained_count": difference.contained,
        "changes": [
            {
                "class": each.drift_class.value,
                "name": each.name or None,
                "source": each.source.raw if each.source else None,
                "replica": each.replica.raw if each.replica else None,
            }
            for each in difference.changes
        ],
        "diff": diff_lines(difference, source=pair.source, replica=pair.replica),
        "rows": {
            "effect": difference.rows.effect.value,
            "errno": difference.rows.errno,
            "why": difference.rows.why or None,
        },
        "errors": list(difference.errors),
        "made_by": [ddl_item(each) for each in difference.made_by],
        "pending": [ddl_item(each) for each in difference.pending],
        "repair": [
            {
                "class": each.value,
                "repairable": DRIFT_CLASSES[each].repairable.value,
                "advice": DRIFT_CLASSES[each].advice,
            }
            for each in difference.classes
        ],
        "statements": list(difference.statements),
    }
