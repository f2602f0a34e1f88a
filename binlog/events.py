"""What an event says, once its bytes have been read.

1. Plain frozen facts, named as in the MySQL manual; no bytes are counted here.
2. An event of a type we do not read is `Opaque`: kept, never skipped silently.
3. Times are microseconds since 1970-01-01 UTC where MySQL has them, seconds where it has not.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from binlog.event_types import RowKind
from binlog.header import EventHeader
from gtid import Gtid, GtidSet


class ChecksumAlgorithm(IntEnum):
    """What guards each event (enum_binlog_checksum_alg, libs/mysql/binlog/event/binlog_event.h)."""

    NONE = 0
    CRC32 = 1
    # A writer older than 5.6.1, which knew no checksums. As good as NONE.
    UNDEFINED = 255

    @property
    def trailer_bytes(self) -> int:
        """Bytes of checksum at the end of every event."""
        return 4 if self is ChecksumAlgorithm.CRC32 else 0


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The first event of a file: who wrote it and how the events after it are laid out."""

    binlog_version: int
    server_version: str
    created_at_seconds: int
    checksum: ChecksumAlgorithm
    # post_header_bytes[type - 1] is the length of the fixed part of an event of that type.
    post_header_bytes: bytes
    # The file had not been closed: its server is still writing it, or died while writing it.
    is_in_use: bool


@dataclass(frozen=True, slots=True)
class Rotate:
    """The log goes on in `next_file` at `next_position`."""

    next_file: str
    next_position: int


@dataclass(frozen=True, slots=True)
class GtidLog:
    """The head of a transaction: GTID (33), anonymous (34) or tagged (42) event.

    Timestamps (microseconds) exist since 8.0.1, `transaction_bytes` since 8.0.2, versions since
    8.0.14, the logical clock since 5.7.6; before, they are None. `transaction_bytes` counts from
    this event's first byte to the end of the transaction's last event.
    """

    gtid: Gtid | None
    logical_last_committed: int | None = None
    logical_sequence_number: int | None = None
    original_commit_timestamp: int | None = None
    immediate_commit_timestamp: int | None = None
    transaction_bytes: int | None = None
    original_server_version: int | None = None
    immediate_server_version: int | None = None


@dataclass(frozen=True, slots=True)
class PreviousGtids:
    """All that the server had logged before this file began."""

    gtids: GtidSet


@dataclass(frozen=True, slots=True)
class Query:
    """One statement, as it ran on the server whose `server_id` the header carries."""

    thread_id: int
    execution_seconds: int
    # The error the statement ended with on the source. A replica must get the same, or it stops.
    error_code: int
    schema: str
    # As the client sent it, in the client's character set (`charset_client`).
    sql: bytes
    sql_mode: int | None
    charset_client: int | None
    # The collation CREATE DATABASE takes where none is said (collation_server of the session).
    collation_server: int | None = None
    # Whether a TIMESTAMP may be NULL where nothing is said. Logged with DDL since 8.0.
    explicit_defaults_for_timestamp: bool | None = None
    # Every status variable that is a number, by its code (Query_event_status_vars,
    # statement_events.h): the session the statement ran in.
    status: tuple[tuple[int, int], ...] = ()
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Xid:
    """The commit of a transactional engine."""

    xid: int


@dataclass(frozen=True, slots=True)
class XaPrepare:
    """XA PREPARE, or XA COMMIT … ONE PHASE: the group ends here."""

    is_one_phase: bool


@dataclass(frozen=True, slots=True)
class TableMap:
    """Gives a table the number by which the row events after it call it."""

    table_id: int
    schema: str
    table: str
    column_types: bytes
    # One entry per column: the metadata its type carries (rows_event.h), 0 if it carries none.
    column_metadata: tuple[int, ...]
    # One bit per column, lowest first: may it be NULL? As the table was on its server.
    nullable: bytes = b""
    # From 8.0.1 on, not read yet: `table_metadata` reads it for those who need it.
    optional_metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class Rows:
    """Row images, not decoded: one after another in `images`, as `row_images` walks them."""

    table_id: int
    kind: RowKind
    column_count: int
    columns_before: bytes
    columns_after: bytes
    images: bytes
    is_partial: bool
    # Rows_event::enum_flag, rows_event.h: 1 ends the statement, 2 no foreign key checks, 4 relaxed
    # unique checks, 8 whole rows.
    flags: int = 0


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """The statement behind the row events that follow (binlog_rows_query_log_events=ON)."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class TransactionPayload:
    """A whole transaction, compressed. `payload` still is; see `decode.events_in_payload`."""

    # Transaction_payload_event, compression/base.h: 0 is ZSTD, 255 is not compressed.
    compression_type: int
    uncompressed_bytes: int | None
    payload: bytes


@dataclass(frozen=True, slots=True)
class Stop:
    """The server that wrote the file was shut down in good order."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The sender is alive, has nothing to say, and stands at `position` of `file`."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class Incident:
    """The source knows that its log misses something here (LOST_EVENTS)."""

    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """An event whose content we have no use for yet. Its type is in the header."""

    body: bytes


Body: TypeAlias = (
    FormatDescription
    | Rotate
    | GtidLog
    | PreviousGtids
    | Query
    | Xid
    | XaPrepare
    | TableMap
    | Rows
    | RowsQuery
    | TransactionPayload
    | Stop
    | Heartbeat
    | Incident
    | Opaque
)


@dataclass(frozen=True, slots=True)
class Event:
    """One event and where it stands. `end` is exclusive; both count from the file's first byte.

    Events inside a compressed payload carry the payload's own `start` and `end`. An artificial
    event (a dump's made-up ROTATE, a heartbeat) is in no file: its `start` equals its `end`.
    """

    file: str
    start: int
    end: int
    header: EventHeader
    body: Body

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end
