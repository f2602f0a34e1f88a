"""From a live fleet or stored snapshots to a report: which engine judges, and where.

1. `local` judges in this process, `spark` on Spark; both ask the same rules.
2. What is not installed is named with the command that brings it.
3. A cluster that cannot be judged because of a defect of ours is UNKNOWN, and says so; the others
   are judged all the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from gtid_audit.answers import Answer, InFiles, InMemory
from gtid_audit.content_due import is_content_due
from gtid_audit.exits import UsageProblem
from gtid_audit.report import Engine, report_of
from topology.adapters.collect_fleet import Collected, CollectionFailed, Say, collect_fleet
from topology.adapters.inventory.fleet import Fleet
from topology.audit import audit_or_unknown, defect, unjudged
from topology.contents import ContentReading
from topology.findings import ClusterAudit
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot
from topology.target import ServerTarget

if TYPE_CHECKING:  # PySpark is imported only where it is used
    from spark_audit.adapters.results import Results

# Below this many clusters Spark would take longer to start than the local engine to finish.
SPARK_CLUSTERS_MIN: Final = 200_000
# Clusters whose contents are compared at the same time: it is waiting for servers.
CONTENTS_AT_ONCE: Final = 16
_ROWS_OF_A_PAIR: Final = 4  # two servers, two readings
INSTALL_SPARK: Final = "pip install 'gtid-audit[spark]'"


def engine_for(chosen: str, *, cluster_count: int) -> Engine:
    """Return the engine of a choice; `auto` is Spark from SPARK_CLUSTERS_MIN clusters on."""
    if chosen == "auto":
        return Engine.SPARK if cluster_count >= SPARK_CLUSTERS_MIN else Engine.LOCAL
    return Engine(chosen)


def audit_fleet(
    fleet: Fleet,
    *,
    store_in: Path | None = None,
    say: Say | None = None,
    content: bool | None = None,
) -> InMemory:
    """Read a fleet and judge it here; keep the snapshots in a directory if one is given.

    `content`: compare the content of transactions after every start of a server, or not at all;
    None compares after starts within the last day.
    """
    snapshots, failed, _ = _collect(fleet, store_in, say)
    read = _all_contents(fleet, snapshots, content, say)
    audits = [
        audit_or_unknown(snapshot, fleet.policy, contents)
        for snapshot, contents in zip(snapshots, read, strict=True)
    ]
    compared = {
        snapshot.cluster: contents
        for snapshot, contents in zip(snapshots, read, strict=True)
        if contents is not None
    }
    return InMemory(report_of(Engine.LOCAL, [*audits, *failed]), snapshots, compared)


def _all_contents(
    fleet: Fleet, snapshots: Sequence[ClusterSnapshot], chosen: bool | None, say: Say | None
) -> list[ContentReading | None]:
    """Compare the contents of some clusters at once; a server is asked one thing at a time."""
    targets = {cluster.name: cluster.targets for cluster in fleet.clusters}

    def read(snapshot: ClusterSnapshot) -> ContentReading | None:
        return _contents(snapshot, targets.get(snapshot.cluster, ()), chosen, say)

    with ThreadPoolExecutor(CONTENTS_AT_ONCE) as pool:
        return list(pool.map(read, snapshots))


def _contents(
    snapshot: ClusterSnapshot,
    targets: Sequence[ServerTarget],
    chosen: bool | None,
    say: Say | None,
) -> ContentReading | None:
    """Compare contents where that is due; what it takes is imported only then."""
    if not is_content_due(snapshot, chosen):
        return None
    from gtid_audit.content import read_contents

    if say is not None:
        say(f"{snapshot.cluster}: comparing the content of transactions")
    return read_contents(snapshot, targets, every_start=bool(chosen))


@contextmanager
def answer_of_fleet(
    fleet: Fleet,
    *,
    engine: Engine,
    out: Path | None,
    say: Say | None = None,
    content: bool | None = None,
) -> Iterator[Answer]:
    """Read a fleet and judge it. With `out`, keep the snapshots and what Spark finds there.

    What Spark found can be read as long as the context lasts. Raises UsageProblem.
    """
    if engine is Engine.LOCAL:
        yield audit_fleet(fleet, store_in=out, say=say, content=content)
        return
    if content:
        raise UsageProblem("--content is for --engine local: Spark judges readings only")
    require_spark()
    with _directory_or_scratch(out) as directory:
        snapshots, failed, run = _collect(fleet, directory, say)
        if run is None:  # nothing was stored: there is nothing for Spark to judge
            yield InMemory(report_of(engine, failed), snapshots)
            return
        with _on_spark(run, directory, fleet.policy, failed) as results:
            yield InFiles(results, kept=out is not None)


@contextmanager
def answer_of_stored(
    directory: Path, *, engine: Engine, policy: Policy, out: Path | None = None
) -> Iterator[Answer]:
    """Judge the latest stored snapshots below a directory. With `out`, keep what Spark finds there.

    What Spark found can be read as long as the context lasts. Raises UsageProblem.
    """
    require_parquet()
    if engine is Engine.SPARK:
        with (
            _directory_or_scratch(out) as results_below,
            _on_spark(directory, results_below, policy) as results,
        ):
            yield InFiles(results, kept=out is not None)
        return
    if out is not None:
        raise UsageProblem("results with their history are written by --engine spark")
    from spark_audit.adapters.local import audit_snapshots_locally
    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots

    try:
        audits = audit_snapshots_locally(directory, policy=policy)
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UsageProblem(str(problem)) from problem
    yield InMemory(report_of(engine, audits))


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

    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots, files_of_run, latest_run

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


def _collect(
    fleet: Fleet, store_in: Path | None, say: Say | None
) -> tuple[tuple[ClusterSnapshot, ...], list[ClusterAudit], Path | None]:
    """Read a fleet: the snapshots, what could not be read by a defect of ours, the stored run."""
    if store_in is not None:
        require_parquet()
    collected = list(collect_fleet(fleet, say=say))
    snapshots = _snapshots(collected)
    failed = [_failed(each) for each in collected if isinstance(each, CollectionFailed)]
    run = store(store_in, snapshots) if store_in is not None and snapshots else None
    return snapshots, failed, run


@contextmanager
def _directory_or_scratch(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        yield directory
        return
    with TemporaryDirectory(prefix="gtid-audit-") as scratch:
        yield Path(scratch)


@contextmanager
def _on_spark(
    snapshots: Path, out: Path, policy: Policy, more: Sequence[ClusterAudit] = ()
) -> Iterator["Results"]:
    require_spark()
    from spark_audit.adapters.job import audit_stored
    from spark_audit.adapters.results import ResultsDiffer
    from spark_audit.adapters.session import JavaMissing, SparkNotStarted, local_session
    from spark_audit.summary import MalformedSummary
    from topology.adapters.parquet import NoSnapshots, UnreadableSnapshots, latest_run

    try:
        run = latest_run(snapshots)  # before Java is started for nothing
        with local_session() as session:
            try:
                results = audit_stored(
                    session, snapshots=str(run), out=str(out), policy=policy, more=more
                )
            except OSError as error:
                raise UsageProblem(f"{out}: {error.strerror or error}") from error
            yield results
    except (NoSnapshots, UnreadableSnapshots, ResultsDiffer, MalformedSummary) as problem:
        raise UsageProblem(str(problem)) from problem
    except (JavaMissing, SparkNotStarted) as problem:
        raise UsageProblem(str(problem)) from problem


def _failed(failed: CollectionFailed) -> ClusterAudit:
    assert failed.__cause__ is not None, "raised with its cause"
    return unjudged(failed.cluster, {defect(failed.cluster, failed.__cause__)})
