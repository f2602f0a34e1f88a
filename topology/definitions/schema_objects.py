"""The schema objects of a server: their names, a digest of each definition, and the sets around it.

1. A digest says only whether two definitions are written alike. Where digests differ, the text that
   SHOW CREATE prints decides (canonical.py): servers of different versions print the same
   definition in different ways.
2. `SetsAround` are the GTIDs before and after a reading. Everything in `before` is part of the
   definitions that were read; nothing that is outside `after` is. `in_flight.py` uses both.
3. Schemas of MySQL itself are not objects here.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

from gtid import GtidSet
from topology.definitions.visibility import Visibility
from topology.readings.snapshot import UnreadFact

SYSTEM_SCHEMAS: Final = ("information_schema", "mysql", "performance_schema", "sys")
_DIGEST_CHARACTERS: Final = 12


class ObjectKind(Enum):
    """The kinds of objects, in MySQL's words."""

    SCHEMA = "schema"
    TABLE = "table"
    VIEW = "view"
    PROCEDURE = "procedure"
    FUNCTION = "function"
    TRIGGER = "trigger"
    EVENT = "event"


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """One object: its kind, its schema, its name. The name of a schema is empty."""

    kind: ObjectKind
    schema: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}" if self.name else self.schema

    @property
    def label(self) -> str:
        """Return the kind and the name, as a fact or a heading names the object."""
        return f"{self.kind.value} {self}"

    @property
    def order(self) -> tuple[str, int, str]:
        """Return the place in a list: by schema, kind, name."""
        return (self.schema, list(ObjectKind).index(self.kind), self.name)

    def folded(self) -> "ObjectKey":
        """Return the key as a server with lower_case_table_names above 0 compares it."""
        return ObjectKey(self.kind, self.schema.casefold(), self.name.casefold())


@dataclass(frozen=True, slots=True)
class ObjectDigest:
    """One definition in short: its digest, its size, its number of columns (0 if no table)."""

    digest: str
    size_bytes: int = 0
    column_count: int = 0


@dataclass(frozen=True, slots=True)
class SetsAround:
    """What a server had executed before a reading, and executed or owned after it."""

    before: GtidSet
    after: GtidSet

    def until(self, later: "SetsAround") -> "SetsAround":
        """Return the sets around this reading and a later one."""
        return SetsAround(self.before, later.after)


@dataclass(frozen=True, slots=True)
class ServerObjects:
    """The objects of one server as its information_schema shows them to the account."""

    server: str
    visibility: Visibility
    sets: SetsAround
    folds_names: bool = False  # lower_case_table_names is not 0
    objects: Mapping[ObjectKey, ObjectDigest] = field(default_factory=dict)
    unread: tuple[UnreadFact, ...] = ()

    def count(self, *kinds: ObjectKind) -> int:
        """Return the number of objects of these kinds."""
        return sum(key.kind in kinds for key in self.objects)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all definitions, as the server's tables of columns show them."""
        return sum(each.size_bytes for each in self.objects.values())

    @property
    def column_count(self) -> int:
        """Return the number of columns of all tables."""
        return sum(each.column_count for each in self.objects.values())

    def with_unread(self, unread: tuple[UnreadFact, ...]) -> "ServerObjects":
        """Return these objects with more facts that could not be read."""
        return replace(self, unread=tuple(dict.fromkeys((*self.unread, *unread))))

    def digest(self, resolved: Mapping[ObjectKey, str] | None = None) -> str:
        """Return a short digest of all definitions.

        `resolved` has the digests of definitions that were read in full: they replace the others,
        because different versions write the same definition differently.
        """
        replaced = resolved or {}
        whole = hashlib.sha256()
        for key in sorted(self.objects, key=lambda each: each.order):
            named = key.folded() if self.folds_names else key
            text = replaced.get(key, self.objects[key].digest)
            whole.update(f"{named.kind.value}\0{named.schema}\0{named.name}\0{text}\n".encode())
        return whole.hexdigest()[:_DIGEST_CHARACTERS]
