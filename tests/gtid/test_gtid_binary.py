"""MySQL's binary forms, against bytes that servers wrote."""

import random
import tracemalloc
from array import array
from struct import pack
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtid import GNO_END, GNO_MAX, GtidSet, MalformedBinary, Tsid, UnknownFormatVersion
from gtid.binary import _little_endian, decode, encode
from tests.hypothesis_profiles import laws

pytestmark = pytest.mark.usefixtures("representation")

LAWS = laws(80)

A = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
B = "98f81cd6-e51f-11f1-8e00-02fc00000001"
C = "ffffffff-0000-4000-8000-00000000abcd"
X32 = "x" * 32
A_BYTES = UUID(A).bytes

# Bodies of Previous_gtids events (checksum cut off) from the binary log of a MySQL 9.7.4 server,
# after SET GTID_NEXT = ...; BEGIN; COMMIT for each GTID, and FLUSH BINARY LOGS. They settle that a
# tag has its length written doubled: 02 before "_", 06 before "dba", 40 (hexadecimal) before 32 x.
WRITTEN_BY_9_7_4 = {
    "0000000000000000": "",
    (
        "0106000000000001"
        "3e11fa4771ca11e19e33c80aa9429562"
        "00"
        "0200000000000000"
        "01000000000000000300000000000000"
        "05000000000000000600000000000000"
        "3e11fa4771ca11e19e33c80aa9429562"
        "025f"
        "0100000000000000"
        "feffffffffffff7fffffffffffffff7f"
        "3e11fa4771ca11e19e33c80aa9429562"
        "06646261"
        "0200000000000000"
        "01000000000000000200000000000000"
        "03000000000000000400000000000000"
        "3e11fa4771ca11e19e33c80aa9429562"
        "407878787878787878787878787878787878787878787878787878787878787878"
        "0100000000000000"
        "07000000000000000800000000000000"
        "98f81cd6e51f11f18e0002fc00000001"
        "00"
        "0100000000000000"
        "01000000000000000200000000000000"
        "ffffffff00004000800000000000abcd"
        "00"
        "0100000000000000"
        "01000000000000000200000000000000"
    ): f"{A}:1-2:5:_:{GNO_MAX}:dba:1:3:{X32}:7,{B}:1,{C}:1",
    # The same server after RESET BINARY LOGS AND GTIDS: no tag is left, yet it keeps to version 1.
    "0100000000000001": "",
    (
        "0102000000000001"
        "3e11fa4771ca11e19e33c80aa9429562"
        "00"
        "0200000000000000"
        "01000000000000000300000000000000"
        "05000000000000000600000000000000"
        "ffffffff00004000800000000000abcd"
        "00"
        "0100000000000000"
        "01000000000000000200000000000000"
    ): f"{A}:1-2:5,{C}:1",
}


def interval_bytes(*boundaries: int) -> bytes:
    return pack(f"<{len(boundaries) + 1}Q", len(boundaries) // 2, *boundaries)


def header(version: int, tsid_count: int) -> bytes:
    if version == 0:
        return tsid_count.to_bytes(8, "little")
    return bytes((version,)) + tsid_count.to_bytes(6, "little") + bytes((version,))


@pytest.mark.parametrize("written", WRITTEN_BY_9_7_4)
def test_what_a_server_wrote_is_read(written: str) -> None:
    assert str(decode(bytes.fromhex(written))) == WRITTEN_BY_9_7_4[written]


def test_what_a_server_wrote_is_written() -> None:
    empty, tagged, *_ = WRITTEN_BY_9_7_4
    assert encode(GtidSet()).hex() == empty
    assert encode(GtidSet.parse(WRITTEN_BY_9_7_4[tagged])).hex() == tagged


def test_version_0_has_no_room_for_tags() -> None:
    encoded = encode(GtidSet.parse(f"{A}:1-2:5"))
    assert encoded == header(0, 1) + A_BYTES + interval_bytes(1, 3, 5, 6)
    assert decode(encoded) == GtidSet.parse(f"{A}:1-2:5")


# -- what a 9.7.4 server took, and refused, in COM_BINLOG_DUMP_GTID -------------------------------

TAKEN = {
    "a TSID twice": (
        header(1, 2) + 2 * (A_BYTES + b"\x06dba" + interval_bytes(1, 3)), f"{A}:dba:1-2"
    ),
    "TSIDs in another order": (
        header(1, 2)
        + (A_BYTES + b"\x06dba" + interval_bytes(1, 3))
        + (A_BYTES + b"\x00" + interval_bytes(4, 5)),
        f"{A}:4:dba:1-2",
    ),
    "a tag in capitals": (
        header(1, 1) + A_BYTES + b"\x06DBA" + interval_bytes(1, 3), f"{A}:dba:1-2"
    ),
    "a tag length in two bytes": (
        header(1, 1) + A_BYTES + b"\x0d\x00dba" + interval_bytes(1, 3), f"{A}:dba:1-2"
    ),
    "a TSID without intervals": (header(1, 1) + A_BYTES + b"\x00" + interval_bytes(), ""),
    "the highest number": (
        header(0, 1) + A_BYTES + interval_bytes(1, GNO_END), f"{A}:1-{GNO_MAX}"
    ),
}  # fmt: skip

REFUSED = {
    "nothing": (b"", 0),
    "half a header": (bytes(7), 0),
    "a byte left over": (header(0, 1) + A_BYTES + interval_bytes(1, 2) + b"\0", 48),
    "versions that differ": (b"\2" + header(1, 0)[1:], 0),
    "more TSIDs than bytes": (header(0, 2**56 - 1) + A_BYTES + interval_bytes(1, 2), 8),
    "more intervals than bytes": (header(0, 1) + A_BYTES + pack("<3Q", 2**63, 1, 2), 32),
    "number 0": (header(0, 1) + A_BYTES + interval_bytes(0, 3), 32),
    "a number too high": (header(0, 1) + A_BYTES + interval_bytes(1, GNO_END + 1), 32),
    "an empty interval": (header(0, 1) + A_BYTES + interval_bytes(3, 3), 32),
    "intervals that touch": (header(0, 1) + A_BYTES + interval_bytes(1, 3, 3, 6), 32),
    "intervals out of order": (header(0, 1) + A_BYTES + interval_bytes(5, 6, 1, 2), 32),
    "a tag length not doubled": (header(1, 1) + A_BYTES + b"\x03dba" + interval_bytes(1, 3), 27),
    "a tag too long": (header(1, 1) + A_BYTES + b"\x42" + 33 * b"a" + interval_bytes(1, 2), 24),
    "a tag with a dash": (header(1, 1) + A_BYTES + b"\x06a-b" + interval_bytes(1, 2), 24),
    "a tag that starts with a digit": (
        header(1, 1) + A_BYTES + b"\x041a" + interval_bytes(1, 2),
        24,
    ),
}


@pytest.mark.parametrize("name", TAKEN)
def test_taken_as_a_server_takes_it(name: str) -> None:
    encoded, text = TAKEN[name]
    assert str(decode(encoded)) == text


@pytest.mark.parametrize("name", REFUSED)
def test_refused_as_a_server_refuses_it(name: str) -> None:
    encoded, position = REFUSED[name]
    with pytest.raises(MalformedBinary, match=f"at byte {position}$") as caught:
        decode(encoded)
    assert caught.value.byte_position == position


@pytest.mark.parametrize("version", [3, 4, 255])
def test_a_later_version_is_named(version: int) -> None:
    with pytest.raises(UnknownFormatVersion, match=f"version 0, 1 or 2, not {version}, at byte 7"):
        decode(header(version, 0))


# -- version 2: made by MySQL's description, since no server writes it ----------------------------


def varint(number: int) -> bytes:
    """MySQL's variable-length integer: as many trailing ones in the first byte as bytes follow."""
    for more in range(8):
        if number < 1 << 7 * (more + 1):
            return (number << (more + 1) | (1 << more) - 1).to_bytes(more + 1, "little")
    return b"\xff" + number.to_bytes(8, "little")


def encode_compactly(gtid_set: GtidSet) -> bytes:
    """The writer that decode() is tested with."""
    if not gtid_set:
        return header(2, 0)
    tags = sorted({tsid.tag for tsid in gtid_set.tsids})
    pieces = [header(2, gtid_set.tsid_count), varint(len(tags))]
    pieces += [varint(len(tag)) + tag.encode() for tag in tags]
    previous: UUID | None = None
    for tsid in gtid_set.tsids:
        intervals = gtid_set.from_tsid(tsid).intervals()
        boundaries = [edge for _, start, end in intervals for edge in (start, end)]
        lowest = 2
        if boundaries[0] == 1:
            boundaries.pop(0)
        pieces.append(varint(tags.index(tsid.tag) << 1 | (tsid.uuid != previous)))
        pieces.append(tsid.uuid.bytes if tsid.uuid != previous else b"")
        pieces.append(varint(len(boundaries)))
        for edge in boundaries:
            pieces.append(varint(edge - lowest))
            lowest = edge + 1
        previous = tsid.uuid
    return b"".join(pieces)


def test_version_2_by_hand() -> None:
    encoded = bytes.fromhex(
        "0202000000000002"  # version 2, two TSIDs, version 2
        "04" "00" "06646261"  # two tags: none, and dba
        "02" "3e11fa4771ca11e19e33c80aa9429562"  # tag 0, and a UUID follows
        "06" "02" "02" "00"  # three boundaries after a first 1: 3, 5, 6
        "04"  # tag 1, UUID as before
        "04" "00" "02"  # two boundaries: 2, 4
    )  # fmt: skip
    assert str(decode(encoded)) == f"{A}:1-2:5:dba:2-3"
    assert encode_compactly(GtidSet.parse(f"{A}:1-2:5:dba:2-3")) == encoded


COMPACT_REFUSED = {
    "a tag that is not in the table": (header(2, 1) + b"\x02\x00\x0a" + A_BYTES + b"\x02\x00", 11),
    "a first TSID without UUID": (header(2, 1) + b"\x02\x00\x00\x02\x00", 11),
    "more tags than bytes": (header(2, 1) + b"\xfe\x00", 9),
    "more boundaries than bytes": (header(2, 1) + b"\x02\x00\x02" + A_BYTES + b"\xfe\x00", 28),
    "a number too high": (
        header(2, 1) + b"\x02\x00\x02" + A_BYTES + b"\x02" + b"\xff" + pack("<Q", GNO_END), 28,
    ),
    "an integer cut short": (header(2, 1) + b"\x02\x00\x02" + A_BYTES + b"\x02\xff\x00", 29),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPACT_REFUSED)
def test_version_2_refused(name: str) -> None:
    encoded, position = COMPACT_REFUSED[name]
    with pytest.raises(MalformedBinary) as caught:
        decode(encoded)
    assert caught.value.byte_position == position


# -- properties -----------------------------------------------------------------------------------

tsids = st.builds(
    Tsid,
    st.sampled_from([UUID(A), UUID(B), UUID(C), UUID(int=0)]),
    st.sampled_from(["", "_", "dba", X32]),
)
low = st.tuples(tsids, st.integers(1, 300), st.integers(1, 70))
high = st.tuples(tsids, st.integers(2**40, GNO_MAX - 1), st.just(1))
gtid_sets = st.lists(low | high, max_size=8).map(
    lambda drawn: GtidSet.from_intervals((tsid, start, start + n) for tsid, start, n in drawn)
)


@LAWS
@given(gtid_sets)
def test_round_trip(held: GtidSet) -> None:
    assert decode(encode(held)) == held
    assert decode(encode_compactly(held)) == held


@LAWS
@given(held=gtid_sets, compact=st.booleans())
def test_every_proper_prefix_is_an_error(held: GtidSet, compact: bool) -> None:
    encoded = encode_compactly(held) if compact else encode(held)
    for length in range(len(encoded)):
        with pytest.raises(MalformedBinary):
            decode(encoded[:length])


@pytest.mark.parametrize("encoded", [*map(bytes.fromhex, WRITTEN_BY_9_7_4), *dict(TAKEN.values())])
def test_every_proper_prefix_of_what_servers_write_and_take_is_an_error(encoded: bytes) -> None:
    for length in range(len(encoded)):
        with pytest.raises(MalformedBinary) as caught:
            decode(encoded[:length])
        assert 0 <= caught.value.byte_position <= length


# Counts and lengths that promise much and keep little.
PROMISES = {
    "TSIDs of version 0": header(0, 2**56 - 1) + bytes(100),
    "TSIDs of version 1": header(1, 2**48 - 1) + bytes(100),
    "TSIDs of version 2": header(2, 2**48 - 1) + b"\x02\x00" + bytes(100),
    "intervals": header(0, 1) + A_BYTES + pack("<Q", 2**60) + bytes(100),
    "intervals that wrap": header(0, 1) + A_BYTES + pack("<Q", 2**63) + bytes(100),
    "intervals below zero": header(0, 1) + A_BYTES + pack("<Q", 2**64 - 1) + bytes(100),
    "a tag": header(1, 1) + A_BYTES + b"\xff" + pack("<Q", 2**62) + bytes(100),
    "tags of version 2": header(2, 1) + b"\xff" + pack("<Q", 2**62) + bytes(100),
    "a tag of version 2": header(2, 1) + b"\x02\xff" + pack("<Q", 2**62) + bytes(100),
    "boundaries": header(2, 1) + b"\x02\x00\x02" + A_BYTES + b"\xff" + pack("<Q", 2**62) + bytes(9),
}


@pytest.mark.parametrize("name", PROMISES)
def test_nothing_is_allocated_for_a_promise(name: str) -> None:
    with pytest.raises(MalformedBinary):
        decode(PROMISES[name])  # once before, for what Python caches
    tracemalloc.start()
    try:
        with pytest.raises(MalformedBinary):
            decode(PROMISES[name])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 32_768


@pytest.mark.long
def test_a_long_set_is_read_in_a_small_multiple_of_its_bytes() -> None:
    encoded = header(0, 1) + A_BYTES + interval_bytes(*range(1, 400_001))
    assert decode(encoded).interval_count == 200_000
    tracemalloc.start()
    try:
        held = decode(encoded)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(encoded)
    assert encode(held) == encoded
    at = 32 + 8 * 1_000
    for number, expected in ((3, "intervals in order"), (0, "numbers from 1"), (2**63, "numbers")):
        spoilt = encoded[:at] + pack("<Q", number) + encoded[at + 8 :]
        with pytest.raises(MalformedBinary, match=f"expected {expected}.* at byte 32$"):
            decode(spoilt)


def test_numbers_are_little_endian_on_any_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = array("q", [1, 2**40])
    monkeypatch.setattr("sys.byteorder", "big")
    turned = _little_endian(numbers)
    assert turned.tobytes() == pack(">2q", 1, 2**40)
    assert numbers.tobytes() == pack("<2q", 1, 2**40)


def check_read_or_refused(encoded: bytes) -> None:
    """Whatever the bytes: a set that can be written again, or an error with a place in them."""
    refused_at = None
    try:
        found = decode(encoded)
    except MalformedBinary as error:
        refused_at = error.byte_position
    if refused_at is None:
        assert decode(encode(found)) == found
    else:
        assert 0 <= refused_at <= len(encoded)


@LAWS
@given(held=gtid_sets, compact=st.booleans(), seed=st.integers(0, 2**32))
def test_a_mutation_is_read_or_refused(held: GtidSet, compact: bool, seed: int) -> None:
    rng = random.Random(seed)
    mutated = bytearray(encode_compactly(held) if compact else encode(held))
    for _ in range(rng.randint(1, 3)):
        mutated[rng.randrange(len(mutated))] ^= 1 << rng.randrange(8)
    check_read_or_refused(bytes(mutated))


@LAWS
@given(st.binary(max_size=80))
def test_noise_is_read_or_refused(noise: bytes) -> None:
    check_read_or_refused(noise)


@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**14, 2**55, 2**56 - 1, 2**56, GNO_MAX - 1])
def test_version_2_integers_of_every_length(number: int) -> None:
    start = number + 2
    held = GtidSet.from_intervals([(Tsid(UUID(A)), start, start + 1)]) if start <= GNO_MAX else None
    if held is None:
        encoded = header(2, 1) + b"\x02\x00\x02" + A_BYTES + b"\x02" + varint(number)
        assert str(decode(encoded)) == f"{A}:1-{GNO_MAX}"
    else:
        assert decode(encode_compactly(held)) == held
