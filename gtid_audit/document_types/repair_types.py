"""The types of the documents of `repair` and `reconcile`.

repair/repair_plan.py writes a plan from its dataclasses, so its type is derived from them.
"""

from typing import Final

from gtid_audit.document_types.procedure_types import EVENT, PROCEDURE_PARTS
from gtid_audit.document_types.shared_types import VERDICT, document_of
from repair.data_check.part_comparison import RowDifference
from repair.repair_plan import (
    SCHEMA_VERSION,
    Afterwards,
    Answered,
    AssumedState,
    ContentShown,
    DifferingRow,
    NotChosen,
    NotPlanned,
)
from repair.scripts.procedure import Procedure
from repair.scripts.steps import Check, Step
from topology.documents.dataclass_types import parts_of_dataclass, type_of_dataclass
from topology.documents.plain_types import (
    ANYTHING,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    constant_of,
    list_of,
    map_of,
    record_of,
    words_of,
)

PROCEDURE: Final = document_of(**PROCEDURE_PARTS, events=list_of(EVENT))
PROCEDURES: Final = document_of(procedures=list_of(record_of(**PROCEDURE_PARTS)))
STOPPED: Final = document_of(procedure=TEXT, is_stop_requested=FLAG)
DETACHED: Final = document_of(procedure=TEXT, plan=TEXT, log=TEXT)
_SENT: Final = record_of(script=TEXT, server=TEXT, address=TEXT, statements=list_of(TEXT))
DRY_RUN: Final = document_of(plan=TEXT, cluster=TEXT, scripts=list_of(_SENT))

_WRITTEN: Final = record_of(
    plan=TEXT, directory=TEXT, strategies=list_of(TEXT), procedure=TEXT.or_null()
).or_null()
RECONCILED: Final = document_of(
    clusters=list_of(
        record_of(
            cluster=TEXT,
            verdict=VERDICT,
            findings=list_of(TEXT),
            left=list_of(TEXT),
            applied=_WRITTEN,
            kept=_WRITTEN,
            why_kept=TEXT,
            reasons=list_of(record_of(finding=TEXT, why=TEXT)),
            compares_definitions=FLAG,
            unread=list_of(TEXT),
        )
    )
)

_ROW: Final = record_of(
    key=list_of(TEXT), state=words_of(*(each.name.lower() for each in RowDifference))
)
CHECKED_DATA: Final = document_of(
    verdict=VERDICT,
    servers=list_of(TEXT),
    unread=TEXT.or_null(),
    earlier_parts=NUMBER,
    apart=TEXT.or_null(),
    tables=list_of(
        record_of(
            database=TEXT,
            table=TEXT,
            verdict=VERDICT,
            missing_on=TEXT.or_null(),
            unread=TEXT.or_null(),
            key=TEXT.or_null(),
            rows=NUMBER,
            parts=NUMBER,
            parts_unsettled=NUMBER,
            rows_different=NUMBER,
            different=list_of(_ROW),
            reasons=list_of(TEXT),
        )
    ),
)

_OF_PROCEDURE: Final = parts_of_dataclass(Procedure, without=("needs",))
_PARTS: Final = {
    **parts_of_dataclass(Step, without=("effect", "checks", "procedure")),
    **_OF_PROCEDURE,
}
_FIRST: Final = ("number", "server", "host", "port", "title", "why", "finding_ids")
_STEP: Final = record_of(
    **{name: _PARTS[name] for name in dict.fromkeys((*_FIRST, *_OF_PROCEDURE, *_PARTS))},
    checks=list_of(record_of(**parts_of_dataclass(Check), script=TEXT)),
    action=TEXT,
    change=map_of(ANYTHING),  # its `type` names the action; the other fields depend on it
    script=TEXT,
)
PLAN: Final = record_of(
    schema_version=constant_of(SCHEMA_VERSION),
    id=TEXT,
    cluster=TEXT,
    snapshot_read_at=TIME.or_null(),
    estimated_seconds=NUMBER,
    choices=map_of(TEXT),
    only_findings=list_of(TEXT).or_null(),
    command=TEXT,
    answered=list_of(type_of_dataclass(Answered)),
    assumed=list_of(type_of_dataclass(AssumedState)),
    not_chosen=list_of(type_of_dataclass(NotChosen)),
    not_planned=list_of(type_of_dataclass(NotPlanned)),
    rows=list_of(type_of_dataclass(DifferingRow)),
    contents=list_of(type_of_dataclass(ContentShown)),
    saved=list_of(
        record_of(
            file_name=TEXT, text=TEXT.or_null(), read_from=TEXT.or_null(), gtid_set=TEXT.or_null()
        )
    ),
    afterwards=list_of(type_of_dataclass(Afterwards)),
    steps=list_of(_STEP),
    warnings=list_of(TEXT),
    files=list_of(TEXT),
)
