"""The decoded content of each event type.

1. The classes are frozen data with the names of the MySQL manual; this file does not read bytes.
2. An event of a type that gtid-audit does not decode is `Opaque`: kept, never skipped silently.
3. Times are in microseconds since 1970-01-01 UTC if MySQL logs them so, else in seconds.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from binlog.event_types import RowKind
from binlog.header import EventHeader
from gtid import Gtid, GtidSet


class ChecksumAlgorithm(IntEnum):
    """The checksum of events (enum_binlog_checksum_alg, libs/mysql/binlog/event/binlog_event.h)."""

    NONE = 0
    CRC32 = 1
    # The writer is older than 5.6.1 and has no checksums. Equivalent to NONE.
    UNDEFINED = 255

    @property
    def trailer_bytes(self) -> int:
        """The bytes of checksum at the end of every event."""
        return 4 if self is ChecksumAlgorithm.CRC32 else 0


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """The first event of a file: the server that wrote it, and the layout of later events."""

    binlog_version: int
    server_version: str
    created_at_seconds: int
    checksum: ChecksumAlgorithm
    # post_header_bytes[type - 1] is the length of the fixed part of an event of that type.
    post_header_bytes: bytes
    # The file was not closed: its server is still writing it, or crashed while writing it.
    is_in_use: bool

    def fixed_bytes(self, type_code: int) -> int:
        """Return the length of the fixed part of an event of a type: its post-header."""
        return self.post_header_bytes[type_code - 1]


@dataclass(frozen=True, slots=True)
class Rotate:
    """The log continues in `next_file` at `next_position`."""

    next_file: str
    next_position: int


@dataclass(frozen=True, slots=True)
class GtidLog:
    """The first event of a transaction: GTID (33), anonymous (34) or tagged (42).

    Timestamps (microseconds) exist since 8.0.1, `transaction_bytes` since 8.0.2, versions since
    8.0.14, the logical clock since 5.7.6; in earlier versions they are None. `transaction_bytes`
    counts from this event's first byte to the end of the transaction's last event.
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
    """The GTIDs that the server had logged before this file began."""

    gtids: GtidSet


@dataclass(frozen=True, slots=True)
class Query:
    """One statement as it ran on the server with the `server_id` of the header."""

    thread_id: int
    execution_seconds: int
    # The error of the statement on the source. A replica must get the same error, or it stops.
    error_code: int
    schema: str
    # As the client sent it, in the client's character set (`charset_client`).
    sql: bytes
    sql_mode: int | None
    charset_client: int | None
    # The default collation of CREATE DATABASE (collation_server of the session).
    collation_server: int | None = None
    # Whether a TIMESTAMP without NULL or NOT NULL is nullable. Logged with DDL since 8.0.
    explicit_defaults_for_timestamp: bool | None = None
    # Every numeric status variable, by its code (Query_event_status_vars, statement_events.h): the
    # settings of the statement's session.
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
    """Assigns a table the number that later row events use for it."""

    table_id: int
    schema: str
    table: str
    column_types: bytes
    # One entry per column: the metadata of its type (rows_event.h), 0 if the type has none.
    column_metadata: tuple[int, ...]
    # One bit per column, lowest first: whether it is nullable on the server that wrote the event.
    nullable: bytes = b""
    # From 8.0.1 on, as bytes: binlog/table_metadata.py decodes it on demand.
    optional_metadata: bytes = b""


@dataclass(frozen=True, slots=True)
class Rows:
    """Row images, not decoded: contiguous in `images`; binlog/rows/images.py separates them."""

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
    """The statement that caused the following row events (binlog_rows_query_log_events=ON)."""

    sql: bytes


@dataclass(frozen=True, slots=True)
class TransactionPayload:
    """A whole compressed transaction; `decode.events_in_payload` decompresses `payload`."""

    # Transaction_payload_event, compression/base.h: 0 is ZSTD, 255 is not compressed.
    compression_type: int
    uncompressed_bytes: int | None
    payload: bytes


@dataclass(frozen=True, slots=True)
class Stop:
    """The server that wrote the file was shut down normally."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The sender is alive, has no event to send, and has reached `position` of `file`."""

    file: str
    position: int


@dataclass(frozen=True, slots=True)
class Incident:
    """The source reports that events are missing in its log here (LOST_EVENTS)."""

    number: int
    message: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """An event whose content gtid-audit does not decode. Its type is in the header."""

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
    """One event and its position. `end` is exclusive; both count from the file's first byte.

    Events in a compressed payload have the `start` and `end` of the payload. An artificial event (a
    dump's own ROTATE, a heartbeat) is in no file: its `start` equals its `end`.
    """

    file: str
    start: int
    end: int
    header: EventHeader
    body: Body

    def __post_init__(self) -> None:
        assert 0 <= self.start <= self.end
