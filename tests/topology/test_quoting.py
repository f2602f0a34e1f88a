"""A quoted value means itself, in every sql_mode, on the oldest and the newest server."""

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pymysql.connections import Connection
from pymysql.cursors import Cursor

from binlog.quoting import quote_identifier, quote_number, quote_string
from compose.native.server import Server
from tests.hypothesis_profiles import laws

Session: TypeAlias = "Connection[Cursor]"
LAWS = laws()
ASKED = laws(60, tolerate=[HealthCheck.function_scoped_fixture])
MODES = ["", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "ANSI_QUOTES,NO_BACKSLASH_ESCAPES,ANSI"]
# Surrogates are no characters; hypothesis would draw them.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
basic_texts = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=40)
HARD = [
    *("", "'", "''", '"', "`", "\\", "\\'", "'; DROP TABLE t; -- ", "%s", "\n", "\0", "\x1a", "\t"),
    *("ünï", "日本", "😀", "a\u2028b", "\N{NO-BREAK SPACE}", "_utf8mb4 0x27", "0x27", "/*!1*/"),
]


@pytest.fixture(params=MODES)
def session97(request: pytest.FixtureRequest, mysql97: Server) -> Iterator[Session]:
    with mysql97.connect() as connection:
        yield in_mode(connection, request.param)


@pytest.fixture(params=MODES)
def session56(request: pytest.FixtureRequest, mysql56: Server) -> Iterator[Session]:
    with mysql56.connect() as connection:
        yield in_mode(connection, request.param)


def in_mode(connection: Session, mode: str) -> Session:
    with connection.cursor() as cursor:
        cursor.execute(f"SET SESSION sql_mode = '{mode}'")
        cursor.execute("SET NAMES utf8mb4")
    return connection


def answered(connection: Session, values: list[str]) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(quote_string(value) for value in values))
        return list(cursor.fetchone() or ())


def test_hard_texts_come_back_from_a_new_server(
    session97: Session,
) -> None:
    assert answered(session97, HARD) == HARD


def test_hard_texts_come_back_from_an_old_server(
    session56: Session,
) -> None:
    assert answered(session56, HARD) == HARD


@ASKED
@given(values=st.lists(texts, min_size=1, max_size=20))
def test_any_text_comes_back_from_a_new_server(session97: Session, values: list[str]) -> None:
    assert answered(session97, values) == values


@ASKED
@given(values=st.lists(texts, min_size=1, max_size=20))
def test_any_text_comes_back_from_an_old_server(session56: Session, values: list[str]) -> None:
    assert answered(session56, values) == values


@ASKED
@given(names=st.lists(basic_texts, min_size=1, max_size=10))
def test_any_name_comes_back(session97: Session, names: list[str]) -> None:
    """As an alias, which the server gives back as the name of a column, trimmed at its ends."""
    usable = [f"x{name}x" for name in names if "\0" not in name]
    with session97.cursor() as cursor:
        for name in usable:
            cursor.execute(f"SELECT 1 AS {quote_identifier(name)}")
            assert [column[0] for column in cursor.description or ()] == [name]


@LAWS
@given(texts)
def test_a_literal_ends_where_it_should(value: str) -> None:
    literal = quote_string(value)
    assert literal.isprintable()
    assert "\\" not in literal
    if literal.startswith("'"):
        assert literal[1:-1].replace("''", "") == value.replace("'", "")
        assert literal.endswith("'")
    else:
        kind, number = literal.split(" ")
        assert kind == "_utf8mb4"
        assert bytes.fromhex(number.removeprefix("0x")).decode() == value


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_what_can_be_no_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="not an identifier"):
        quote_identifier(name)


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_only_an_integer_is_a_number(value: object) -> None:
    with pytest.raises(TypeError, match="not an integer"):
        quote_number(value)  # type: ignore[arg-type]
    assert quote_number(-(2**63)) == "-9223372036854775808"
