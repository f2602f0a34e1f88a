"""`gtid-audit binlog`: reads binary logs and relay logs, from files or live servers.

This module registers the commands; each has its own module. logs_from_operands.py defines how an
operand selects logs.
"""

from typing import Any

import typer

from gtid_audit.commands import (
    binlog_compare,
    binlog_cover,
    binlog_locate,
    binlog_scan,
    binlog_schema,
    binlog_show,
)
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.optional_packages import FILES_NEED_COLUMNS, NEEDS_COLUMNS


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(no_args_is_help=False, **settings)
    family.callback()(_binlog)
    family.command("scan", cls=PlainCommand, epilog=NEEDS_COLUMNS)(binlog_scan.scan)
    family.command("locate", cls=PlainCommand, epilog=FILES_NEED_COLUMNS)(binlog_locate.locate)
    family.command("cover", cls=PlainCommand, epilog=NEEDS_COLUMNS)(binlog_cover.cover)
    family.command("show", cls=PlainCommand)(binlog_show.show)
    family.command("compare", cls=PlainCommand, epilog=FILES_NEED_COLUMNS)(binlog_compare.compare)
    family.add_typer(binlog_schema.commands(settings), name="schema")
    return family


def _binlog() -> None:
    """Read binary logs and relay logs: files, directories, live servers."""
