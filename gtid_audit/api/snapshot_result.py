"""`read_snapshot`: the two readings of each server, live or stored, without an evaluation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gtid.counted_nouns import counted
from gtid_audit.api.api_errors import UnreadableSource, say_nothing, translated
from gtid_audit.api.requested_servers import fleet_of, one_of, refuse, requested_servers
from gtid_audit.api.result_frames import arrow_of, pandas_of
from topology.documents.records import SNAPSHOT
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """The readings of some clusters, in order of name."""

    clusters: tuple[ClusterSnapshot, ...]

    @property
    def readings(self) -> tuple[ServerSnapshot, ...]:
        """Return every reading: of each cluster first all of phase 1, then all of phase 2."""
        return tuple(one for each in self.clusters for one in (*each.first, *each.last))

    @property
    def unread(self) -> tuple[tuple[str, str, UnreadFact], ...]:
        """Return what could not be read: the cluster, the server, and the fact with its reason."""
        return tuple(dict.fromkeys(self._unread()))

    def _unread(self) -> Iterator[tuple[str, str, UnreadFact]]:
        for one in self.readings:
            for fact in one.unread:
                yield one.cluster, one.name, fact

    def to_arrow(self) -> Any:  # noqa: ANN401 - pa.Table, of a package without types
        """Return a `pyarrow.Table` with one row for each reading, as stored runs have them.

        Raises MissingPackage without PyArrow (extra `columns`).
        """
        return arrow_of(SNAPSHOT, self.readings)

    def to_pandas(self) -> "pd.DataFrame":
        """Return the same rows as a `pandas.DataFrame`. Raises MissingPackage (extra `pandas`)."""
        return pandas_of(self.to_arrow())

    def __repr__(self) -> str:
        counts = counted(len(self.clusters), "cluster"), counted(len(self.readings), "reading")
        return f"<SnapshotResult {', '.join(counts)}>"


def read_snapshot(
    *dsns: str,
    fleet: str | Path | None = None,
    cluster: str | None = None,
    stored: str | Path | None = None,
    password: str | None = None,
    timeout_seconds: float | None = None,
    progress: Callable[[str], None] = say_nothing,
) -> SnapshotResult:
    """Read every server twice, the second time after all have been read once.

    Args:
        dsns: the servers of one cluster, as `mysql://user@host:port/?option=value`.
        fleet: a fleet file, instead of DSNs; `cluster` selects one of its clusters.
        stored: a directory of stored runs, instead of servers: the latest complete run.
        password: for servers without an option file. Without it, GTID_AUDIT_PASSWORD, then
            MYSQL_PWD of the environment.
        timeout_seconds: for one server, at most 3600. Default: 5.
        progress: called with one text for each step.

    Raises:
        InvalidRequest: the arguments, an account or a file is wrong.
        MissingPackage: a stored run needs PyArrow.
        UnreadableSource: the stored run is incomplete, damaged, or of another version.
    """
    with translated():
        source = one_of(dsns=dsns, fleet=fleet, stored=stored)
        named = requested_servers(dsns, password=password, timeout_seconds=timeout_seconds)
        if source != "dsns":
            named.refuse_settings()
        if source != "fleet":
            refuse("is for a fleet file", cluster=cluster)
        if stored is not None:
            return SnapshotResult(_stored(Path(stored).expanduser()))
        if fleet is not None:
            from gtid_audit.tasks.fleet_reading import read_fleet

            read = read_fleet(
                fleet_of(fleet, cluster),
                for_audit=False,
                content=False,
                definitions=False,
                say=progress,
            )
            return SnapshotResult(read.snapshots)
        from topology.adapters.collect import collect_cluster

        to_read = named.to_read()
        found = collect_cluster(
            to_read.name,
            to_read.targets,
            limits=to_read.limits,
            policy=to_read.policy,
            progress=progress,
        )
        return SnapshotResult((found,))


def _stored(directory: Path) -> tuple[ClusterSnapshot, ...]:
    from gtid_audit.optional_packages import require_parquet

    require_parquet()
    from topology.adapters.parquet import read_snapshots
    from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots

    try:
        return read_snapshots(directory)
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UnreadableSource(str(problem)) from problem
