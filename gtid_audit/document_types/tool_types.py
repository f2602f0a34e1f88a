"""The types of the documents of commands that need no server: sets, texts, and files of ours."""

from typing import Final

from gtid_audit.document_types.shared_types import FILES, GRADE, SEVERITY, document_of
from topology.documents.plain_types import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    TIME,
    choice_of,
    list_of,
    record_of,
    words_of,
)

_DESCRIBED_SET: Final = record_of(
    gtid_set=TEXT,
    gtid_count=COUNT,
    interval_count=NUMBER,
    tsid_count=NUMBER,
    tsids=list_of(
        record_of(uuid=TEXT, tag=TEXT, gtid_set=TEXT, gtid_count=COUNT, interval_count=NUMBER)
    ),
)
SETS: Final = document_of(operation=TEXT, result=choice_of(_DESCRIBED_SET, COUNT, FLAG))
SETS_DIFF: Final = document_of(
    operation=words_of("diff"),
    relation=TEXT,
    only_a=_DESCRIBED_SET,
    only_b=_DESCRIBED_SET,
    both=_DESCRIBED_SET,
)
_QUOTED_SET: Final = record_of(what=TEXT, gtid_set=TEXT, gtid_count=COUNT)
# The texts of a report: `set` has a letter for each server_uuid, and is null if there is none.
_EXAMPLE: Final = record_of(
    severity=SEVERITY, grade=GRADE, where=TEXT, what=TEXT, set=TEXT.or_null()
)
EXPLANATION: Final = document_of(
    title=TEXT.or_null(),
    code=TEXT.or_null(),
    meaning=TEXT,
    cause=TEXT,
    advice=list_of(TEXT),
    gtid_sets=list_of(_QUOTED_SET),
    computed_sets=list_of(_QUOTED_SET),
    example=_EXAMPLE.or_null(),
)
_EPISODE: Final = record_of(
    id=TEXT,
    code=TEXT,
    name=TEXT,
    severity=SEVERITY,
    cluster=TEXT,
    source=TEXT.or_null(),
    replica=TEXT.or_null(),
    channel=TEXT.or_null(),
    first_seen=TIME,
    last_seen=TIME,
    ended_at=TIME.or_null(),
    ending=TEXT.or_null(),
)
HISTORY: Final = document_of(episodes=list_of(_EPISODE))
MONITORING: Final = document_of(files=FILES)
COMPLETION: Final = document_of(shell=words_of("bash", "zsh", "fish"), script=TEXT)
MANUAL: Final = document_of(manual=TEXT)
QUESTIONS: Final = document_of(version=TEXT, script=TEXT)
