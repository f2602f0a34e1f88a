"""The operands of `trace`: an optional GTID, then DSNs; and the DSNs that its commands show.

No message repeats an operand that may contain a password.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from gtid import GtidError, GtidSet
from gtid_audit.exits import UsageProblem
from topology.adapters.inventory.dsn import is_dsn
from topology.readings.target import ServerTarget

# DSN: scheme, `user@`, address or socket, options. It contains no password (read_dsn refuses one).
_PARTS: Final = re.compile(
    r"(?:mysql://)?(?P<user>[^@/?]*@)?[^?]*(?:\?(?P<options>.*))?", re.IGNORECASE | re.DOTALL
)
_SHOWN_CHARACTERS_MAX: Final = 80
_EXPECTED: Final = (
    "expected a GTID (UUID:NUMBER), user@host:port or mysql://user@host:port/?option=value"
)


@dataclass(frozen=True, slots=True)
class TraceOperands:
    """What was typed: one GTID, or an empty set, and at least one DSN."""

    wanted: GtidSet
    dsns: tuple[str, ...]


def read_trace_operands(texts: Sequence[str]) -> TraceOperands:
    """Return the GTID and the DSNs. Raises UsageProblem."""
    if not texts:
        raise UsageProblem(_EXPECTED)
    first, *others = texts
    if is_dsn(first) or first.startswith("/"):  # a Unix socket
        return TraceOperands(GtidSet(), tuple(texts))
    if "@" in first or "://" in first:
        raise UsageProblem(f"{_EXPECTED} (not shown: the operand may contain a password)")
    shown = first[:_SHOWN_CHARACTERS_MAX]
    try:
        wanted = GtidSet.parse(first)
    except GtidError as error:
        raise UsageProblem(f"{_EXPECTED}, found {shown!r}: {error}") from error
    if wanted.gtid_count != 1:
        raise UsageProblem(f"expected one GTID, found {wanted.gtid_count:,} in {shown!r}")
    if not others:
        raise UsageProblem("trace GTID: give the DSN of at least one server behind the GTID")
    return TraceOperands(wanted, tuple(others))


def shown_dsns(
    dsns: Sequence[str], given: Sequence[ServerTarget], names: Sequence[str]
) -> Mapping[str, str]:
    """Return a DSN for each server by name, as it was typed, or like the first one.

    `names` are the servers that were found: their names are their addresses.
    """
    shown = {target.name: dsn for target, dsn in zip(given, dsns, strict=True)}
    parts = _PARTS.fullmatch(dsns[0])
    assert parts is not None, "its address was parsed"
    options = "&".join(
        part
        for part in (parts["options"] or "").split("&")
        if part and not part.lower().replace("-", "_").startswith("unix_socket=")
    )
    for name in names:
        query = f"?{options}" if options else ""
        shown.setdefault(name, f"mysql://{parts['user'] or ''}{name}/{query}")
    return shown
