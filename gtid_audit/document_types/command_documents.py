"""The documents that each command prints with --json, and the files of docs/reference.

1. DOCUMENTS has every document by name, and COMMANDS the documents that a command may print. A
   command with --json that is missing there, and an output that has another form than the documents
   of its command, make a test fail.
2. Readers must ignore fields that later versions add, so the schemas are not closed; the tests
   close them, so that a field of a document that is missing here is found.
`python -m gtid_audit.document_types.command_documents DIR` writes the files; `make docs` runs it.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from gtid_audit.document_types import (
    drift_types,
    log_types,
    repair_types,
    server_types,
    spark_types,
    tool_types,
    tracked_types,
)
from gtid_audit.document_types.audit_types import AUDIT_DOCUMENT
from gtid_audit.document_types.trace_types import TRACE_DOCUMENT
from topology.documents.json_schema import json_schema_of
from topology.documents.plain_types import PlainType

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

DOCUMENTS: Final[dict[str, PlainType]] = {
    "audit": AUDIT_DOCUMENT,
    "audit --questions": tool_types.QUESTIONS,
    "binlog compare": log_types.COMPARE,
    "binlog cover": log_types.COVER,
    "binlog locate": log_types.LOCATE,
    "binlog scan": log_types.SCAN,
    "binlog schema compare": tracked_types.COMPARED_DEFINITION,
    "binlog schema follow": tracked_types.FOLLOWED,
    "binlog schema list": tracked_types.LISTING,
    "binlog schema update": tracked_types.CHANGED,
    "binlog show": log_types.SHOW,
    "binlog show --redo": log_types.REPLAY,
    "completion": tool_types.COMPLETION,
    "explain": tool_types.EXPLANATION,
    "handshake": server_types.HANDSHAKE,
    "history": tool_types.HISTORY,
    "locks": server_types.LOCKS,
    "man": tool_types.MANUAL,
    "monitoring": tool_types.MONITORING,
    "reconcile": repair_types.RECONCILED,
    "repair apply": repair_types.PROCEDURE,
    "repair apply --detach": repair_types.DETACHED,
    "repair apply --dry-run": repair_types.DRY_RUN,
    "repair check-data": repair_types.CHECKED_DATA,
    "repair list": repair_types.PROCEDURES,
    "repair plan": repair_types.PLAN,
    "repair stop": repair_types.STOPPED,
    "schema drift": drift_types.DRIFT_DOCUMENT,
    "schema versions": drift_types.VERSIONS_DOCUMENT,
    "serve": server_types.SERVING,
    "sets": tool_types.SETS,
    "sets diff": tool_types.SETS_DIFF,
    "snapshot": server_types.SNAPSHOT_RUN,
    "spark command": spark_types.COMMAND,
    "spark package": spark_types.PACKAGE,
    "spark submit": spark_types.SUMMARY,
    "spark submit --deploy-mode cluster": spark_types.IN_CLUSTER_MODE,
    "spark trends": spark_types.TRENDS,
    "trace": TRACE_DOCUMENT,
}

# A command has the document of its own name, unless it is listed here.
COMMANDS: Final[dict[str, tuple[str, ...]]] = {
    **{name: (name,) for name in DOCUMENTS if name != "sets" and " --" not in name},
    "audit": ("audit", "audit --questions"),
    "pair": ("audit",),
    "binlog show": ("binlog show", "binlog show --redo"),
    "binlog schema delete": ("binlog schema update",),
    "repair apply": ("repair apply", "repair apply --detach", "repair apply --dry-run"),
    "repair resume": ("repair apply", "repair apply --detach"),
    "repair state": ("repair apply",),
    "spark submit": ("spark submit", "spark submit --deploy-mode cluster"),
    **{
        f"sets {name}": ("sets",)
        for name in (
            *("subtract", "union", "intersect", "subset", "equal", "disjoint"),
            *("count", "canonical", "holes"),
        )
    },
}

# The documents with a file of their own; the others are in commands.schema.json.
FILES: Final = {
    "audit": "audit",
    "schema drift": "schema-drift",
    "schema versions": "schema-versions",
    "trace": "trace",
}


def schema_of(name: str, *, is_closed: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a document; see `json_schema_of` for `is_closed`."""
    return {
        "$schema": _DRAFT,
        "title": f"The result of gtid-audit {name}",
        **json_schema_of(DOCUMENTS[name], is_closed=is_closed),
    }


def reference_files() -> dict[str, str]:
    """Return the files of docs/reference that this module makes, by name."""
    files = {f"{stem}.schema.json": schema_of(name) for name, stem in FILES.items()}
    return {
        name: json.dumps(schema, indent=2) + "\n"
        for name, schema in {**files, "commands.schema.json": _of_commands()}.items()
    }


def _of_commands() -> dict[str, Any]:
    names = [name for name in DOCUMENTS if name not in FILES]
    return {
        "$schema": _DRAFT,
        "title": "The documents that commands of gtid-audit print with --json",
        "anyOf": [{"$ref": f"#/$defs/{name.replace(' ', '%20')}"} for name in names],
        "$defs": {name: json_schema_of(DOCUMENTS[name]) for name in names},
    }


def main(arguments: Iterable[str]) -> None:
    """Write the files into the directory that is the only argument."""
    [directory] = arguments
    for name, text in reference_files().items():
        (Path(directory) / name).write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
