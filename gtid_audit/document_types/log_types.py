"""The types of the documents of `binlog scan`, `locate`, `cover`, `show` and `compare`."""

from typing import Final

from binlog.rows.tables import Origin
from binlog.transactions import TransactionKind
from gtid_audit.document_types.audit_types import CONTENT_PARTS
from gtid_audit.document_types.shared_types import FILES, GTIDS, LOG_ERROR, VERDICT, document_of
from gtid_audit.document_types.tracked_types import COMPARED_DEFINITION_PARTS
from repair.sql.replay_script import Direction
from topology.documents.plain_types import (
    ANYTHING,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    choice_of,
    list_of,
    map_of,
    record_of,
    words_of_enum,
)
from topology.documents.records import FINDING, UNKNOWN
from topology.readings.contents import Difference

_LEDGER_FILE: Final = record_of(
    file=TEXT,
    server_version=TEXT.or_null(),
    checksum=TEXT.or_null(),
    previous_gtids=TEXT.or_null(),
    gtid_set=TEXT,
    gtid_count=COUNT,
    transactions=NUMBER,
    bytes=NUMBER,
    end=NUMBER,
    first_at=TIME.or_null(),
    last_at=TIME.or_null(),
    error=LOG_ERROR.or_null(),
)
SCAN: Final = document_of(
    verdict=VERDICT,
    source=TEXT,
    out=TEXT.or_null(),
    transactions=NUMBER,
    bytes=NUMBER,
    gtid_set=TEXT,
    gtid_count=COUNT,
    anonymous=NUMBER,
    incomplete=NUMBER,
    with_errors=NUMBER,
    first_at=TIME.or_null(),
    last_at=TIME.or_null(),
    kinds=map_of(record_of(transactions=NUMBER, bytes=NUMBER)),
    largest=list_of(
        record_of(gtid=TEXT.or_null(), file=TEXT, start=NUMBER, bytes=NUMBER, kind=TEXT)
    ),
    tables=list_of(
        record_of(
            schema=TEXT, table=TEXT, rows_written=NUMBER, rows_updated=NUMBER, rows_deleted=NUMBER
        )
    ),
    files=list_of(_LEDGER_FILE),
)
_PLACE: Final = record_of(gtid=TEXT, start=NUMBER, end=NUMBER, is_complete=FLAG)
LOCATE: Final = document_of(
    verdict=VERDICT,
    source=TEXT,
    wanted=GTIDS,
    files=list_of(
        record_of(
            file=TEXT,
            gtid_set=TEXT,
            gtid_count=COUNT,
            transactions=list_of(_PLACE),
            transactions_left_out=NUMBER,
        )
    ),
    absent=list_of(record_of(reason=TEXT, gtid_set=TEXT, gtid_count=COUNT)),
    file_count=NUMBER,
    heads_read=NUMBER,
    errors=list_of(LOG_ERROR),
)
_UNREAD_LOG: Final = record_of(
    file=TEXT,
    has_previous_gtids=FLAG,
    anonymous_count=NUMBER.or_null(),
    ends_in_transaction=FLAG,
    error=LOG_ERROR.or_null(),
)
COVER: Final = document_of(
    **{"verdict": VERDICT, "from": TEXT},
    end=TEXT,
    hole=TEXT,
    hole_count=COUNT,
    beyond=TEXT,
    between=TEXT,
    files=FILES,
    needed=FILES,
    unread=list_of(_UNREAD_LOG),
    unchecked=FILES,
    new_histories=list_of(
        record_of(file=TEXT, before=TEXT, lost=TEXT, reused=TEXT, is_proved=FLAG)
    ),
    copies=list_of(record_of(file=TEXT, of=TEXT)),
)
_IMAGE: Final = map_of(ANYTHING)  # values by column; views/transactions_json.py has their forms
_ROWS: Final = record_of(
    schema=TEXT,
    table=TEXT,
    change=TEXT,
    position=NUMBER,
    names_from=words_of_enum(Origin),
    mismatch=TEXT.or_null(),
    key=list_of(TEXT).or_null(),
    rows=list_of(record_of(before=_IMAGE.or_absent(), after=_IMAGE.or_absent())),
)
_CONTENT: Final = choice_of(
    record_of(statement=TEXT, schema=TEXT, error_code=NUMBER), record_of(comment=TEXT), _ROWS
)
_SHOWN: Final = record_of(
    gtid=TEXT.or_null(),
    file=TEXT,
    start=NUMBER,
    end=NUMBER,
    kind=words_of_enum(TransactionKind),
    server_id=NUMBER,
    is_complete=FLAG,
    logged_at=TIME.or_null(),
    original_commit_at=TIME.or_null(),
    immediate_commit_at=TIME.or_null(),
    content=list_of(_CONTENT),
)
_MISFITS: Final = list_of(record_of(**COMPARED_DEFINITION_PARTS))
SHOW: Final = document_of(wanted=TEXT, transactions=list_of(_SHOWN), missing=TEXT, misfits=_MISFITS)
REPLAY: Final = document_of(
    direction=words_of_enum(Direction),
    wanted=TEXT,
    missing=TEXT,
    transactions=list_of(record_of(gtid=TEXT, problem=TEXT.or_null())),
    script=TEXT.or_null(),
    misfits=_MISFITS,
)
_VERSION: Final = record_of(
    server=TEXT, place=TEXT, committed_at=TIME.or_null(), logged_at=TIME, content=TEXT
)
_VALUES: Final = map_of(TEXT.or_null()).or_null()  # by column; null: there is no such row
COMPARE: Final = document_of(
    verdict=VERDICT,
    compared=record_of(**CONTENT_PARTS),
    gtid_count=COUNT,
    is_cut=FLAG,
    differences=list_of(
        record_of(
            gtid=TEXT,
            difference=words_of_enum(Difference),
            proved=FLAG,
            reason=TEXT,
            versions=list_of(_VERSION),
        )
    ),
    rows=record_of(
        rows=list_of(record_of(table=TEXT, key=TEXT, differs=FLAG, left=_VALUES, right=_VALUES)),
        unread=list_of(TEXT),
    ).or_null(),
    findings=list_of(FINDING.plain_type),
    unknown=list_of(UNKNOWN.plain_type),
)
