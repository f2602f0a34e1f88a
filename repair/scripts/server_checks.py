"""Checks of other servers: each check script first verifies that it runs on that server.

around_channels.py, around_empty.py and around_rows.py define which checks a step has.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from binlog.quoting import quote_string
from repair.content.row_versions import RowVersions
from repair.content.transaction_content import NetRow
from repair.scripts.procedure import Setting
from repair.scripts.row_procedures import there
from repair.scripts.steps import Check
from repair.sql.guard import Guard
from repair.sql.privileges import StatementKind, requirements


def check_of(
    setting: Setting,
    name: str,
    guards: Iterable[Guard],
    *,
    why: str,
    reads_rows: bool = False,
    kinds: tuple[StatementKind, ...] = (),
) -> Check:
    """Return a check of one server; it first verifies the identity of that server."""
    reading = setting.seen[name]
    kinds += (StatementKind.READ_ROWS,) if reads_rows else ()
    is_the_server = Guard(
        f"@@GLOBAL.server_uuid = {quote_string(str(reading.server_uuid))}",
        f"{name}: this is another server (expected server_uuid {reading.server_uuid})",
    )
    return Check(
        server=name,
        host=reading.host,
        port=reading.port,
        guards=(is_the_server, *guards),
        why=why,
        privileges=tuple(map(str, requirements(kinds, setting.before[name].version))),
    )


def joined(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Combine the checks of each server: one script for a server and a step."""
    found: dict[str, Check] = {}
    for each in checks:
        before = found.get(each.server)
        if before is None:
            found[each.server] = each
            continue
        guards = tuple(dict.fromkeys((*before.guards, *each.guards)))
        found[each.server] = replace(
            before,
            guards=guards,
            why=f"{before.why}; {each.why}",
            privileges=tuple(dict.fromkeys((*before.privileges, *each.privileges))),
        )
    return tuple(found.values())


def tables_there(name: str, rows: Iterable[NetRow | RowVersions]) -> Iterator[Guard]:
    """Yield the guards that the tables of rows exist, each table once."""
    tables = {(row.table.schema, row.table.table): row.table for row in rows}
    return (there(name, table) for table in tables.values())
