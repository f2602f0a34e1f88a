"""The statements of docs/privileges.md, run on real servers, and the account that they make."""

import re
from pathlib import Path

import pytest

from compose.native.server import Server
from topology.adapters.mysql import MysqlReader
from topology.readings.snapshot import ServerSnapshot
from topology.readings.target import Secret, ServerTarget

PAGE = Path(__file__).parents[2] / "docs/privileges.md"
PASSWORD = "a password of the page's account"


def statements(*, number: int) -> list[str]:
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    text = blocks[number].replace("10.0.0.%", "%").replace("…", PASSWORD.replace("'", "''"))
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def read(server: Server) -> ServerSnapshot:
    target = ServerTarget("a", server.host, server.port, "auditor", Secret(PASSWORD))
    reader = MysqlReader(target, cluster="c", timeout_seconds_max=5.0)
    try:
        return reader.read(phase=1)
    finally:
        reader.close()


def test_the_account_for_new_servers_reads_everything(mysql97: Server) -> None:
    mysql97.execute(*statements(number=0))
    try:
        assert read(mysql97).unread == ()
    finally:
        mysql97.execute("DROP USER auditor@'%'")


@pytest.mark.parametrize("requires_tls", [True, False])
def test_the_account_for_5_6_reads_everything(mysql56: Server, requires_tls: bool) -> None:
    """The test server has no certificate: with REQUIRE SSL nobody gets in, as the page says."""
    run = statements(number=1)
    assert run[-1].endswith("REQUIRE SSL")
    mysql56.execute(*run[:-1], run[-1] if requires_tls else run[-1].removesuffix("REQUIRE SSL"))
    try:
        [(needed,)] = mysql56.query("SELECT ssl_type FROM mysql.user WHERE user = 'auditor'")
        assert needed in (("ANY", b"ANY") if requires_tls else ("", b""))
        assert [fact.fact for fact in read(mysql56).unread] == (
            ["connection"] if requires_tls else []
        )
    finally:
        mysql56.execute("DROP USER auditor@'%'")
