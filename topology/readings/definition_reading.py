"""Results of comparing the definitions of servers for an audit: facts, read after the readings.

1. They are there only if the audit was asked for them (--definitions, or the policy of the fleet
   file). A snapshot without them says nothing about definitions.
2. Of each pair that was compared: the objects that differ, in short, and the DDL transactions that
   one of the two servers has executed and the other has not. Full definitions are not stored:
   `gtid-audit schema drift` prints them, with the statements that repair them.
3. Nothing is evaluated here. What could not be read is listed, with the reason.
"""

from dataclasses import dataclass
from datetime import datetime

from gtid import GtidSet
from topology.readings.logged_ddl import LoggedDdl


@dataclass(frozen=True, slots=True)
class DifferingObject:
    """One object whose definitions differ, as topology/definitions/pair_drift.py evaluates it."""

    kind: str
    schema: str
    name: str  # "" for a schema
    classes: tuple[str, ...]  # such as "column fewer", seen from the replica
    is_proved: bool  # no transaction on its way, no filter and no other source explains it
    is_filtered: bool  # a filter of the channel leaves out its changes
    may_be_of_another_source: bool  # only the replica has it, and a source of it was not read
    is_severe: bool  # rows of the source stop the applier, or get wrong without an error
    rows: str  # what rows of the source do on the replica
    errors: tuple[int, ...]  # error numbers that may follow
    causes: tuple[str, ...]  # what may explain it without a fault
    pending: GtidSet  # DDL that only one server had executed, and that may concern the object
    is_searched: bool  # whether all transactions that may concern it were searched
    made_by: tuple[LoggedDdl, ...]  # DDL that only the replica has executed and that concerns it
    changes: tuple[str, ...]  # the first changed clauses: "- " on the source, "+ " on the replica

    @property
    def label(self) -> str:
        """Return the kind and the name: `table app.t`."""
        return f"{self.kind} {self.schema}.{self.name}" if self.name else f"schema {self.schema}"


@dataclass(frozen=True, slots=True)
class ComparedDefinitions:
    """Two servers whose definitions were compared.

    `behind` and `ahead` compare the first reading of the audit of one server with a later reading
    of the other. So what a healthy channel delivered meanwhile is in neither.
    """

    source: str
    replica: str
    dsns: tuple[str, str]  # of source and replica, without passwords
    has_channel: bool
    is_mutual: bool  # each is a source of the other, or both are members of one group
    object_count: int
    differing: tuple[DifferingObject, ...]
    behind: tuple[LoggedDdl, ...]  # executed by the source and not by the replica, oldest first
    ahead: tuple[LoggedDdl, ...]  # executed by the replica and not by the source
    unsearched: str  # why not all transactions of these two were searched for DDL; "" if all were


@dataclass(frozen=True, slots=True, order=True)
class UnreadDefinitions:
    """Definitions of one server that could not be read, and the reason."""

    server: str
    fact: str
    reason: str


@dataclass(frozen=True, slots=True)
class DefinitionReading:
    """The comparison of the definitions of a cluster."""

    read_at: datetime  # when it ended
    pairs: tuple[ComparedDefinitions, ...]
    unread: tuple[UnreadDefinitions, ...]

    @property
    def is_silent(self) -> bool:
        """Return whether no rule has anything to report about it."""
        return not self.unread and not any(
            each.differing or each.behind or each.ahead or each.unsearched for each in self.pairs
        )
