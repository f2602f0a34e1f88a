"""The four dashboards as JSON: fleet, cluster, runway, and the health of the audit itself. Pure.

1. From the fleet, a click on a cluster leads to its dashboard, on a code to the runbook.
2. Findings that come and go are annotations on every graph. One that exists for a shorter time than
   the step of a graph may not be shown; the history file has it.
"""

import json
from typing import Any, Final

from gtid_audit.monitoring.dashboard_panels import DATASOURCE, GREEN, RED, Json, placed
from gtid_audit.monitoring.dashboard_rows import (
    cluster_rows,
    fleet_rows,
    health_rows,
    runway_rows,
)

_TAG: Final = "gtid-audit"
_SCHEMA_VERSION: Final = 41
_ROWS: Final = {
    "gtid-audit-fleet": ("GTID audit: fleet", fleet_rows),
    "gtid-audit-cluster": ("GTID audit: cluster", cluster_rows),
    "gtid-audit-runway": ("GTID audit: runway", runway_rows),
    "gtid-audit-health": ("GTID audit: health of the audit", health_rows),
}
HOME: Final = "gtid-audit-fleet.json"
_ABOVE_INFO: Final = 'gtid_audit_finding_transactions{cluster=~"$cluster", severity!="info"}'
_STEP: Final = "30s"  # the shortest distance of two values of a graph
# One step of the graph earlier, however long it is: so no change falls between two steps.
_BEFORE: Final = "offset $__interval"
_BY_PLACE: Final = "count by (cluster, code, source, replica)"


def dashboards(runbook: str) -> dict[str, str]:
    """Return each dashboard as JSON, by its file name; `runbook` is where codes link to."""
    found = {}
    for uid, (title, rows_of) in _ROWS.items():
        board = {
            "uid": uid,
            "title": title,
            "tags": [_TAG],
            "schemaVersion": _SCHEMA_VERSION,
            "version": 1,
            "editable": True,
            "graphTooltip": 1,
            "refresh": "30s",
            "timezone": "browser",
            "time": {"from": "now-6h", "to": "now"},
            "timepicker": {},
            "fiscalYearStartMonth": 0,
            "templating": {
                "list": [_datasource_variable(), _cluster_variable(one=uid.endswith("cluster"))]
            },
            "annotations": {
                "list": [
                    _annotation("Findings come", RED, _COME, "came"),
                    _annotation("Findings go", GREEN, _GONE, "is gone"),
                ]
            },
            "links": [_links()],
            "panels": placed(rows_of(runbook)),
        }
        found[f"{uid}.json"] = json.dumps(board, indent=1, ensure_ascii=False) + "\n"
    return found


_COME: Final = f"{_BY_PLACE} ({_ABOVE_INFO} unless gtid_audit_finding_transactions {_BEFORE})"
_GONE: Final = f"{_BY_PLACE} ({_ABOVE_INFO} {_BEFORE} unless gtid_audit_finding_transactions)"


def _datasource_variable() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "refresh": 1,
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "regex": "",
        "skipUrlSync": False,
    }


def _cluster_variable(*, one: bool) -> Json:
    """Return the variable `cluster`: one of them, or any number."""
    query = "label_values(gtid_audit_verdict, cluster)"
    every: dict[str, Any] = {"text": ["All"], "value": ["$__all"]}
    return {
        "name": "cluster",
        "label": "Cluster",
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": "cluster"},
        "definition": query,
        "refresh": 2,  # when the time range changes
        "sort": 1,
        "hide": 0,
        "regex": "",
        "options": [],
        "skipUrlSync": False,
        "multi": not one,
        "includeAll": not one,
        **({} if one else {"allValue": ".*", "current": every}),
    }


def _annotation(name: str, color: str, expr: str, what: str) -> Json:
    return {
        "name": name,
        "datasource": DATASOURCE,
        "enable": True,
        "hide": False,
        "iconColor": color,
        "target": {"refId": "Anno", "expr": expr, "interval": _STEP},
        "titleFormat": f"{{{{code}}}} {what}",
        "textFormat": "{{cluster}}: {{source}} → {{replica}}",
        "tagKeys": "cluster,code",
        "useValueForTime": False,
    }


def _links() -> Json:
    """Return the menu that leads to the other dashboards, with the selected clusters."""
    return {
        "type": "dashboards",
        "title": "GTID audit",
        "tags": [_TAG],
        "asDropdown": True,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }
