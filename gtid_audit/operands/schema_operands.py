"""Parses operands for tables, places, servers and stores. Raises UsageProblem for invalid ones."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from binlog.errors import BinlogMisuse
from binlog.schema.table_history import Place, TableKey
from gtid import GtidError, GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.definition_sources import text_within

if TYPE_CHECKING:
    from binlog.adapters.schema_store import SchemaStore

_NAME: Final = r"(?:`((?:[^`]|``)+)`|([^`.]+))"
_TABLE: Final = re.compile(rf"{_NAME}\.{_NAME}")
_PLACE: Final = re.compile(r"(?P<file>[^/:]+\.[0-9]+):(?P<position>[0-9]+)")
_AUTO_CNF: Final = re.compile(r"^server-uuid\s*=\s*(\S+)", re.MULTILINE)
_AUTO_CNF_BYTES_MAX: Final = 4096
_STATEMENT_BYTES_MAX: Final = 4 * 1024**2


def store_path(typed: str | None) -> Path:
    """Return the store: the given one, or the user's default."""
    if typed is not None:
        return Path(typed).expanduser()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser() / "gtid-audit" / "schemas.sqlite"


def table_of(text: str) -> TableKey:
    """Parse `schema.table`; names with dots or backquotes must be in backquotes."""
    found = _TABLE.fullmatch(text)
    if found is None:
        raise UsageProblem(f"expected schema.table, not {text!r}; quote special names: `a.b`.`c`")
    schema, table = found[1] or found[2], found[3] or found[4]
    return TableKey(schema.replace("``", "`"), table.replace("``", "`"))


def place_of(text: str) -> Place | None:
    """Parse `FILE:POSITION`; None if the text is something else, such as a GTID."""
    found = _PLACE.fullmatch(text)
    return Place(found["file"], int(found["position"])) if found else None


def expect_place(text: str) -> Place:
    """Parse `FILE:POSITION`."""
    place = place_of(text)
    if place is None:
        raise UsageProblem(f"--at: expected FILE:POSITION, not {text!r}")
    return place


def place_or_gtid(text: str) -> Place | GtidSet:
    """Parse `FILE:POSITION`, or one GTID."""
    place = place_of(text)
    if place is not None:
        return place
    try:
        gtids = GtidSet.parse(text)
    except GtidError as error:
        raise UsageProblem(f"--at: expected FILE:POSITION or a GTID: {error}") from error
    if gtids.gtid_count != 1:
        raise UsageProblem(f"--at: expected one GTID, found {gtids.gtid_count}")
    return gtids


def text_of(file: str) -> str:
    """Read a file that contains a statement."""
    path = Path(file).expanduser()
    try:
        return text_within(path, bytes_max=_STATEMENT_BYTES_MAX)
    except OSError as error:
        raise UsageProblem(f"{file}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageProblem(f"{file}: not UTF-8") from error


def uuid_of(text: str) -> UUID:
    """Parse a server's UUID."""
    try:
        return UUID(text)
    except ValueError:
        raise UsageProblem("--server: not a UUID") from None


def server_in(store: SchemaStore, typed: str | None) -> UUID:
    """Return the selected server: the given one, or the only one in the store."""
    if typed is not None:
        return uuid_of(typed)
    servers = store.servers()
    if len(servers) == 1:
        return servers[0]
    if not servers:
        raise UsageProblem(
            f"{store.path}: no table is tracked here; start with: binlog schema follow"
        )
    listed = ", ".join(map(str, servers))
    raise UsageProblem(f"{store.path} has {len(servers)} servers; select one by --server: {listed}")


def server_of_files(paths: tuple[Path, ...], typed: str | None) -> UUID:
    """Return the server of these logs: as typed, or from the auto.cnf in their directory."""
    if typed is not None:
        return uuid_of(typed)
    beside = paths[0].parent / "auto.cnf"
    try:
        with beside.open("rb") as file:
            text = file.read(_AUTO_CNF_BYTES_MAX).decode("ascii", errors="replace")
    except FileNotFoundError:
        text = ""
    found = _AUTO_CNF.search(text)
    if found is None:
        raise UsageProblem(
            "the server of these logs is not known (there is no auto.cnf next to them): add"
            " --server UUID"
        )
    return uuid_of(found[1])


def check_names(paths: tuple[Path, ...]) -> None:
    """Refuse files without a number: the number defines their order."""
    for path in paths:
        try:
            Place(path.name, 0)
        except BinlogMisuse as error:
            raise UsageProblem(str(error)) from error
