"""The types of the documents of `handshake`, `locks` and `snapshot`, and of the service.

views/handshakes.py and views/server_locks.py write the first two. The API has handshakes, too.
"""

from typing import Final

from gtid_audit.document_types.shared_types import SERVER_NOTE, UNREAD_FACT, VERDICT, document_of
from topology.documents.plain_types import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    list_of,
    record_of,
    words_of_enum,
)
from topology.facts.source_answer import FailedCheck, Outcome

_ANSWER: Final = record_of(
    source=TEXT,
    replica=TEXT,
    outcome=words_of_enum(Outcome),
    refusal=words_of_enum(FailedCheck).or_null(),
    gtid_set=TEXT,
    gtid_count=COUNT,
    different_content=TEXT,
    fetched=TEXT,
    dropped=TEXT,
    ahead=TEXT,
    received=TEXT,
    errno=NUMBER.or_null(),
    text=TEXT.or_null(),
    text_seen_on=TEXT.or_null(),
    doubts=list_of(TEXT),
    served_until=TIME.or_null(),
    served_from=TEXT.or_null(),
    unread=TEXT.or_null(),
    group=TEXT.or_null(),
    joins=TEXT.or_null(),
    through=TEXT.or_null(),
)
_PROMOTION: Final = record_of(
    candidate=TEXT,
    best=TEXT,
    arrives=TEXT,
    unapplied=list_of(record_of(server=TEXT, gtid_set=TEXT)),
    missing=list_of(
        record_of(
            gtid_set=TEXT, donor=TEXT.or_null(), receiver=TEXT.or_null(), holders=list_of(TEXT)
        )
    ),
    breaks=list_of(record_of(server=TEXT, donor=TEXT.or_null())),
    steps=list_of(record_of(server=TEXT.or_null(), what=TEXT, sql=list_of(TEXT))),
)
HANDSHAKE: Final = document_of(
    cluster=TEXT,
    read_at=TIME.or_null(),
    verdict=VERDICT,
    servers=list_of(TEXT),
    offered=TEXT.or_null(),
    answers=list_of(_ANSWER),
    groups=list_of(
        record_of(name=TEXT, primaries=list_of(TEXT), members=list_of(TEXT), outside=list_of(TEXT))
    ),
    contents_compared=list_of(list_of(TEXT)),
    promotion=_PROMOTION.or_null(),
    unknown=list_of(SERVER_NOTE),
)
_SESSION: Final = record_of(
    session_id=NUMBER,
    user=TEXT.or_null(),
    host=TEXT.or_null(),
    command=TEXT,
    state=TEXT.or_null(),
    seconds=NUMBER.or_null(),
    query=TEXT.or_null(),
    transaction_seconds=NUMBER.or_null(),
    transaction_rows=NUMBER.or_null(),
    gtid=TEXT.or_null(),
    channel=TEXT.or_null(),
    worker=NUMBER.or_null(),
    statements=list_of(TEXT),
)
_WAIT: Final = record_of(
    session=_SESSION,
    lock=TEXT,
    place=TEXT.or_null(),
    blocked_by=list_of(_SESSION),
    blocked_without_session=FLAG,
    holder_is_known=FLAG,
    may_be_one_of=FLAG,
    ends_with=list_of(NUMBER),
    sql=list_of(TEXT),
)
LOCKS: Final = document_of(
    verdict=VERDICT,
    servers=list_of(record_of(server=TEXT, verdict=VERDICT, waits=list_of(_WAIT))),
    unknown=list_of(UNREAD_FACT),
)
SNAPSHOT_RUN: Final = document_of(
    run=TEXT,
    read_ended=TIME,
    clusters=NUMBER,
    servers=NUMBER,
    unread_facts=NUMBER,
    contents_compared=NUMBER.or_null(),
    partial=FLAG,
)
SERVING: Final = document_of(host=TEXT, port=NUMBER, url=TEXT)
