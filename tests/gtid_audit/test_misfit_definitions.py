"""S3 of `binlog show` without servers: the definitions of a table whose rows do not fit one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymysql
import pytest

from binlog.adapters.schema_servers import ServerTables
from binlog.event_types import RowKind
from binlog.events import TableMap
from binlog.rows.tables import LONG, describe_table
from binlog.rows.values import RowChange, RowChanges
from binlog.schema.show_create import definition_from_create
from gtid_audit.tasks.misfit_definitions import Misfits
from gtid_audit.views.schema_text import comparison_document, comparison_lines
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import check_named
from topology.catalogue.findings import Verdict

LOGGED = TableMap(7, "d", "t", bytes((LONG, LONG)), (0, 0), b"\x00")
THREE = "CREATE TABLE t (id int NOT NULL, a int NOT NULL, b int NOT NULL)"
TWO = "CREATE TABLE t (id int NOT NULL, a int NOT NULL)"


def rows(create: str = THREE, position: int = 1187) -> RowChanges:
    table = describe_table(LOGGED, definition_from_create(create, schema="d"))
    change = RowChange(None, (1, 2))
    return RowChanges(
        table=table,
        kind=RowKind.WRITE,
        rows=(change,),
        file="binlog.000007",
        position=position,
        foreign_key_checks=True,
        unique_checks=True,
        logs_cascades=False,
        is_partial=False,
    )


def server(monkeypatch: pytest.MonkeyPatch, answers: dict[float, Any]) -> Callable[[float], Any]:
    """Return servers that are distinguished by their time limit, and answer for d.t."""

    def create_table(self: ServerTables, _key: object) -> str | None:
        answer = answers[self.seconds_max]
        if isinstance(answer, Exception):
            raise answer
        assert answer is None or isinstance(answer, str)
        return answer

    monkeypatch.setattr(ServerTables, "create_table", create_table)
    return lambda seconds: ServerTables(lambda: pytest.fail("no connection"), seconds)


def test_the_four_definitions_are_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    of = server(monkeypatch, {1.0: TWO, 2.0: THREE})
    misfits = Misfits(of(1.0), of(2.0))
    misfits.note(rows())
    misfits.note(rows(position=4000))  # once for each table
    [found] = misfits.found
    assert (found.is_misfit, found.verdict) == (True, Verdict.CRITICAL)
    assert [len(view.columns) for view in found.views] == [2, 2, 3, 3]
    first, *lines = comparison_lines(found)
    assert first == (
        "S3 tracker mismatch: d.t at binlog.000007:1187: Column count doesn't match value count:"
        " the definition has 3 columns, the rows have 2"
    )
    assert lines == [
        "   #  source now  at the event  tracked  replica now",
        "   1  id int      @1 int        id int   id int",
        "   2  a int       @2 int        a int    a int",
        "≠  3                            b int    b int",
        "the definition of the options (tracked) is not used: values would get wrong names",
        "the definition on the source now fits: use --schema-from",
    ]
    document = comparison_document(found)
    assert (document["code"], document["at"]) == ("S3", "binlog.000007:1187")


def test_a_server_that_cannot_be_asked_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    denied = pymysql.err.OperationalError(1142, "SELECT command denied")
    of = server(monkeypatch, {1.0: denied, 2.0: OSError(111, "refused")})
    misfits = Misfits(of(1.0), of(2.0))
    misfits.note(rows())
    lines = list(comparison_lines(misfits.found[0]))
    assert any(line.startswith("source now: not read: ") and "denied" in line for line in lines)
    assert "replica now: not read: refused" in lines
    assert lines[-1].startswith("use --definitions with the older definition")


def test_logs_from_files_have_no_source_to_ask() -> None:
    misfits = Misfits(None, None)
    misfits.note(rows())
    lines = list(comparison_lines(misfits.found[0]))
    assert "source now: not requested" in lines
    assert misfits.found[0].verdict is Verdict.CRITICAL


def test_a_definition_that_fits_is_not_noted() -> None:
    misfits = Misfits(None, None)
    misfits.note(rows(TWO))
    assert misfits.found == ()


def test_sql_that_cannot_be_written_names_s3() -> None:
    with pytest.raises(CannotRender, match="S3, the given definition does not match the log"):
        check_named(rows().table)
