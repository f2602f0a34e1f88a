"""`binlog show` over a server that logs nothing but types and values."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compose.native.server import Server
from gtid import GtidSet
from gtid_audit.cli import run


@pytest.fixture
def wanted(mysql56: Server) -> Iterator[str]:
    mysql56.execute(
        "CREATE DATABASE shown",
        (
            "CREATE TABLE shown.t (a INT UNSIGNED PRIMARY KEY, b VARCHAR(10) CHARACTER SET latin1,"
            " c BINARY(4), e ENUM('x','y'))"
        ),
    )
    before = GtidSet.parse(mysql56.value("@@GLOBAL.gtid_executed"))
    mysql56.execute("INSERT INTO shown.t VALUES (4294967295, 'ü', 'ab', 2)")
    yield str(GtidSet.parse(mysql56.value("@@GLOBAL.gtid_executed")) - before)
    mysql56.execute("DROP DATABASE shown")


def test_what_5_6_does_not_log_is_said(
    mysql56: Server, wanted: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(("binlog", "show", wanted, mysql56.dsn)) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "shown.t: it is not known which integers are unsigned" in lines
    assert "-1 or 4294967295 0xFC ab #2" in lines
    assert any("character sets are not known" in line for line in lines)
    assert run(("binlog", "show", wanted, mysql56.dsn, "--schema-from", mysql56.dsn)) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "4294967295 ü 0x61620000 y" in lines
    assert not any("not known" in line for line in lines)
