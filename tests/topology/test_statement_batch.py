"""Several statements in one text: each gets its own answer, in order, or is asked on its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import pymysql
import pytest

from tests.fake_server import Peer, fake_server
from topology.adapters import connection as connection_module
from topology.adapters.connection import connect
from topology.adapters.connection_errors import MalformedAnswer
from topology.adapters.statement_batch import StatementBatch

REFUSED = b"\xff" + (1227).to_bytes(2, "little") + b"#42000Access denied"
SYNTAX = b"\xff" + (1064).to_bytes(2, "little") + b"#42000You have an error in your SQL syntax"
Serve = Callable[[Peer, str], None]


@contextmanager
def batch(serve: Serve, *statements: str) -> Iterator[tuple[StatementBatch, list[str]]]:
    """Yield a batch of statements to a server, and the texts that it receives."""
    texts: list[str] = []

    def served(peer: Peer) -> None:
        peer.let_in()
        while (received := peer.receive()) not in (b"", b"\x01"):
            texts.append(received[1:].decode())
            serve(peer, texts[-1])

    with fake_server(served) as server:
        target = server.target()
        with closing(connect(target, timeout_seconds_max=5.0, sends_batches=True)) as connection:
            yield StatementBatch(connection, statements), texts


def own_answers(peer: Peer, text: str, *, more: bool = False) -> None:
    """Answer each statement with its own name."""
    statements = text.split(";")
    for number, statement in enumerate(statements, start=1):
        peer.more = more or number < len(statements)
        peer.answer(["name"], [[statement]])


def named(name: str) -> list[dict[str, str]]:
    return [{"name": name}]


def test_all_are_sent_at_once_and_answered_in_order() -> None:
    with batch(own_answers, "A", "B", "C") as (asked, texts):
        assert texts == [], "nothing is sent before the first answer is needed"
        assert [asked.rows(name, "name") for name in "ABC"] == [*map(named, "ABC")]
        assert texts == ["A;B;C"]
        assert asked.rows("A") == named("A"), "an answer is given once, and then asked for again"
        assert texts == ["A;B;C", "A"]


def test_answers_are_read_before_anything_else_is_sent() -> None:
    with batch(own_answers, "A", "B", "C") as (asked, texts):
        assert asked.rows("B") == named("B")
        assert asked.rows("other") == named("other")
        assert [asked.rows(name) for name in "CA"] == [*map(named, "CA")]
        assert texts == ["A;B;C", "other"]


@pytest.mark.parametrize("refused", "ABC")
def test_after_an_error_the_rest_is_asked_one_by_one(refused: str) -> None:
    def serve(peer: Peer, text: str) -> None:
        statements = text.split(";")
        for number, statement in enumerate(statements, start=1):
            if statement == refused:
                return peer.send(REFUSED)
            peer.more = number < len(statements)
            peer.answer(["name"], [[statement]])
        return None

    with batch(serve, "A", "B", "C") as (asked, texts):
        for name in "ABC":
            if name == refused:
                with pytest.raises(pymysql.MySQLError, match="Access denied"):
                    asked.rows(name)
            else:
                assert asked.rows(name) == named(name)
        assert texts == ["A;B;C", *"ABC"["ABC".index(refused) :]]


@pytest.mark.parametrize("answered", [0, 1, 2])
def test_a_proxy_that_answers_fewer_statements_gets_each_on_its_own(answered: int) -> None:
    """Whose answer the last one is, is not known: it is not used."""

    def serve(peer: Peer, text: str) -> None:
        if ";" not in text:
            own_answers(peer, text)
            return
        for number in range(answered):
            peer.more = True
            peer.answer(["name"], [["ABC"[number]]])
        peer.more = False
        peer.answer(["name"], [["of the last one"]])

    with batch(serve, "A", "B", "C", "D") as (asked, texts):
        assert [asked.rows(name) for name in "ABCD"] == [*map(named, "ABCD")]
        assert texts == ["A;B;C;D", *"ABCD"[answered:]]


def test_a_server_that_rejects_several_statements_gets_each_on_its_own() -> None:
    def serve(peer: Peer, text: str) -> None:
        if ";" in text:
            peer.send(SYNTAX)
        else:
            own_answers(peer, text)

    with batch(serve, "A", "B") as (asked, texts):
        assert [asked.rows(name) for name in "AB"] == [*map(named, "AB")]
        assert texts == ["A;B", "A", "B"]


def test_more_answers_than_statements_are_an_error_of_the_protocol() -> None:
    def serve(peer: Peer, text: str) -> None:
        own_answers(peer, text, more=True)
        own_answers(peer, "another")

    with batch(serve, "A", "B") as (asked, _):
        assert asked.rows("A") == named("A")
        with pytest.raises(MalformedAnswer, match="more results than statements"):
            asked.rows("B")


def test_a_lost_connection_is_lost_while_its_statement_is_read() -> None:
    def serve(peer: Peer, _: str) -> None:
        peer.more = True
        peer.answer(["name"], [["A"]])
        peer.socket.close()

    with batch(serve, "A", "B") as (asked, _):
        assert asked.rows("A") == named("A")
        with pytest.raises(pymysql.err.OperationalError, match="Lost connection"):
            asked.rows("B")


def test_an_answer_without_the_expected_columns_is_refused() -> None:
    with batch(own_answers, "A", "B") as (asked, _):
        with pytest.raises(ValueError, match="expected source, got 'name'"):
            asked.rows("A", "source")
        assert asked.rows("B", "name", "source") == named("B")


def test_each_answer_has_the_bytes_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "ANSWER_BYTES_MAX", 2_000)  # one column, one row
    with batch(own_answers, *"ABCD") as (asked, texts):
        assert [asked.rows(name) for name in "ABCD"] == [*map(named, "ABCD")]
        assert len(texts) == 1


@pytest.mark.parametrize("sends_batches", [True, False])
def test_a_batch_is_sent_only_if_both_sides_take_one(sends_batches: bool) -> None:
    with fake_server(Peer.let_in) as server:
        target = server.target()
        open_ = connect(target, timeout_seconds_max=5.0, sends_batches=sends_batches)
        with closing(open_) as connection:
            takes: Sequence[bool] = [connection.takes_batches]  # type: ignore[attr-defined]
            connection.server_capabilities &= ~(1 << 16)  # type: ignore[attr-defined]
            takes = [*takes, connection.takes_batches]  # type: ignore[attr-defined]
    assert takes == [sends_batches, False]
