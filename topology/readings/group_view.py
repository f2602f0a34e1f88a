"""What a member of a replication group reports: the members that it sees, and its queue."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from gtid import GtidSet
from topology.readings.worker import WorkerSnapshot

# The channel in which a member of a group queues what the group delivers.
GROUP_APPLIER: Final = "group_replication_applier"


@dataclass(frozen=True, slots=True, order=True)
class GroupMember:
    """One row of performance_schema.replication_group_members, as one member sees another."""

    server_uuid: UUID
    host: str
    port: int
    state: str  # ONLINE, RECOVERING, ERROR, UNREACHABLE
    role: str  # PRIMARY or SECONDARY; empty if the version does not report it

    @property
    def delivers(self) -> bool:
        """Return whether the group delivers to this member, and takes its transactions."""
        return self.state in ("ONLINE", "RECOVERING")

    @property
    def address(self) -> str:
        """Return host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A member's view of its replication group."""

    group_name: str
    member_state: str  # of this member: ONLINE, RECOVERING, ERROR, UNREACHABLE
    member_role: str  # PRIMARY or SECONDARY; empty if the version does not report it
    received: GtidSet  # RECEIVED_TRANSACTION_SET of group_replication_applier, applied or not
    members: tuple[GroupMember, ...] = ()  # including this one, by server_uuid; empty: not read
    workers: tuple[WorkerSnapshot, ...] = ()  # of group_replication_applier
    recovery_errno: int = 0  # of group_replication_recovery, which brings what a new member misses
    recovery_error: str = ""
