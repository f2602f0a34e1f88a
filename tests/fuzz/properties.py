"""What must hold for any bytes at all: the targets of fuzzing, and of replaying what it found.

A target takes bytes and returns nothing; any exception but those of `gtid` for malformed input is a
finding, and so is a failed assertion. While memory is traced, what reading takes is held against the
length of the input.
"""

import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from gtid import Gtid, GtidSet, MalformedBinary, MalformedGtid, MalformedGtidSet
from gtid.binary import decode, encode
from gtid.columns import GtidSetColumn
from gtid.gtid_text import in_order, parse_carefully, parse_entries

# What reading may take: so much for an error and its excerpt, and so much for each byte given. An
# interval is two characters at least, and four places of a list.
_BYTES_AT_ALL: Final = 64 * 1024
_BYTES_FOR_EACH: Final = 400

_PREFIXED_BYTES_MAX: Final = 300


def text_is_read_or_refused(data: bytes) -> None:
    """Hold the three readers of text to each other, and the writers to the readers."""
    text = data.decode("latin-1")
    held = refused = None
    try:
        with _bounded_memory(len(data)):
            held = GtidSet.parse(text)
    except MalformedGtidSet as error:
        refused = error
    column = GtidSetColumn.parse(pa.array([text]))
    if held is None:
        assert refused is not None
        assert 0 <= refused.text_position <= len(text)
        assert "[HERE]" in str(refused)
        assert _refusal_of_careful(text) == refused.args
        found = column.error(0)
        assert type(found) is MalformedGtidSet
        assert found.args == refused.args
    else:
        assert in_order(parse_carefully(text)) == in_order(parse_entries(text))
        assert held.interval_count <= text.count(":")
        assert column.to_arrow().to_pylist() == [str(held)]
        assert column.row(0) == held
        _goes_round(held)
    _gtid_is_read_or_refused(text)


def binary_is_read_or_refused(data: bytes) -> None:
    """Hold the reader of bytes to its errors, and to the writer."""
    held = refused = None
    try:
        with _bounded_memory(len(data)):
            held = decode(data)
    except MalformedBinary as error:
        refused = error
    if held is None:
        assert refused is not None
        assert 0 <= refused.byte_position <= len(data)
        return
    assert held.interval_count <= len(data)
    _goes_round(held)
    if len(data) <= _PREFIXED_BYTES_MAX:
        for length in range(len(data)):
            assert _is_refused(data[:length]), f"a proper prefix of {length} bytes was taken"


def binlog_is_read_or_refused(data: bytes) -> None:
    """Hold the readers of binlogs to their errors and to each other; see binlogs.py."""
    from tests.fuzz.binlogs import check  # which imports what the other targets do without

    check(data, _bounded_memory)


TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = {
    "text": text_is_read_or_refused,
    "binary": binary_is_read_or_refused,
    "binlog": binlog_is_read_or_refused,
}


def _goes_round(held: GtidSet) -> None:
    """Write a set in each form there is, and read it again."""
    written = str(held)
    again = GtidSet.parse(written)
    assert again == held
    assert hash(again) == hash(held)
    assert str(again) == written
    assert GtidSet.parse(held.to_text(separator=",\n")) == held
    encoded = encode(held)
    assert encoded[0] == 1 or all(not tsid.tag for tsid in held.tsids)
    assert decode(encoded) == held


def _gtid_is_read_or_refused(text: str) -> None:
    try:
        gtid = Gtid.parse(text)
    except MalformedGtid as error:
        assert 0 <= error.text_position <= len(text)  # noqa: PT017 - both ways out are checked
        return
    assert Gtid.parse(str(gtid)) == gtid
    assert GtidSet.parse(str(gtid)) == GtidSet.of(gtid)


def _refusal_of_careful(text: str) -> tuple[object, ...]:
    try:
        parse_carefully(text)
    except MalformedGtidSet as error:
        return error.args
    return ()


def _is_refused(data: bytes) -> bool:
    try:
        decode(data)
    except MalformedBinary:
        return True
    return False


@contextmanager
def _bounded_memory(input_bytes: int) -> Iterator[None]:
    if not tracemalloc.is_tracing():
        yield
        return
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    yield
    _, peak = tracemalloc.get_traced_memory()
    taken, allowed = peak - before, _BYTES_AT_ALL + _BYTES_FOR_EACH * input_bytes
    assert taken <= allowed, f"{input_bytes} bytes of input took {taken} bytes of memory"
