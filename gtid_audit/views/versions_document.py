"""The JSON document of `schema versions`. Pure."""

from collections.abc import Sequence
from typing import Any

from gtid_audit.views.drift_document import ddl_item, unread_item
from topology.catalogue.findings import worst_verdict
from topology.definitions.schema_objects import ObjectKind
from topology.definitions.schema_versions import ClusterVersions, ServerSchemaVersion
from topology.documents.document_version import versioned


def versions_document(clusters: Sequence[tuple[str, ClusterVersions]]) -> dict[str, Any]:
    """Return the JSON document of clusters by name."""
    return versioned(
        {
            "verdict": worst_verdict(each.verdict for _, each in clusters).value,
            "clusters": [_cluster(name, each) for name, each in clusters],
            "unknown": [
                *(
                    unread_item(name, server, fact)
                    for name, each in clusters
                    for server, fact in each.unknown
                ),
                *(
                    {
                        "cluster": name,
                        "server": None,
                        "fact": "DDL that servers are apart by",
                        "reason": each.why_incomplete,
                    }
                    for name, each in clusters
                    if each.why_incomplete
                ),
            ],
        }
    )


def counts_of(server: ServerSchemaVersion) -> dict[str, int | None]:
    """Return the number of objects by kind; None if they were not read."""
    kinds = {
        "schemas": (ObjectKind.SCHEMA,),
        "tables": (ObjectKind.TABLE,),
        "views": (ObjectKind.VIEW,),
        "routines": (ObjectKind.PROCEDURE, ObjectKind.FUNCTION),
        "triggers": (ObjectKind.TRIGGER,),
        "events": (ObjectKind.EVENT,),
    }
    objects = server.facts.objects
    return {
        name: None if objects is None else objects.count(*members)
        for name, members in kinds.items()
    }


def _cluster(name: str, cluster: ClusterVersions) -> dict[str, Any]:
    return {
        "cluster": name,
        "verdict": cluster.verdict.value,
        "read_at": cluster.read_at.isoformat(),
        "definitions_differ": cluster.digests_differ,
        "servers": [_server(each, cluster) for each in cluster.servers],
    }


def _server(server: ServerSchemaVersion, cluster: ClusterVersions) -> dict[str, Any]:
    objects = server.facts.objects
    return {
        "server": server.facts.server,
        **counts_of(server),
        "columns": objects.column_count if objects else None,
        "size_bytes": objects.size_bytes if objects else None,
        "digest": server.facts.digest or None,
        "applied": ddl_item(server.applied) if server.applied else None,
        "received": ddl_item(server.received) if server.received else None,
        "older_than": server.older_than or None,
        "missing": [ddl_item(each) for each in server.missing],
        "is_behind": cluster.is_behind(server),
    }
