"""The two sides of `binlog compare`: log files, or a server with its state as of now."""

from contextlib import closing
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from uuid import UUID

from pymysql.cursors import DictCursor

from binlog.adapters.compare_server import ComparedServer, ServerCompared, uuid_or_none
from binlog.adapters.server_errors import read_answer
from binlog.adapters.set_statements import HELD_SETS
from gtid import GtidSet
from gtid_audit.operands.logs_from_operands import LogFiles, LogOperand, LogServer

if TYPE_CHECKING:  # needs more packages than live servers do
    from binlog.adapters.compare_files import FilesCompared

Side: TypeAlias = "ServerCompared | FilesCompared"

_FACTS: Final = (
    f"SELECT @@GLOBAL.server_uuid AS server_uuid, {HELD_SETS}, UNIX_TIMESTAMP() AS moment"
)

_VARIABLES: Final = (
    "SHOW GLOBAL VARIABLES WHERE Variable_name IN"
    " ('lower_case_table_names', 'group_replication_group_name')"
)


def side_of(operand: LogOperand, seconds_max: float) -> Side:
    """Return what is compared of an operand; query the state of a server now."""
    if isinstance(operand, LogFiles):
        from binlog.adapters.compare_files import FilesCompared

        return FilesCompared(operand.name, operand.paths)
    connect = operand.connector(seconds_max=seconds_max)
    with closing(connect()) as connection:
        state = _state(operand, connection)
    return ServerCompared(state, connect, seconds_max)


def _state(operand: LogServer, connection: Any) -> ComparedServer:  # noqa: ANN401 - PyMySQL's
    with read_answer("its state"), connection.cursor(DictCursor) as cursor:
        return _state_by(operand, cursor)


def _state_by(operand: LogServer, cursor: Any) -> ComparedServer:  # noqa: ANN401 - PyMySQL's
    cursor.execute("SHOW BINARY LOGS")
    names = tuple(str(row["Log_name"]) for row in cursor.fetchall())
    cursor.execute("SHOW GLOBAL STATUS LIKE 'Uptime'")
    uptime = int(cursor.fetchone()["Value"])
    cursor.execute(_FACTS)
    facts = cursor.fetchone()
    cursor.execute(_VARIABLES)
    variables = {row["Variable_name"]: row["Value"] for row in cursor.fetchall()}
    return ComparedServer(
        name=operand.name,
        server_uuid=UUID(facts["server_uuid"]),
        executed=GtidSet.parse(facts["executed"]),
        purged=GtidSet.parse(facts["purged"]),
        log_names=names,
        up_since_seconds=int(facts["moment"]) - uptime,
        group_name=uuid_or_none(variables.get("group_replication_group_name")),
        lower_case_table_names=int(variables["lower_case_table_names"]),
    )
