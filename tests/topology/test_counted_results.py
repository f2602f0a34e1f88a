"""Rows and columns are parsed as PyMySQL parses them, and counted before they become objects."""

from contextlib import closing
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.connections import MySQLResult
from pymysql.protocol import MysqlPacket

from tests.fake_server import Peer, fake_server
from tests.hypothesis_profiles import laws
from topology.adapters.connection import connect
from topology.adapters.counted_results import _row

LAWS = laws()
values = st.one_of(st.none(), st.text(max_size=5), st.integers(240, 260).map(lambda n: "x" * n))


def packed(value: str | None) -> bytes:
    if value is None:
        return b"\xfb"
    data = value.encode()
    if len(data) < 251:
        return bytes([len(data)]) + data
    return b"\xfc" + len(data).to_bytes(2, "little") + data


def by_pymysql(data: bytes, converters: list[Any]) -> Any:
    result: Any = MySQLResult(cast(Any, None))
    result.converters = converters
    return result._read_row_from_packet(MysqlPacket(data, "utf8"))


@LAWS
@given(st.lists(values, max_size=6), st.integers(0, 2), st.sampled_from(["utf8", None]))
def test_a_row_is_what_pymysql_makes_of_it(
    row: list[str | None], missing: int, encoding: str | None
) -> None:
    data = b"".join(map(packed, row))
    converters = [(encoding, len if number % 2 else None) for number in range(len(row) + missing)]
    assert _row(data, converters) == by_pymysql(data, converters)


@pytest.mark.parametrize(("length", "size"), [(b"\xfd", 3), (b"\xfe", 8)])
def test_long_values_have_longer_lengths(length: bytes, size: int) -> None:
    data = length + (70_000).to_bytes(size, "little") + b"a" * 70_000 + b"\x01b"
    converters: list[Any] = [("utf8", None)] * 2
    assert _row(data, converters) == by_pymysql(data, converters) == ("a" * 70_000, "b")


@pytest.mark.parametrize("data", [b"\x05abc", b"\xfc\x05", b"\xfc\x05\0ab", b"\xff", b"\xffabc"])
def test_a_value_that_ends_after_its_row_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="a value ends after its row"):
        _row(data, [("utf8", None)])


def test_equal_columns_are_described_once_and_others_are_not_taken_for_them() -> None:
    answers: list[tuple[list[str], list[str | None]]] = [
        (["a", "b"], ["1", "2"]),
        (["a", "b"], ["3", None]),
        (["b", "a"], ["4", "5"]),
    ]

    def serve(peer: Peer) -> None:
        peer.let_in()
        for columns, row in answers:
            peer.receive()
            peer.answer(columns, [row])

    with fake_server(serve) as server:
        way = connect(server.target(), timeout_seconds_max=5.0)
        with closing(way) as connection, connection.cursor() as cursor:
            found: list[dict[str, Any]] = []
            described = []
            for _ in answers:
                cursor.execute("SELECT")
                found += cursor.fetchall()
                described.append(cursor.description)
    assert found == [{"a": "1", "b": "2"}, {"a": "3", "b": None}, {"b": "4", "a": "5"}]
    assert described[0] is described[1]
    assert described[2] is not described[1]
