"""The data source `mysql_snapshot`: live servers as rows of SNAPSHOTS, read on the executors.

    spark.read.format("mysql_snapshot").option("fleet", "/etc/fleet.yaml").load()

1. The driver assigns clusters to partitions. A task reads several of its clusters at a time, each
   with both readings and the barrier between them. All rows of a cluster come from one task.
2. No error of one server or cluster fails a task. Errors of a server are in its rows, as in every
   reading. For a defect of ours, or an account that is missing on an executor, the rows state that
   error: two readings of every server concerned, with nothing read. The verdict is then UNKNOWN;
   it is never OK, and no cluster is left out.
3. No option has a password, so no plan, event, data source or reader has one. The password travels
   in the pickled partitions, which Spark gives to the tasks and does not show. With credentials =
   executor it does not travel.
4. The driver reports all problems of options and fleet file at once, at `load`.
5. Consumers of the fleet file are not read: their files and commands are on the driver's machine,
   and a row has no place for them. The driver warns about it.
6. Every action reads the servers again. Store the rows first if you need them twice.
"""

import heapq
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from spark_audit.adapters.option_texts import Credentials
from spark_audit.adapters.pickled_accounts import packed, unpacked
from spark_audit.adapters.source_options import SourceOptions
from spark_audit.schema import SNAPSHOTS
from topology.adapters.collect import CollectLimits, OpenReader, Reader, live_readers
from topology.adapters.collect_fleet import collect_fleet
from topology.adapters.inventory.accounts import ServerEntry, look_up_accounts
from topology.adapters.inventory.fleet import Cluster, ClusterEntry, Fleet, Roster
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import environment
from topology.adapters.recorded_servers import MemoryReader, Prepared
from topology.adapters.storable import rows_of
from topology.readings.snapshot import ClusterSnapshot, UnreadFact, UnreadReason
from topology.readings.target import ServerTarget

NAME: Final = "mysql_snapshot"
# Reading spends its time waiting for servers. A few tasks are enough, unless the caller asks for
# more, and each gets an equal share of the connections.
PARTITIONS_DEFAULT: Final = 8


class MysqlSnapshotSource(DataSource):
    """The source that Spark asks for the schema and a reader. Holds options, and no account."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format(…)`."""
        return NAME

    def schema(self) -> StructType:
        """Return SNAPSHOTS. Raises InventoryProblem for problems of options and fleet file."""
        plan_of(SourceOptions.of(self.options))
        return SNAPSHOTS

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader. Raises InventoryProblem for another schema than SNAPSHOTS."""
        if schema != SNAPSHOTS:
            raise InventoryProblem(f"{NAME} has its own schema; omit .schema(…)")
        return SnapshotReader(SourceOptions.of(self.options))


@dataclass(frozen=True, slots=True)
class SnapshotReader(DataSourceReader):
    """Assigns clusters to tasks on the driver, and reads them on the executors."""

    options: SourceOptions

    def partitions(self) -> list[InputPartition]:
        """Read the fleet file and assign its clusters. Raises InventoryProblem."""
        return [SnapshotPartition(part) for part in plan_of(self.options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the clusters of one partition, and yield one batch per cluster."""
        assert isinstance(partition, SnapshotPartition), "we dealt it"
        fleet, readers_of = _ready(partition.part)
        for snapshot in collect_fleet(fleet, readers_of=readers_of, asks_logs=True):
            yield batch_of(snapshot)


class SnapshotPartition(InputPartition):
    """The clusters of one task, with their accounts or with the locations of these."""

    def __init__(self, part: Fleet | Roster) -> None:
        super().__init__(None)
        self.part = part

    def __repr__(self) -> str:
        return f"SnapshotPartition({len(self.part.clusters)} clusters)"

    def __reduce__(self) -> tuple[Callable[[bytes], "SnapshotPartition"], tuple[bytes]]:
        return _unpacked, (packed(self.part),)


def _unpacked(carried: bytes) -> SnapshotPartition:
    return SnapshotPartition(unpacked(carried))


# -- on the driver --------------------------------------------------------------------------------


def plan_of(options: SourceOptions) -> Sequence[Fleet] | Sequence[Roster]:
    """Read the fleet file and assign its clusters to tasks. Raises InventoryProblem."""
    from topology.adapters.inventory.fleet_file import load_fleet, load_roster

    if options.credentials is Credentials.EXECUTOR:
        roster = load_roster(options.fleet, environment=environment(), cluster=options.cluster)
        return dealt(_without_consumers(roster), options)
    fleet = load_fleet(
        options.fleet, environment=environment(), warn=_warn, cluster=options.cluster
    )
    return dealt(_without_consumers(fleet), options)


Part = TypeVar("Part", Fleet, Roster)


def _without_consumers(fleet: Part) -> Part:
    """Return a fleet whose consumers are left out, with a warning of what is not read."""
    if fleet.policy.definitions:
        _warn("this source does not compare definitions (definitions: true of the policy)")
    if not any(each.consumers for each in fleet.clusters):
        return fleet
    _warn("this source does not read consumers of the fleet file")
    return replace(fleet, clusters=tuple(replace(each, consumers=()) for each in fleet.clusters))


def dealt(fleet: Part, options: SourceOptions) -> list[Part]:
    """Assign clusters to tasks: the largest first, each to the task with the fewest servers.

    Together, all tasks keep to the fleet's `connections_max`, even if all run at once. With the
    option `connections`, each task has that many. Raises InventoryProblem if a task would have
    none.
    """
    largest = max(cluster.server_count for cluster in fleet.clusters)
    wanted = options.partitions or min(PARTITIONS_DEFAULT, fleet.connections_max // largest) or 1
    count = min(wanted, len(fleet.clusters))
    if options.connections is None and count > fleet.connections_max:
        raise InventoryProblem(
            f"option partitions: {count:,} tasks would share {fleet.connections_max:,} connections"
            " (limits.connections_max of the fleet file); reduce it, or set the connections of each"
            " task with the option connections"
        )
    share = options.connections or fleet.connections_max // count
    hands = [(0, number) for number in range(count)]
    holder: dict[str, int] = {}
    for cluster in sorted(fleet.clusters, key=lambda each: (-each.server_count, each.name)):
        weight, number = hands[0]
        holder[cluster.name] = number
        heapq.heapreplace(hands, (weight + cluster.server_count, number))
    return [
        replace(
            fleet,
            clusters=tuple(each for each in fleet.clusters if holder[each.name] == number),
            connections_max=share,
        )
        for number in range(count)
    ]


def _warn(text: str) -> None:
    sys.stderr.write(f"{NAME}: {text}\n")


# -- on an executor -------------------------------------------------------------------------------


def batch_of(snapshot: ClusterSnapshot) -> pa.RecordBatch:
    """Return the rows of one cluster, whatever errors it had (rule 2)."""
    (batch,) = rows_of([snapshot]).combine_chunks().to_batches()
    return batch


def _ready(part: Fleet | Roster) -> tuple[Fleet, Callable[[str, CollectLimits], OpenReader]]:
    """Return clusters with accounts, and their reader. A missing account is an unread server."""
    if isinstance(part, Fleet):
        return part, live_readers
    absent: dict[tuple[str, str], UnreadFact] = {}
    completed = look_up_accounts(environment(), _warn)

    def target_of(cluster: ClusterEntry, server: ServerEntry) -> ServerTarget:
        try:
            return completed(server)
        except InventoryProblem as problem:
            detail = f"no account on the executor: {problem}"
            absent[cluster.name, server.name] = UnreadFact(
                "connection", UnreadReason.UNREACHABLE, detail
            )
            return server.target_without_account()

    def readers_of(cluster: str, limits: CollectLimits) -> OpenReader:
        live = live_readers(cluster, limits)

        def open_reader(target: ServerTarget) -> Reader:
            fact = absent.get((cluster, target.name))
            if fact is None:
                return live(target)
            return MemoryReader(target, cluster, {1: (Prepared(fact),), 2: (Prepared(fact),)})

        return open_reader

    clusters = tuple(
        Cluster(each.name, tuple(target_of(each, server) for server in each.servers))
        for each in part.clusters
    )
    return Fleet(clusters, part.limits, part.connections_max, part.policy), readers_of
