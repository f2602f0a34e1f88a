"""Finds the transactions of a large file that have rows and nothing else, and reads their rows.

How it works
------------
The decoder makes several objects of each event, for any type and any reader. Of a transaction that
only changed rows, a script needs the TABLE_MAPs and the row events:

    GTID, BEGIN, { ROWS_QUERY, TABLE_MAP, row event }, XID or COMMIT

`transactions` goes from header to header. Of a wanted transaction it verifies each checksum, and
yields its row events (`RowTransaction`), or, for any other content and for any damage, the range of
bytes up to the next GTID event (`OtherRange`). The decoder then reads that range, and raises its
errors. So nothing is refused or accepted here that it would not.

A row event begins with its head: flags, number and bitmaps of columns. Heads are few. So of each
row event 20 bytes are kept: its place, where its images are, and the number of its head. `rows_of`
reads the images, as often as the caller likes, one event at a time.
"""

from __future__ import annotations

import os
import struct
import weakref
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import BinaryIO, Final, TypeAlias

from binlog.adapters.byte_ranges import read_between
from binlog.adapters.compression import find_decompressor
from binlog.adapters.wanted_events import is_relay_log
from binlog.bodies import BODY_READERS
from binlog.cursor import Cursor, MalformedBody
from binlog.event_types import GTID_EVENTS, ROW_EVENTS, EventType
from binlog.events import ChecksumAlgorithm, FormatDescription, Rows, TableMap
from binlog.header import EVENT_BYTES_MAX, FLAG_ARTIFICIAL, HEADER_BYTES, EventHeader
from binlog.rows.tables import RowTable
from binlog.rows.values import LoggedRows
from binlog.scan import (
    BYTES_MAX,
    EventGroup,
    LogHead,
    MakeStore,
    group_events,
    scan_events,
)
from gtid import Gtid, GtidSet, Tsid

_HEADER = struct.Struct("<IBIIIH")
_GTID, _QUERY, _XID = int(EventType.GTID), int(EventType.QUERY), int(EventType.XID)
_TABLE_MAP, _ROWS_QUERY = int(EventType.TABLE_MAP), int(EventType.ROWS_QUERY)
_GROUP_BEGINS = frozenset(map(int, GTID_EVENTS))
_ROWS = frozenset(map(int, ROW_EVENTS))
_UUID_END, _GNO = 17, struct.Struct("<q")
_GTID_BYTES = _UUID_END + _GNO.size
# Of a QUERY's fixed part: the lengths of the schema and of the status variables.
_QUERY_POST_HEADER = struct.Struct("<8xBxxH")
_TABLE_ID_BYTES: Final = 6
_BUFFER_BYTES: Final = 256 * 1024
_TABLES_MAX: Final = 1024
# Fewer bytes are decoded in no time.
LARGE_BYTES: Final = 1024 * 1024

# Returns the table of a TABLE_MAP; the position is that of its transaction.
Describe: TypeAlias = "Callable[[TableMap, int], RowTable]"


@dataclass(frozen=True, slots=True)
class RowTransaction:
    """A transaction with rows only: its row events are numbered in its RowLog, `end` excluded.

    `heads` are those of its row events, each once, with the first byte of the images of one.
    """

    gtid: Gtid
    begin: int
    end: int
    heads: tuple[LoggedRows, ...]


@dataclass(frozen=True, slots=True)
class OtherRange:
    """Bytes that the decoder must read: a transaction of another kind, or damage, up to `end`."""

    start: int
    end: int


class _Unlike(Exception):
    """The transaction has other events than rows, or is damaged."""


class RowLog:
    """One large file, not a relay log. It is opened when it is read; `close` closes it."""

    def __init__(self, path: Path, log: LogHead, describe: Describe) -> None:
        self._path = path
        self._log = log
        self._describe = describe
        self._opened: BinaryIO | None = None
        checksum = log.description.checksum
        self._trailer = checksum.trailer_bytes
        self._verifies = checksum is ChecksumAlgorithm.CRC32
        self._table_maps: dict[bytes, TableMap] = {}
        # Of each row event: its place, the begin and length of its images in its body, its head.
        self._places, self._begins = array("Q"), array("I")
        self._lengths, self._heads = array("I"), array("I")
        self._known_heads: list[LoggedRows] = []
        self._numbers: dict[tuple[int, int, bytes], int] = {}
        self._head_bytes: dict[tuple[int, int], int] = {}

    @property
    def _file(self) -> BinaryIO:
        if self._opened is None:
            self._opened = self._path.open("rb", buffering=_BUFFER_BYTES)
            weakref.finalize(self, self._opened.close)
        return self._opened

    def close(self) -> None:
        """Close the file until it is read again."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def transactions(self, wanted: GtidSet) -> Iterator[RowTransaction | OtherRange]:
        """Yield the wanted transactions in order. Other ranges may have unwanted ones, too."""
        file, intervals = self._file, _Intervals(wanted)
        at, file_end = self._log.first_position, self._path.stat().st_size
        while at < file_end:
            file.seek(at)
            code, size = self._header()
            end = at + size
            if size == 0 or end > file_end or (code in _GROUP_BEGINS and code != _GTID):
                end = self._range_end(at, file_end)
                yield OtherRange(at, end)
            elif code == _GTID and (gtid := intervals.gtid(file.read(_GTID_BYTES))) is not None:
                begin = len(self._places)
                try:
                    end = self._note(at)
                except (_Unlike, MalformedBody):
                    for column in (self._places, self._begins, self._lengths, self._heads):
                        del column[begin:]
                    end = self._range_end(at, file_end)
                    yield OtherRange(at, end)
                else:
                    heads = tuple(
                        self._known_heads[each] for each in sorted({*self._heads[begin:]})
                    )
                    yield RowTransaction(gtid, begin, len(self._places), heads)
            at = end

    def rows_of(self, first: int, end: int) -> Iterator[LoggedRows]:
        """Yield the row events of a transaction that `transactions` has yielded."""
        file = self._file.fileno()
        for number in range(first, end):
            place, head = self._places[number], self._known_heads[self._heads[number]]
            begin, length = self._begins[number], self._lengths[number]
            images = os.pread(file, length, place + HEADER_BYTES + begin)
            if len(images) < length:
                raise OSError(f"{self._path} was changed while it was read")
            rows = head.rows
            whole = Rows(
                rows.table_id,
                rows.kind,
                rows.column_count,
                rows.columns_before,
                rows.columns_after,
                images,
                rows.is_partial,
                rows.flags,
            )
            yield LoggedRows(head.table, whole, self._path.name, place)

    def _header(self) -> tuple[int, int]:
        """Return the type and size of the next event; a size of 0 if there is no sound header."""
        head = self._file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            return 0, 0
        _time, code, _server, size, _position, flags = _HEADER.unpack(head)
        is_sound = HEADER_BYTES <= size <= EVENT_BYTES_MAX and not flags & FLAG_ARTIFICIAL
        return code, size if is_sound else 0

    def _range_end(self, start: int, file_end: int) -> int:
        """Return where the next GTID event begins, or the end of the file."""
        at = start
        while at < file_end:
            self._file.seek(at)
            code, size = self._header()
            if size == 0:
                break
            if at > start and code in _GROUP_BEGINS:
                return at
            at += size
        return file_end

    def _event(self) -> tuple[int, int, bytes]:
        """Return type, size and body of the next event. Raises _Unlike if its bytes are damaged."""
        file = self._file
        head = file.read(HEADER_BYTES)
        if len(head) < HEADER_BYTES:
            raise _Unlike
        _time, code, _server, size, _position, flags = _HEADER.unpack(head)
        length = size - HEADER_BYTES
        if not self._trailer <= length <= EVENT_BYTES_MAX or flags & FLAG_ARTIFICIAL:
            raise _Unlike
        body = file.read(length)
        if len(body) < length:
            raise _Unlike
        if self._trailer:
            content = body[: -self._trailer]
            if self._verifies:
                stored = int.from_bytes(body[-self._trailer :], "little")
                if zlib.crc32(content, zlib.crc32(head)) != stored:
                    raise _Unlike
            return code, size, content
        return code, size, body

    def _note(self, start: int) -> int:
        """Note the row events of a transaction, and return its end. Raises _Unlike, MalformedBody.

        A transaction without rows is unlike, too.
        """
        self._file.seek(start)
        tables: dict[bytes, RowTable] = {}
        at, is_begun, has_rows = start + self._event()[1], False, False
        while True:
            code, size, body = self._event()
            if code == _QUERY:
                if is_begun and has_rows and self._is_word(body, b"COMMIT"):
                    return at + size
                if is_begun or not self._is_word(body, b"BEGIN"):
                    raise _Unlike
                is_begun = True
            elif not is_begun:
                raise _Unlike
            elif code in _ROWS:
                if (table := tables.get(body[:_TABLE_ID_BYTES])) is None:
                    raise _Unlike
                self._note_rows(at, code, body, table)
                has_rows = True
            elif code == _TABLE_MAP:
                tables[body[:_TABLE_ID_BYTES]] = self._describe(self._table_map(body), start)
            elif code == _XID and has_rows:
                return at + size
            elif code != _ROWS_QUERY:
                raise _Unlike
            at += size

    def _note_rows(self, place: int, code: int, body: bytes, table: RowTable) -> None:
        """Note a row event. Equal first bytes of an event of one type and table are one head."""
        kind = (id(table), code)
        begin = self._head_bytes.get(kind, 0)
        key = (*kind, body[_TABLE_ID_BYTES:begin])
        number = self._numbers.get(key) if begin else None
        if number is None:
            read = BODY_READERS[code](Cursor(body), _HEADERS[code], self._log.description)
            assert isinstance(read, Rows)
            begin = len(body) - len(read.images)
            self._head_bytes[kind] = begin
            key = (*kind, body[_TABLE_ID_BYTES:begin])
            number = self._numbers.setdefault(key, len(self._known_heads))
            if number == len(self._known_heads):
                head = replace(read, images=read.images[:1])
                self._known_heads.append(LoggedRows(table, head, self._path.name, place))
        if len(body) == begin:
            raise _Unlike
        self._places.append(place)
        self._begins.append(begin)
        self._lengths.append(len(body) - begin)
        self._heads.append(number)

    def _is_word(self, body: bytes, word: bytes) -> bool:
        """Return whether the text of a QUERY is a word of the server itself."""
        if len(body) < _QUERY_POST_HEADER.size or not body.endswith(word):
            return False
        schema_bytes, variable_bytes = _QUERY_POST_HEADER.unpack_from(body)
        post_header = self._log.description.fixed_bytes(_QUERY)
        length: int = post_header + variable_bytes + schema_bytes + 1 + len(word)
        return length == len(body)

    def _table_map(self, body: bytes) -> TableMap:
        """Return the same object for equal bytes."""
        if (known := self._table_maps.get(body)) is not None:
            return known
        description = self._log.description
        read = BODY_READERS[_TABLE_MAP](Cursor(body), _HEADERS[_TABLE_MAP], description)
        assert isinstance(read, TableMap)
        if len(self._table_maps) >= _TABLES_MAX:
            self._table_maps.clear()
        self._table_maps[body] = read
        return read


# The readers of bodies look at the type alone.
_HEADERS = {code: EventHeader(0, code, 0, 0, 0, 0) for code in (_TABLE_MAP, *_ROWS)}


class _Intervals:
    """The wanted GTIDs without a tag, by the bytes of their UUID."""

    def __init__(self, wanted: GtidSet) -> None:
        self._tsids: dict[bytes, Tsid] = {}
        self._begins: dict[bytes, list[int]] = {}
        self._ends: dict[bytes, list[int]] = {}
        for tsid, begin, end in wanted.intervals():
            if not tsid.tag:
                key = tsid.uuid.bytes
                self._tsids[key] = tsid
                self._begins.setdefault(key, []).append(begin)
                self._ends.setdefault(key, []).append(end)

    def gtid(self, body: bytes) -> Gtid | None:
        """Return the GTID at the begin of an event's body, if it is wanted."""
        uuid = body[1:_UUID_END]
        if uuid not in self._tsids or len(body) < _GTID_BYTES:
            return None
        [gno] = _GNO.unpack_from(body, _UUID_END)
        at = bisect_right(self._begins[uuid], gno) - 1
        return Gtid(self._tsids[uuid], gno) if at >= 0 and gno < self._ends[uuid][at] else None


def is_large(path: Path) -> bool:
    """Return whether a file is large enough, and of a kind, for a RowLog."""
    return path.stat().st_size >= LARGE_BYTES and not is_relay_log(path)


def groups_between(
    path: Path, found: OtherRange, wanted: GtidSet, *, store: MakeStore
) -> Iterator[EventGroup]:
    """Yield the wanted transactions of a range with their events. See `FileLogs.events_of`."""
    header = next(scan_events(read_between(path), file=path.name))
    assert isinstance(header.body, FormatDescription), "a file that has a head begins with it"
    events = scan_events(
        read_between(path, found.start, found.end),
        file=path.name,
        position=found.start,
        description=header.body,
    )
    yield from group_events(
        chain([header], events),
        wanted,
        decompress=find_decompressor(),
        bytes_max=BYTES_MAX,
        store=store,
        counts_rows=False,
    )
