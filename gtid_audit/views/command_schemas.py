"""The JSON Schemas of documents that commands print, apart from those with a page of their own.

1. A document is recognised by its fields: no two of these have the same ones.
2. Readers must ignore fields that later versions add, so the schemas are not closed; the tests
   close them, so that a field of a document that is missing here is found.
`python -m gtid_audit.views.command_schemas` prints all of them; `make docs` stores them in
docs/reference/commands.schema.json.
"""

import json
import sys
from typing import Any, Final, TypeAlias

from topology.catalogue.findings import Severity, Verdict
from topology.documents.document_version import SCHEMA_VERSION

Schema: TypeAlias = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "integer"}
_FLAG: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_VERDICT: Final[Schema] = {"enum": [each.value for each in Verdict]}
_SEVERITY: Final[Schema] = {"enum": [each.value for each in Severity]}


def _record(**fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _document(**fields: Schema) -> Schema:
    return _record(schema_version={"const": SCHEMA_VERSION}, **fields)


def _list(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _by_name(value: Schema) -> Schema:
    return {"type": "object", "additionalProperties": value}


_SET: Final = _record(gtid_set=_TEXT, gtid_count=_NUMBER)
_DESCRIBED_SET: Final = _record(
    gtid_set=_TEXT,
    gtid_count=_NUMBER,
    interval_count=_NUMBER,
    tsid_count=_NUMBER,
    tsids=_list(
        _record(uuid=_TEXT, tag=_TEXT, gtid_set=_TEXT, gtid_count=_NUMBER, interval_count=_NUMBER)
    ),
)
_LOG_ERROR: Final = _record(
    error=_TEXT, file=_or_null(_TEXT), position=_or_null(_NUMBER), text=_TEXT
)
_TOTALS: Final = _record(transactions=_NUMBER, bytes=_NUMBER)
_EVENT: Final = _record(
    number=_NUMBER,
    at=_TIME,
    event=_TEXT,
    script=_or_null(_NUMBER),
    server=_or_null(_TEXT),
    text=_TEXT,
)
_PROCEDURE: Final[dict[str, Schema]] = {
    "procedure": _TEXT,
    "plan": _TEXT,
    "cluster": _TEXT,
    "directory": _TEXT,
    "servers": _list(_TEXT),
    "operator": _TEXT,
    "started_at": _TIME,
    "ended_at": _or_null(_TIME),
    "state": _TEXT,
    "scripts_total": _NUMBER,
    "scripts_done": _NUMBER,
    "message": _TEXT,
    "verdict": _or_null(_VERDICT),
    "is_stop_requested": _FLAG,
}
_WRITTEN_REPAIR: Final = _or_null(
    _record(plan=_TEXT, directory=_TEXT, strategies=_list(_TEXT), procedure=_or_null(_TEXT))
)
_LOCATED_FILE: Final = _record(
    file=_TEXT,
    gtid_set=_TEXT,
    gtid_count=_NUMBER,
    transactions=_list(_record(gtid=_TEXT, start=_NUMBER, end=_NUMBER, is_complete=_FLAG)),
    transactions_left_out=_NUMBER,
)
_LEDGER_FILE: Final = _record(
    file=_TEXT,
    server_version=_or_null(_TEXT),
    checksum=_or_null(_TEXT),
    previous_gtids=_or_null(_TEXT),
    gtid_set=_TEXT,
    gtid_count=_NUMBER,
    transactions=_NUMBER,
    bytes=_NUMBER,
    end=_NUMBER,
    first_at=_or_null(_TIME),
    last_at=_or_null(_TIME),
    error=_or_null(_LOG_ERROR),
)
_EPISODE: Final = _record(
    id=_TEXT,
    code=_TEXT,
    name=_TEXT,
    severity=_SEVERITY,
    cluster=_TEXT,
    source=_or_null(_TEXT),
    replica=_or_null(_TEXT),
    channel=_or_null(_TEXT),
    first_seen=_TIME,
    last_seen=_TIME,
    ended_at=_or_null(_TIME),
    ending=_or_null(_TEXT),
)
_SHOWN_TRANSACTION: Final = _record(
    gtid=_or_null(_TEXT),
    file=_TEXT,
    start=_NUMBER,
    end=_NUMBER,
    kind=_TEXT,
    server_id=_NUMBER,
    is_complete=_FLAG,
    logged_at=_or_null(_TIME),
    original_commit_at=_or_null(_TIME),
    immediate_commit_at=_or_null(_TIME),
    content=_list({"type": "object"}),  # statements, tables and rows: docs/binlog-content.md
)

DOCUMENTS: Final[dict[str, Schema]] = {
    "sets": _document(operation=_TEXT, result={"anyOf": [_DESCRIBED_SET, _NUMBER, _FLAG]}),
    "sets diff": _document(
        operation={"const": "diff"},
        relation=_TEXT,
        only_a=_DESCRIBED_SET,
        only_b=_DESCRIBED_SET,
        both=_DESCRIBED_SET,
    ),
    "explain": _document(
        title=_or_null(_TEXT),
        code=_or_null(_TEXT),
        meaning=_TEXT,
        cause=_TEXT,
        advice=_list(_TEXT),
        gtid_sets=_list(_record(what=_TEXT, gtid_set=_TEXT, gtid_count=_NUMBER)),
    ),
    "history": _document(episodes=_list(_EPISODE)),
    "snapshot": _document(
        run=_TEXT,
        read_ended=_TIME,
        clusters=_NUMBER,
        servers=_NUMBER,
        unread_facts=_NUMBER,
        contents_compared=_or_null(_NUMBER),
        partial=_FLAG,
    ),
    "binlog scan": _document(
        verdict=_VERDICT,
        source=_TEXT,
        out=_or_null(_TEXT),
        transactions=_NUMBER,
        bytes=_NUMBER,
        gtid_set=_TEXT,
        gtid_count=_NUMBER,
        anonymous=_NUMBER,
        incomplete=_NUMBER,
        with_errors=_NUMBER,
        first_at=_or_null(_TIME),
        last_at=_or_null(_TIME),
        kinds=_by_name(_TOTALS),
        largest=_list(
            _record(gtid=_or_null(_TEXT), file=_TEXT, start=_NUMBER, bytes=_NUMBER, kind=_TEXT)
        ),
        tables=_list(
            _record(
                schema=_TEXT,
                table=_TEXT,
                rows_written=_NUMBER,
                rows_updated=_NUMBER,
                rows_deleted=_NUMBER,
            )
        ),
        files=_list(_LEDGER_FILE),
    ),
    "binlog locate": _document(
        verdict=_VERDICT,
        source=_TEXT,
        wanted=_SET,
        files=_list(_LOCATED_FILE),
        absent=_list(_record(reason=_TEXT, gtid_set=_TEXT, gtid_count=_NUMBER)),
        file_count=_NUMBER,
        heads_read=_NUMBER,
        errors=_list(_LOG_ERROR),
    ),
    "binlog cover": _document(
        **{"verdict": _VERDICT, "from": _TEXT},
        end=_TEXT,
        hole=_TEXT,
        hole_count=_NUMBER,
        beyond=_TEXT,
        files=_list(_TEXT),
        needed=_list(_TEXT),
        unread=_list(
            _record(
                file=_TEXT,
                has_previous_gtids=_FLAG,
                anonymous_count=_or_null(_NUMBER),
                error=_or_null(_LOG_ERROR),
            )
        ),
    ),
    "binlog show": _document(
        wanted=_TEXT,
        transactions=_list(_SHOWN_TRANSACTION),
        missing=_TEXT,
        misfits=_list({"type": "object"}),
    ),
    "repair apply, repair state": _document(**_PROCEDURE, events=_list(_EVENT)),
    "repair list": _document(procedures=_list(_record(**_PROCEDURE))),
    "repair stop": _document(procedure=_TEXT, is_stop_requested=_FLAG),
    "repair apply --detach": _document(procedure=_TEXT, plan=_TEXT, log=_TEXT),
    "repair apply --dry-run": _document(
        plan=_TEXT,
        cluster=_TEXT,
        scripts=_list(_record(script=_TEXT, server=_TEXT, address=_TEXT, statements=_list(_TEXT))),
    ),
    "serve": _document(host=_TEXT, port=_NUMBER),
    "reconcile": _document(
        clusters=_list(
            _record(
                cluster=_TEXT,
                verdict=_VERDICT,
                findings=_list(_TEXT),
                left=_list(_TEXT),
                applied=_WRITTEN_REPAIR,
                kept=_WRITTEN_REPAIR,
                why_kept=_TEXT,
                unread=_list(_TEXT),
            )
        )
    ),
}


def schema_for(document: dict[str, Any]) -> Schema | None:
    """Return the schema of a document with these fields; None if none is declared here."""
    for schema in DOCUMENTS.values():
        if schema["properties"].keys() == document.keys():
            return schema
    return None


def closed(schema: Any) -> Any:  # noqa: ANN401 - a JSON Schema, or a part of one
    """Return a schema whose records have no other fields than those that are declared."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        made["additionalProperties"] = False
    return made


def schema_text() -> str:
    """Return all schemas as one file: each under the name of its command."""
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "The documents that commands of gtid-audit print with --json",
        "anyOf": [{"$ref": f"#/$defs/{name.replace(' ', '%20')}"} for name in DOCUMENTS],
        "$defs": DOCUMENTS,
    }
    return json.dumps(document, indent=2) + "\n"


if __name__ == "__main__":
    sys.stdout.write(schema_text())
