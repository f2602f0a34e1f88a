"""What a member of a replication group reports: the members that it sees, and its queue."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from binlog.log_times import EPOCH
from gtid import GtidSet
from topology.readings.worker import WorkerSnapshot

# The channel in which a member of a group queues what the group delivers.
GROUP_APPLIER: Final = "group_replication_applier"
_MOMENT_DIGITS_MAX: Final = 18  # until 5138
# The channel by which a member in recovery fetches what it is missing from another one.
GROUP_RECOVERY: Final = "group_replication_recovery"
# Channels of Group Replication have no source of their own: the group is their source.
GROUP_CHANNELS: Final = frozenset({GROUP_APPLIER, GROUP_RECOVERY})
# States in which the group delivers to a member, and takes its transactions.
DELIVERED_TO: Final = frozenset({"ONLINE", "RECOVERING"})


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
        return self.state in DELIVERED_TO

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
    recovery_workers: tuple[WorkerSnapshot, ...] = ()  # of group_replication_recovery
    recovery_errno: int = 0  # of group_replication_recovery, which brings what a new member misses
    recovery_error: str = ""
    view_id: str = ""  # VIEW_ID of replication_group_member_stats; empty: not read

    @property
    def bootstrapped_at(self) -> datetime | None:
        """Return when the group was bootstrapped, by the clock of the server that did it.

        A view is named by that moment in units of 100 ns since 1970, and a counter (plugin/
        group_replication/libmysqlgcs, Gcs_xcom_view_identifier; seen on 9.7.4).
        """
        moment = self.view_id.partition(":")[0]
        if not (moment.isascii() and moment.isdigit() and len(moment) <= _MOMENT_DIGITS_MAX):
            return None
        return EPOCH + timedelta(microseconds=int(moment) // 10)
