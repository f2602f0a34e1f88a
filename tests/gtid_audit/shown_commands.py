"""Parses a command that a report shows, as the command line itself would, without running it."""

import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import typer

from gtid import GtidSet
from gtid_audit.cli import app
from topology.adapters.inventory.dsn import is_dsn, parse_dsn
from topology.catalogue.verdict_table import entry_of

PROGRAM = "gtid-audit"


def parsed(command: str) -> dict[str, Any]:
    """Return the parameters of a shell line, and the command; an error if it does not parse."""
    program, *words = shlex.split(command)
    assert program == PROGRAM
    found = _root()
    with found.make_context(PROGRAM, [], resilient_parsing=True) as ctx:
        while hasattr(found, "commands"):
            name, found, words = found.resolve_command(ctx, words)
            assert found is not None, name
        with found.make_context(name, list(words), parent=ctx) as inner:
            values: dict[str, Any] = {**inner.params, "command": inner.info_name}
    for dsn in dsns_in(values):
        parse_dsn(dsn)
    for each in ("wanted", "only"):
        assert values.get(each) is None or GtidSet.parse(values[each])
    if values["command"] == "explain":
        entry_of(*values["text"])
    return values


def dsns_in(values: dict[str, Any]) -> Iterator[str]:
    """Yield the DSNs among the parameters of a command."""
    for value in values.values():
        for each in value if isinstance(value, list | tuple) else (value,):
            if isinstance(each, str) and is_dsn(each):
                yield each


@cache
def _root() -> Any:
    return typer.main.get_command(app)
