"""The failing event is named only if everything the applier's text says of it is true."""

from dataclasses import replace

import pytest

from binlog.transactions import Statement, Transaction, TransactionKind
from gtid import Gtid
from repair import FailingEvent
from repair.content.failing_event import NoSuchEvent, find_failing_event
from tests.repair.build import UUIDS

_SQL = "CREATE ALGORITHM=UNDEFINED VIEW `v` AS SELECT 'it''s' FROM t"
_TEXT = (
    "Query caused different errors on master and slave.     Error on master: message (format)="
    "'Table '%-.192s' already exists' error code=1050 ; Error on slave: actual message='no error',"
    f" error code=0. Default database: 'zy'. Query: '{_SQL}'"
)
_WORKER = (
    "Coordinator stopped because there were error(s) in the worker(s).; Worker 1 failed executing"
    f" transaction '{UUIDS['a']}:5' at source log binlog.000001, end_log_pos 1358; Query caused"
    " different errors on source and replica. Error on source: message (format)='Duplicate entry"
    " '%-.192s' for key %d' error code=1050; Error on replica:actual message='no error', error"
    f" code=0. Default database:''. Query:'{_SQL}'"
)


def _transaction(
    gno: int | None, error_code: int = 0, sql: str = _SQL, *, is_complete: bool = True
) -> Transaction:
    number = gno or 1
    return Transaction(
        gtid=Gtid.parse(f"{UUIDS['a']}:{gno}") if gno else None,
        file="binlog.000001",
        start=100 * number,
        end=100 * number + 100,
        server_id=1,
        kind=TransactionKind.DDL,
        timestamp_seconds=0,
        original_commit_timestamp=None,
        immediate_commit_timestamp=None,
        logical_last_committed=None,
        logical_sequence_number=None,
        original_server_version=None,
        statements=(Statement("zy", sql, error_code),),
        tables=(),
        error_code=error_code,
        is_complete=is_complete,
    )


def _find(*transactions: Transaction, text: str = _TEXT) -> FailingEvent | NoSuchEvent:
    return find_failing_event(transactions, error_text=text, source="a", source_uuid=UUIDS["a"])


def test_the_event_at_the_appliers_place_is_named_with_its_ends() -> None:
    found = _find(_transaction(4, 1050), _transaction(5))
    assert isinstance(found, FailingEvent)
    assert (str(found.start), str(found.end)) == ("binlog.000001:400", "binlog.000001:500")
    assert found.error_code == 1050
    assert found.statement == _SQL
    assert not found.before


def test_what_stands_before_it_is_listed() -> None:
    found = _find(_transaction(3), _transaction(4, 1050))
    assert isinstance(found, FailingEvent)
    assert str(found.before) == f"{UUIDS['a']}:3"


def test_a_workers_text_names_the_transaction() -> None:
    found = _find(_transaction(4, 1050), _transaction(5, 1050), text=_WORKER)
    assert isinstance(found, FailingEvent)
    assert found.gtid.gno == 5
    assert str(found.before) == f"{UUIDS['a']}:4"


def test_a_text_that_was_cut_before_its_statement_is_that_of_the_error() -> None:
    cut = _TEXT[: _TEXT.index("Query: ")]
    found = _find(_transaction(4, 1050), text=cut)
    assert isinstance(found, FailingEvent)
    assert found.statement == _SQL


def test_an_event_without_its_statement_is_found_by_its_place() -> None:
    cut = _TEXT[: _TEXT.index("Query: ")]
    found = _find(replace(_transaction(4, 1050), statements=()), text=cut)
    assert isinstance(found, FailingEvent)
    assert (found.schema, found.statement) == ("", "")


@pytest.mark.parametrize(
    ("transactions", "text", "why"),
    [
        ([_transaction(4)], _TEXT, "no transaction logged with an error"),
        ([], _TEXT, "no transaction logged with an error"),
        ([_transaction(4, 1062)], _TEXT, "logged with error 1062, which"),
        ([_transaction(4, 1050, "DROP TABLE t")], _TEXT, "quotes another statement"),
        ([_transaction(4, 1050, is_complete=False)], _TEXT, "has no end"),
        ([_transaction(None)], _TEXT, "without a GTID"),
        ([_transaction(5)], _WORKER, "logged without an error"),
        ([_transaction(4, 1050)], "some other text", "error text does not have"),
    ],
)
def test_anything_that_does_not_fit_is_refused(
    transactions: list[Transaction], text: str, why: str
) -> None:
    found = _find(*transactions, text=text)
    assert isinstance(found, NoSuchEvent)
    assert why in found.reason


def test_a_statement_whose_authentication_is_hidden_still_fits() -> None:
    sql = "CREATE USER u@'%' IDENTIFIED WITH 'sha256_password' AS 'hash'"
    text = _TEXT.replace(_SQL, "CREATE USER u@'%' IDENTIFIED (hidden)")
    assert isinstance(_find(_transaction(4, 1050, sql), text=text), FailingEvent)
    other = _find(_transaction(4, 1050, sql.replace("u@", "v@")), text=text)
    assert isinstance(other, NoSuchEvent)


def test_a_statement_that_the_server_cut_off_still_fits() -> None:
    text = _TEXT[: _TEXT.index("FROM t")]
    assert isinstance(_find(_transaction(4, 1050), text=text), FailingEvent)


def test_a_statement_that_the_log_cut_off_still_fits() -> None:
    """The text may be longer than what was read of the statement, and it may be shorter."""
    for sql in (_SQL[:-4], _SQL):
        assert isinstance(_find(_transaction(4, 1050, sql)), FailingEvent)
    assert isinstance(_find(_transaction(4, 1050, _SQL + " WHERE 1")), FailingEvent)
    assert isinstance(_find(_transaction(4, 1050, "x" + _SQL)), NoSuchEvent)
