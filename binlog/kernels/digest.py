"""The digest of many transactions at once: what binlog/content/digest.py defines, compiled.

1. A transaction is bytes from its first event to the end of its last, of a file or of what a
   payload held; the answer is its digest, or the wish that somebody else look: PAYLOAD (it is
   compressed), ASK (something rare, or wrong, for which binlog/content/digest.py has the words).
2. Nothing is read but events that lie within the range, and within an event nothing beyond its end:
   every length is compared with what is left before it is used.
3. A table's columns stand in a pool; when it, or the list of tables, is full, the answer is ASK.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gtid.jit import kernel
from gtid.kernels.hashing import SEED, finish, integer, mix, mix_bytes
from gtid.kernels.words import Bytes, Numbers, Words, load_byte, load_eight

# What becomes of a transaction.
DIGEST, PAYLOAD, ASK = range(3)

TABLES_MAX: Final = 64
COLUMNS_MAX: Final = 16_384

_HEADER: Final = 19
# As in binlog/content/digest.py; a test holds them together. (What is imported from there would be
# compiled in, and stay when it changes.)
_STATEMENT, _CONTEXT, _ROWS = np.uint64(1), 2, np.uint64(16)
_NOTHING: Final = np.uint64((1 << 64) - 1)
_ZERO, _ONE = np.uint64(0), np.uint64(1)

# What an event is here.
_SKIP, _QUERY, _TABLE, _WRITE, _UPDATE, _DELETE, _VARIABLE, _PACKED, _RARE = range(9)
_ROLES = np.full(256, _RARE, np.uint8)
_ROLES[[16, 28, 29, 33, 34, 36, 38, 42]] = _SKIP
_ROLES[[2, 19, 40]] = _QUERY, _TABLE, _PACKED
_ROLES[[23, 30]], _ROLES[[24, 31]], _ROLES[[25, 32]] = _WRITE, _UPDATE, _DELETE
_ROLES[[5, 13, 14]] = _VARIABLE
_FIRST_V2: Final = 30  # row events before it have no extra data

# `work`: the state of the digest, and the run of rows it is in.
_STATE, _IN_RUN, _RUN_KIND, _RUN_FORM, _RUN_SUM, _RUN_COUNT = range(6)
_WORK_SIZE: Final = 6

# The bytes of a value by its type, or the rule by which its metadata tell them.
_SIZED, _BLOB, _VARCHAR, _STRING, _DECIMAL, _BIT, _TEMPORAL, _UNKNOWN = range(-108, -100)
_LENGTHS = np.full(256, _UNKNOWN, np.int64)
_LENGTHS[[1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14]] = 1, 2, 4, 0, 4, 8, 3, 3, 3, 8, 1, 3
_LENGTHS[[4, 5]], _LENGTHS[15], _LENGTHS[254] = _SIZED, _VARCHAR, _STRING
_LENGTHS[[247, 248]] = _STRING
_LENGTHS[[242, 245, 249, 250, 251, 252, 255]] = _BLOB
_LENGTHS[246], _LENGTHS[16] = _DECIMAL, _BIT
_LENGTHS[[17, 18, 19]] = _TEMPORAL
# Bytes of metadata in a TABLE_MAP; of two the first is the higher one, but for VARCHAR and BIT.
_META_BYTES = np.zeros(256, np.int64)
_META_BYTES[[4, 5, 17, 18, 19, 245, 242, 249, 250, 251, 252, 255]] = 1
_META_BYTES[[15, 16, 246, 247, 248, 253, 254]] = 2
_DIGIT_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
# Status variables of a statement (statement_events.h), by their size; -1: a length comes first,
# -2: two of those, -3: names, -4: with a zero behind, -5: unknown, which ends the list.
_VARIABLES = np.full(256, -5, np.int64)
_VARIABLES[[0, 1, 3, 4, 7, 8, 9, 10, 13]] = 4, 8, 4, 6, 2, 2, 8, 4, 3
_VARIABLES[[14, 15, 16, 17, 18, 19, 20]] = 8, 16, 1, 8, 2, 1, 1
_VARIABLES[[2, 5, 6, 11, 12]] = -4, -1, -1, -2, -3
_SCHEMAS_MAX: Final = 16
_BEGIN, _COMMIT = np.frombuffer(b"BEGIN", np.uint8), np.frombuffer(b"COMMIT", np.uint8)
_ROLLBACK, _XA = np.frombuffer(b"ROLLBACK", np.uint8), np.frombuffer(b"XA ", np.uint8)


@kernel
def digest_ranges(
    address: int,
    starts: Numbers,
    ends: Numbers,
    trailer: int,
    query_post: int,
    digests: Words,
    answers: Bytes,
) -> None:
    """Digest the transactions that begin and end at these offsets from `address`.

    `trailer` is what of each event is its checksum, `query_post` the length of a statement's fixed
    part. Of a PAYLOAD, `digests` has the offset of the event.
    """
    work = np.empty(_WORK_SIZE, np.uint64)
    tables = np.empty((TABLES_MAX, 3), np.int64)
    keys = np.empty(TABLES_MAX, np.uint64)
    columns = np.empty(COLUMNS_MAX, np.int64)
    for row in range(len(starts)):
        at, end, count, pooled = starts[row], ends[row], 0, 0
        work[_STATE], work[_IN_RUN] = SEED, _ZERO
        answers[row] = DIGEST
        while at < end:
            if end - at < _HEADER:
                answers[row] = ASK
                break
            event = address + at
            size, code = integer(event + 9, 4), np.int64(load_byte(event + 4))
            body, stop = event + _HEADER, event + size - trailer
            if size > end - at or stop < body:
                answers[row] = ASK
                break
            role = _ROLES[code]
            if role == _PACKED:
                answers[row], digests[row] = PAYLOAD, np.uint64(at)
                break
            if role == _QUERY:
                sound = _add_query(body, stop, query_post, work)
            elif role == _TABLE:
                room = pooled
                pooled = _add_table(body, stop, count, pooled, tables, keys, columns)
                sound = pooled >= room
                count += 1
            elif role == _VARIABLE:
                _end_run(work)
                tag = np.uint64(_CONTEXT + (code << 8))
                work[_STATE] = mix_bytes(mix(work[_STATE], tag), body, stop)
                sound = True
            elif _WRITE <= role <= _DELETE:
                is_v2 = code >= _FIRST_V2
                sound = _add_rows(body, stop, role, is_v2, count, tables, keys, columns, work)
            else:
                sound = role == _SKIP
            if not sound:
                answers[row] = ASK
                break
            at += size
        if answers[row] == DIGEST:
            _end_run(work)
            digests[row] = finish(work[_STATE])


@kernel
def _net(at: int, stop: int) -> tuple[int, int]:
    """Read a length-encoded number: it and where it ends; that is 0 if it cannot be."""
    if at >= stop:
        return 0, 0
    first = integer(at, 1)
    if first < 251:
        return first, at + 1
    count = 2 if first == 252 else 3 if first == 253 else 0
    if count == 0 or stop - at <= count:  # nothing here is counted in eight bytes
        return 0, 0
    return integer(at + 1, count), at + 1 + count


@kernel
def _end_run(work: Words) -> None:
    if work[_IN_RUN] != _ZERO:
        state = mix(work[_STATE], _ROWS + work[_RUN_KIND])
        state = mix(mix(state, work[_RUN_FORM]), work[_RUN_COUNT])
        work[_STATE] = mix(state, work[_RUN_SUM])
        work[_IN_RUN] = _ZERO


@kernel
def _add_query(at: int, stop: int, post: int, work: Words) -> bool:
    """Put a statement into the digest; False if it does not hold what it should."""
    if post < 13 or stop - at < post:
        return False
    schema_bytes, error_code = integer(at + 8, 1), integer(at + 9, 2)
    variables = at + post
    schema = variables + integer(at + 11, 2)
    sql = schema + schema_bytes + 1
    if sql > stop or load_byte(sql - 1) != _ZERO:
        return False
    if _is(sql, stop, _BEGIN) or _is(sql, stop, _COMMIT) or _is(sql, stop, _ROLLBACK):
        return True
    sql_mode, charset, is_sound = _settings(variables, schema)
    if not is_sound:
        return False
    _end_run(work)
    state = mix(mix(work[_STATE], _STATEMENT), np.uint64(error_code))
    if stop - sql >= 3 and _is(sql, sql + 3, _XA):
        state = mix_bytes(mix(mix(state, _NOTHING), _NOTHING), schema, schema)
    else:
        state = mix_bytes(mix(mix(state, sql_mode), charset), schema, sql - 1)
    work[_STATE] = mix_bytes(state, sql, stop)
    return True


@kernel
def _is(at: int, stop: int, word: Bytes) -> bool:
    place, length = 0, len(word)
    while place < length and at + place < stop and integer(at + place, 1) == word[place]:
        place += 1
    return place == length and at + place == stop


@kernel
def _settings(at: int, stop: int) -> tuple[int, int, bool]:
    """Find sql_mode and the client's character set among the status variables."""
    sql_mode, charset = _NOTHING, _NOTHING
    while at < stop:
        code = integer(at, 1)
        size = _VARIABLES[code]
        at += 1
        if size == -5:
            break
        if size < 0 and at >= stop:
            return sql_mode, charset, False
        if size == -3:
            at = _behind_names(at, stop)
        elif size < 0:
            for _ in range(2 if size == -2 else 1):
                if at >= stop:
                    return sql_mode, charset, False
                length = integer(at, 1)
                at += 1 + length + (1 if size == -4 and length else 0)
        elif size <= stop - at:
            if code == 1:
                sql_mode = load_eight(at)
            elif code == 4:
                charset = np.uint64(integer(at, 2))
            at += size
        else:
            return sql_mode, charset, False
        if at > stop:
            return sql_mode, charset, False
    return sql_mode, charset, True


@kernel
def _behind_names(at: int, stop: int) -> int:
    """Pass over a count and so many names with a zero behind; beyond `stop` if they do not fit."""
    count = integer(at, 1)
    at += 1
    if count > _SCHEMAS_MAX:
        return at
    for _ in range(count):
        while at < stop and load_byte(at) != _ZERO:
            at += 1
        at += 1
    return at


@kernel
def _add_table(
    at: int, stop: int, count: int, pooled: int, tables: Numbers, keys: Words, columns: Numbers
) -> int:
    """Note a table; return how much of the pool is taken then, -1 if it cannot be."""
    if count == TABLES_MAX or stop - at < 9:
        return -1
    schema = at + 9
    schema_end = schema + integer(at + 8, 1)
    if stop - schema_end < 2:
        return -1
    table = schema_end + 2
    table_end = table + integer(schema_end + 1, 1)
    if stop - table_end < 1:
        return -1
    number, kinds = _net(table_end + 1, stop)
    if kinds == 0 or number > stop - kinds or number > COLUMNS_MAX - pooled:
        return -1
    meta_bytes, meta = _net(kinds + number, stop)
    if meta == 0 or meta_bytes > stop - meta:
        return -1
    meta_end = meta + meta_bytes
    key = mix_bytes(mix_bytes(SEED, schema, schema_end), table, table_end)
    key = mix_bytes(key, kinds, kinds + number)
    for column in range(number):
        kind = integer(kinds + column, 1)
        size = _META_BYTES[kind]
        if size > meta_end - meta:
            return -1
        value = integer(meta, size)
        if size == 2 and kind > 16:
            value = (value & 0xFF) << 8 | value >> 8
        meta += size
        columns[pooled + column] = _length_of(kind, value)
        key = mix(key, np.uint64(value))
    tables[count, 0], tables[count, 1], tables[count, 2] = integer(at, 6), pooled, number
    keys[count] = key
    return pooled + number


@kernel
def _add_rows(
    at: int,
    stop: int,
    role: int,
    is_v2: bool,
    count: int,
    tables: Numbers,
    keys: Words,
    columns: Numbers,
    work: Words,
) -> bool:
    """Put the rows of one event into the run; False if they do not fit their table."""
    if stop - at < 8:
        return False
    table = count - 1
    number = integer(at, 6)
    while table >= 0 and tables[table, 0] != number:
        table -= 1
    at += 8
    if is_v2:
        extra = integer(at, 2) if stop - at >= 2 else 0
        if extra < 2 or extra > stop - at:
            return False
        at += extra
    width, at = _net(at, stop)
    size = (width + 7) // 8
    bitmaps = 2 if role == _UPDATE else 1
    if table < 0 or at == 0 or width != tables[table, 2] or bitmaps * size > stop - at:
        return False
    before, after = at, at + (bitmaps - 1) * size
    at += bitmaps * size
    form = _mix_bitmap(keys[table], before, width)
    form = _mix_bitmap(form, after, width if bitmaps == 2 else 0)
    form = mix(form, _ZERO)
    kind = np.uint64(role - _WRITE)
    if work[_IN_RUN] == _ZERO or work[_RUN_KIND] != kind or work[_RUN_FORM] != form:
        _end_run(work)
        work[_IN_RUN], work[_RUN_KIND], work[_RUN_FORM] = _ONE, kind, form
        work[_RUN_SUM], work[_RUN_COUNT] = _ZERO, _ZERO
    first, total, rows = tables[table, 1], work[_RUN_SUM], work[_RUN_COUNT]
    while at < stop:
        behind = _behind_image(at, stop, before, columns, first, width)
        if bitmaps == 2 and behind:
            behind = _behind_image(behind, stop, after, columns, first, width)
        if behind <= at:
            return False
        total += finish(mix_bytes(SEED, at, behind))
        rows += _ONE
        at = behind
    work[_RUN_SUM], work[_RUN_COUNT] = total, rows
    return True


@kernel
def _mix_bitmap(state: int, at: int, width: int) -> int:
    """Put a bitmap into a state, without the bits beyond the last column."""
    size = (width + 7) // 8
    mixed = mix(state, np.uint64(size))
    while size:
        taken = min(size, 8)
        word = np.uint64(integer(at, taken)) if taken < 8 else load_eight(at)
        if width < 64:
            word &= (_ONE << np.uint64(width)) - _ONE
        mixed = mix(mixed, word)
        at, size, width = at + taken, size - taken, width - 64
    return mixed


@kernel
def _behind_image(at: int, stop: int, bitmap: int, columns: Numbers, first: int, width: int) -> int:
    """Pass over one row image; 0 if it does not end within the event."""
    present = 0
    for column in range(width):
        present += integer(bitmap + (column >> 3), 1) >> (column & 7) & 1
    nulls, place = at, 0
    at += (present + 7) // 8
    for column in range(width):
        if at > stop:
            return 0
        if not integer(bitmap + (column >> 3), 1) >> (column & 7) & 1:
            continue
        if not integer(nulls + (place >> 3), 1) >> (place & 7) & 1:
            length = columns[first + column]
            if length < 0:
                if length == _UNKNOWN or -length > stop - at:
                    return 0
                length = -length + integer(at, -length)
            at += length
        place += 1
    return at if at <= stop else 0


@kernel
def _length_of(kind: int, meta: int) -> int:
    """Return the bytes of a value; negative, those of the length that stands before it.

    The rules are those of binlog/rows/images.py.
    """
    rule, high, low = _LENGTHS[kind], meta >> 8, meta & 0xFF
    if rule == _SIZED:
        return meta
    if rule == _BLOB:
        return -meta if 0 < meta < 8 else _UNKNOWN
    if rule == _VARCHAR:
        return -2 if meta > 255 else -1
    if rule == _STRING and high in (247, 248):
        return low
    if rule == _STRING:
        return -2 if ((high << 4 & 0x300) ^ 0x300) + low > 255 else -1
    if rule == _DECIMAL:
        if low > high:
            return _UNKNOWN
        bytes_whole = (high - low) // 9 * 4 + _DIGIT_BYTES[(high - low) % 9]
        return bytes_whole + low // 9 * 4 + _DIGIT_BYTES[low % 9]
    if rule == _BIT:
        return high + (1 if low else 0)
    if rule == _TEMPORAL:
        return (5 if kind == 18 else 4 if kind == 17 else 3) + (meta + 1) // 2
    return rule
