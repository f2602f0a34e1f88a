"""From a live fleet or stored snapshots to a report: which engine judges, and where.

1. `local` judges in this process, `spark` on Spark; both ask the same rules.
2. What is not installed is named with the command that brings it.
3. A cluster that cannot be judged because of a defect of ours is UNKNOWN, and says so; the others
   are judged all the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from gtid_audit.exits import UsageProblem
from gtid_audit.report import AuditReport, Engine, report_of
from topology.adapters.collect_fleet import Collected, CollectionFailed, Say, collect_fleet
from topology.adapters.inventory.fleet import Fleet
from topology.audit import audit_or_unknown, defect, unjudged
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot

# Below this many clusters Spark would take longer to start than the local engine to finish.
SPARK_CLUSTERS_MIN: Final = 20_000
_ROWS_OF_A_PAIR: Final = 4  # two servers, two readings
INSTALL_SPARK: Final = "pip install 'gtid-audit[spark]'"


@dataclass(frozen=True, slots=True)
class Audited:
    """A report, and the snapshots it was made of where they are at hand (for pictures, plans)."""

    report: AuditReport
    snapshots: tuple[ClusterSnapshot, ...] = ()


def engine_for(chosen: str, *, cluster_count: int) -> Engine:
    """Return the engine of a choice; `auto` is Spark from SPARK_CLUSTERS_MIN clusters on."""
    if chosen == "auto":
        return Engine.SPARK if cluster_count >= SPARK_CLUSTERS_MIN else Engine.LOCAL
    return Engine(chosen)


def audit_fleet(
    fleet: Fleet, *, engine: Engine, store_in: Path | None, say: Say | None = None
) -> Audited:
    """Read a fleet and judge it; keep the snapshots in a directory if one is given."""
    if engine is Engine.SPARK or store_in is not None:
        require_parquet()
    if engine is Engine.SPARK:
        require_spark()
    collected = list(collect_fleet(fleet, say=say))
    snapshots = _snapshots(collected)
    failed = [_failed(each) for each in collected if isinstance(each, CollectionFailed)]
    run = store(store_in, snapshots) if store_in is not None and snapshots else None
    if engine is Engine.LOCAL:
        audits = [audit_or_unknown(snapshot, fleet.policy) for snapshot in snapshots]
    else:
        audits = list(_on_spark(snapshots, fleet.policy, run))
    return Audited(report_of(engine, [*audits, *failed]), snapshots)


def audit_stored(directory: Path, *, engine: Engine, policy: Policy) -> AuditReport:
    """Judge the latest stored snapshots below a directory. Raises UsageProblem."""
    require_parquet()
    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots

    try:
        if engine is Engine.SPARK:
            return report_of(engine, _stored_on_spark(directory, policy))
        from spark_audit.adapters.local import audit_snapshots_locally

        return report_of(engine, audit_snapshots_locally(directory, policy=policy))
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem


def store(directory: Path, snapshots: Iterable[ClusterSnapshot]) -> Path:
    """Write snapshots as one run and return its directory. Raises UsageProblem."""
    require_parquet()
    from topology.adapters.parquet import write_snapshots

    try:
        return write_snapshots(directory, snapshots)
    except OSError as error:
        raise UsageProblem(f"{directory}: {error.strerror or error}") from error


def count_stored(directory: Path) -> int:
    """Return about how many clusters the latest run holds: two servers a cluster, two readings."""
    require_parquet()
    from pyarrow.parquet import read_metadata

    from topology.adapters.parquet import (
        NoSnapshots,
        UnreadableSnapshots,
        files_of_run,
        latest_run,
    )

    try:
        files = files_of_run(latest_run(directory))
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem
    rows: int = sum(read_metadata(file).num_rows for file in files)
    return rows // _ROWS_OF_A_PAIR


def require_parquet() -> None:
    """Raise UsageProblem if stored snapshots cannot be read or written here."""
    _require("pyarrow", "stored snapshots need PyArrow")


def require_spark() -> None:
    """Raise UsageProblem if PySpark is not installed."""
    _require("pyspark", "--engine spark needs PySpark")


def _require(module: str, need: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise UsageProblem(f"{need}, which is not installed: {INSTALL_SPARK}")


def _snapshots(collected: Iterable[Collected]) -> tuple[ClusterSnapshot, ...]:
    found = [each for each in collected if isinstance(each, ClusterSnapshot)]
    return tuple(sorted(found, key=lambda snapshot: snapshot.cluster))


def _on_spark(
    snapshots: tuple[ClusterSnapshot, ...], policy: Policy, run: Path | None
) -> tuple[ClusterAudit, ...]:
    if not snapshots:
        return ()
    if run is not None:
        return _stored_on_spark(run, policy)
    with TemporaryDirectory(prefix="gtid-audit-") as scratch:
        return _stored_on_spark(store(Path(scratch), snapshots), policy)


def _stored_on_spark(directory: Path, policy: Policy) -> tuple[ClusterAudit, ...]:
    require_spark()
    from spark_audit.adapters.job import audit_snapshots_with_spark
    from spark_audit.adapters.session import JavaMissing, SparkNotStarted

    try:
        return audit_snapshots_with_spark(directory, policy=policy)
    except (JavaMissing, SparkNotStarted) as problem:
        raise UsageProblem(str(problem)) from problem


def _failed(failed: CollectionFailed) -> ClusterAudit:
    assert failed.__cause__ is not None, "raised with its cause"
    return unjudged(failed.cluster, {defect(failed.cluster, failed.__cause__)})
