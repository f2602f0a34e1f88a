r"""What an account can see of definitions: information_schema silently omits all other objects.

A table that is missing in information_schema may exist: the account has no privilege on it. So
"the replica has fewer tables" is only known if the account can see every table there.

1. The privileges are read from SHOW GRANTS, which includes those of active roles (seen on 9.7.4).
2. A global privilege shows the objects of all schemas, except those that a partial revoke excludes
   (partial_revokes, 8.0.16). A privilege on a schema, or on a pattern such as `app\_%`, shows those
   of the schemas that match. If several patterns match, the server uses only the most specific one;
   so a privilege counts here if all of them have it. With partial_revokes=ON, `%` and `_` are plain
   characters.
3. The rules were tried on 5.6.24 and 9.7.4 with one account per privilege. Views need SHOW VIEW
   for their text. Routines need a global privilege for their body. A privilege on single tables or
   columns shows some objects, never all.

Source: reference manual, "INFORMATION_SCHEMA Tables", "The ROUTINES Table", "Partial Revokes".
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from topology.readings.like_pattern import like_pattern

_GRANT: Final = re.compile(
    r"^GRANT (?P<what>.+?) ON (?P<schema>\*|`(?:[^`]|``)+`)\.\* TO ", re.IGNORECASE
)
_REVOKE: Final = re.compile(
    r"^REVOKE (?P<what>.+?) ON (?P<schema>`(?:[^`]|``)+`)\.\* FROM ", re.IGNORECASE
)
_ALL: Final = "ALL PRIVILEGES"

# What each kind of object (ObjectKind.value) needs, as sets of which one suffices.
_NEEDED: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    "schema": (frozenset({"SELECT"}),),
    "table": (frozenset({"SELECT"}),),
    "view": (frozenset({"SELECT", "SHOW VIEW"}),),
    "trigger": (frozenset({"TRIGGER"}),),
    "event": (frozenset({"EVENT"}),),
}
_ROUTINES: Final = (frozenset({"SELECT"}), frozenset({"SHOW_ROUTINE"}))


@dataclass(frozen=True, slots=True)
class Visibility:
    """The privileges of an account that show definitions."""

    everywhere: frozenset[str] = frozenset()
    # Privileges on schemas: the pattern as in GRANT, and the names of the privileges.
    schemas: tuple[tuple[str, frozenset[str]], ...] = ()
    revoked: tuple[tuple[str, frozenset[str]], ...] = ()
    are_literal: bool = False  # `%` and `_` in `schemas` are plain characters
    _patterns: dict[str, re.Pattern[str]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of_grants(cls, lines: Iterable[str], *, are_literal: bool = False) -> "Visibility":
        """Return what the lines of SHOW GRANTS permit to see; `are_literal`: partial_revokes."""
        everywhere: set[str] = set()
        schemas, revoked = [], []
        for line in lines:
            if (found := _GRANT.match(line)) is not None:
                what = _names(found["what"])
                if found["schema"] == "*":
                    everywhere |= what
                else:
                    schemas.append((_unquoted(found["schema"]), what))
            elif (found := _REVOKE.match(line)) is not None:
                revoked.append((_unquoted(found["schema"]), _names(found["what"])))
        return cls(frozenset(everywhere), tuple(schemas), tuple(revoked), are_literal)

    def shows(self, kind: str, schema: str) -> bool:
        """Return whether the account sees every object of a kind in a schema, with its text."""
        if kind in ("procedure", "function"):
            return any(needed <= self._global_in(schema) for needed in _ROUTINES)
        matching = [what for pattern, what in self.schemas if self._matches(pattern, schema)]
        held = self._global_in(schema).union(frozenset.intersection(*matching) if matching else ())
        return any(needed <= held for needed in _NEEDED[kind])

    def shows_everywhere(self, kind: str) -> bool:
        """Return whether the account sees every object of a kind in all schemas."""
        needed = _ROUTINES if kind in ("procedure", "function") else _NEEDED[kind]
        return any(
            each <= self.everywhere and not any(each & what for _, what in self.revoked)
            for each in needed
        )

    def _global_in(self, schema: str) -> frozenset[str]:
        gone: frozenset[str] = frozenset()
        for name, what in self.revoked:
            if name == schema:
                gone |= what
        return self.everywhere - gone

    def _matches(self, pattern: str, schema: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = _like(pattern, is_literal=self.are_literal)
        return self._patterns[pattern].fullmatch(schema) is not None


def needed_for(kind: str) -> str:
    """Return the privileges that show every object of a kind, as GRANT writes them."""
    if kind in ("procedure", "function"):
        return "SELECT (or SHOW_ROUTINE) ON *.*"
    return f"{', '.join(sorted(_NEEDED[kind][0]))} ON *.*"


def _names(text: str) -> frozenset[str]:
    names = {each.strip().upper() for each in re.sub(r"\([^)]*\)", "()", text).split(",")}
    if names & {_ALL, "ALL"}:
        names |= {"SELECT", "SHOW VIEW", "TRIGGER", "EVENT"}
    # A privilege on columns, `SELECT (a)`, does not show a table.
    return frozenset(name for name in names if "(" not in name)


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`")


def _like(pattern: str, *, is_literal: bool) -> re.Pattern[str]:
    r"""Return a schema pattern of GRANT as an expression: `%`, `_`, and `\` before either."""
    if is_literal:
        return re.compile(re.escape(pattern.replace("\\_", "_").replace("\\%", "%")))
    return like_pattern(pattern)
