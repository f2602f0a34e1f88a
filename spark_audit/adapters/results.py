"""The results of one audited run, as files: written completely or not at all, and read back.

How it works
------------
    directory/audits/day=2026-01-02/run=20260102T120011.000000Z/clusters/part-….parquet
                                                                findings/
                                                                unknown/
                                                                carried/
                                                                _summary.json
                                                                _SUCCESS

A results run has the name of the snapshot run it evaluates (runs.py). Invariants:

1. A directory with `_SUCCESS` is complete and never changes again. A directory without it does not
   exist for readers. So no reader ever sees half a run.
2. The same snapshots, policy and earlier run produce the same summary. If a complete run is
   evaluated again and the new summary equals the old one, the old files stay. If it differs, the
   writer raises ResultsDiffer, whose text explains how to replace the run on purpose.
3. The evaluation runs once and writes `clusters`. These files have the findings beside the columns
   of CLUSTERS. The other tables are derived from them; readers of CLUSTERS skip the findings.
4. The driver receives a FleetSummary, and in pieces what a caller iterates over.

`write_results` writes in this order:

    tables ─► count rows ─► _summary.json ─► fsync ─► _SUCCESS ─► fsync ─► rename

* The tables go into a draft, `audits/_writing-<random>/`, whose name is no run. A process that dies
  leaves such a draft; no reader looks at it.
* Row counts: the executors report how many rows they wrote, and the driver reads as many back. An
  executor that does not share the directory writes to its own disk, and Spark reports success.
* fsync before `_SUCCESS`: after a power loss the mark could otherwise exist without the tables.
* Rename: two writers of one run have two drafts. The second rename fails with FileExistsError.

Where a rename is not atomic (s3a: a copy, file by file; storage.py), the run is written in place.
The next writer deletes what a dead writer left there: without `_SUCCESS` it was never complete. Two
writers at the same time are not detected on such storage.

Why not simpler: Spark's own `_SUCCESS` marks one table. A run has four, and they must appear
together.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, TypeAlias

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType
from pyspark.util import inheritable_thread_target

from spark_audit import results_frames as steps
from spark_audit.adapters.json_rows import items_of
from spark_audit.adapters.result_place import AUDITS_BELOW, ResultPlace, summary_at
from spark_audit.adapters.result_tables import RunTables, contents_of, summarise
from spark_audit.adapters.runs import runs_newest_first
from spark_audit.adapters.storage import Storage, storage_of
from spark_audit.first_seen import carried_over, with_first_seen
from spark_audit.schema import FINDINGS
from spark_audit.summary import SPARK_DIGEST, FleetSummary
from topology.adapters.run_directory import RunName
from topology.adapters.snapshot_columns import records_of_table
from topology.catalogue.findings import Finding, Unknown
from topology.documents.records import finding_from_record, time_to_text, unknown_from_record
from topology.policy import Policy

# Spark's own `_SUCCESS` is switched off: ours marks the whole run, and nothing reads one per table.
_WRITE_OPTIONS: Final = {
    "compression": "zstd",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
_FINDINGS_OF_RUNS: Final = StructType([*FINDINGS.fields, StructField("run", StringType())])


Evaluations: TypeAlias = DataFrame | Callable[[str], int]


class NoResults(Exception):
    """A directory has no complete results run."""


@dataclass(frozen=True, slots=True)
class Results:
    """One complete results run."""

    place: str
    tables: RunTables
    summary: FleetSummary

    def worst_findings(self, limit: int) -> tuple[Finding, ...]:
        """Return at most `limit` findings above severity INFO, the worst first.

        Facts that were not read (U1) are in `first_unknown`.
        """
        rows = steps.worst_findings_first(self.tables.findings).limit(limit).toArrow()
        return tuple(finding_from_record(record) for record in records_of_table(rows))

    def accepted_findings(self, limit: int) -> tuple[Finding, ...]:
        """Return at most `limit` findings that the policy accepts, in order."""
        rows = steps.accepted_in_order(self.tables.findings).limit(limit).toArrow()
        return tuple(finding_from_record(record) for record in records_of_table(rows))

    def first_unknown(self, limit: int) -> tuple[Unknown, ...]:
        """Return at most `limit` facts that were not read, in order."""
        rows = steps.unknown_in_order(self.tables.unknown).limit(limit).toArrow()
        return tuple(unknown_from_record(record) for record in records_of_table(rows))

    def report_items(self) -> dict[str, Iterator[str]]:
        """Return the three lists of a report as items (json_items.py), in report order, in pieces.

        The executors write the texts; the driver holds one partition of them at a time.
        """
        shown = self.tables.clusters.select("cluster", "verdict", "servers", "read_at", "labels")
        return {
            "clusters": items_of(shown.orderBy("cluster")),
            "findings": items_of(steps.findings_in_order(self.tables.findings)),
            "unknown": items_of(steps.unknown_in_order(self.tables.unknown)),
        }


# -- writing --------------------------------------------------------------------------------------


def write_results(
    session: SparkSession,
    audits: Evaluations,
    *,
    directory: str,
    run: RunName,
    policy: Policy,
    contents_compared: int | None = None,
) -> Results:
    """Evaluate and write one run below `directory`, with history, and return its results.

    `audits` has the columns of EVALUATED, with every cluster once; it is evaluated once. Or it is a
    function that writes the table of evaluated clusters to an address and returns its row count.
    `contents_compared` is the number of clusters whose contents were compared; None if contents
    were not to be compared. Raises ResultsDiffer, and OSError if the directory is not writable.
    """
    storage, root = storage_of(directory, session)
    place = ResultPlace.below(storage, root, run=run, policy=policy)
    kept, previous = place.kept, place.previous
    in_place = kept is None and not storage.renames_atomically
    if in_place:
        storage.delete(place.path)  # what a dead writer left: it was never complete
    draft = place.path if in_place else place.new_draft
    tables = RunTables(session, storage.address(draft))
    try:
        known = None if previous is None else _tables_at(session, storage, place.root, previous)
        written = _write_tables(tables, audits, run=run, known=known)
        made = summarise(
            tables,
            run=run,
            previous=previous,
            policy=policy,
            contents_compared=contents_compared,
        )
        _require_all(written, made, directory=directory)
        if kept is None:
            place.publish(made, draft=draft)
        else:
            place.require_same(_digested_here(kept, session, storage.address(place.path)), made)
    finally:
        if not in_place:
            storage.delete(draft)
    return Results(place.path, RunTables(session, storage.address(place.path)), made)


def _write_tables(
    tables: RunTables, audits: Evaluations, *, run: RunName, known: RunTables | None
) -> dict[str, int]:
    """Write every table, and return how many rows of each the executors report as written."""
    rows: dict[str, int] = {}

    def write(table: DataFrame, name: str) -> None:
        seen = Observation()
        counted = table.observe(seen, sf.count(sf.lit(1)).alias("rows"))
        counted.write.options(**_WRITE_OPTIONS).parquet(f"{tables.address}/{name}")
        rows[name] = seen.get["rows"]

    if isinstance(audits, DataFrame):
        write(audits, "clusters")
    else:
        rows["clusters"] = audits(f"{tables.address}/clusters")
    found = steps.findings_of(tables.evaluated)

    def write_unknown() -> None:
        write(steps.unknown_of(tables.evaluated), "unknown")

    def write_findings() -> None:
        if known is None:
            write(found, "findings")
            write(tables.session.createDataFrame([], FINDINGS), "carried")
            return
        before = known.findings.unionByName(known.carried)
        write(with_first_seen(found, known=before), "findings")
        carried = carried_over(
            before, findings=tables.findings, clusters=tables.clusters, run_at=run.moment
        )
        write(carried, "carried")

    _side_by_side(tables.session, write_unknown, write_findings)
    return rows


def _side_by_side(session: SparkSession, *writers: Callable[[], None]) -> None:
    """Run independent writers in parallel: a single job is too small for all cores.

    Return when all have ended, and raise the exception of the first that failed.
    """
    with ThreadPoolExecutor(len(writers)) as pool:
        begun = [pool.submit(inheritable_thread_target(session)(write)) for write in writers]
    for each in begun:
        each.result()


def _require_all(written: Mapping[str, int], made: FleetSummary, *, directory: str) -> None:
    """Raise OSError if fewer rows were read back than were written.

    An executor on a machine that does not see the directory writes to a local one, and Spark
    reports success. Without this check the run would look complete, with findings missing.
    """
    rows = {content.table: content.rows for content in made.content}
    for table, count in written.items():
        if rows[table] != count:
            raise OSError(
                f"{directory}: {count:,} rows of {table} were written, and"
                f" {rows[table]:,} are there: the driver and every executor must see the same"
                " directory"
            )


def _digested_here(kept: FleetSummary, session: SparkSession, address: str) -> FleetSummary:
    """Return a kept summary with Spark's digests, whichever engine wrote it."""
    if kept.digest_by == SPARK_DIGEST:
        return kept
    content = contents_of(RunTables(session, address))
    return replace(kept, content=content, digest_by=SPARK_DIGEST)


# -- reading --------------------------------------------------------------------------------------


def latest_results(session: SparkSession, directory: str) -> Results:
    """Return the newest complete results below `directory`. Raises NoResults."""
    storage, root = storage_of(directory, session)
    root = f"{root}/{AUDITS_BELOW}"
    newest = next(runs_newest_first(storage, root), None)
    if newest is None:
        raise NoResults(f"{directory}: no complete results ({AUDITS_BELOW}/day=…/run=…) here")
    place = f"{root}/{newest.path}"
    return Results(place, _tables_at(session, storage, root, newest), summary_at(storage, place))


def findings_between(
    session: SparkSession, directory: str, *, start: datetime, end: datetime
) -> DataFrame:
    """Return the findings of every complete run from `start` up to, but excluding, `end`.

    FINDINGS and the name of the run. A finding that lasts has one row per run. Raises NoResults
    if there is no such run.
    """
    storage, root = storage_of(directory, session)
    root = f"{root}/{AUDITS_BELOW}"
    runs = [run for run in runs_newest_first(storage, root) if start <= run.moment < end]
    if not runs:
        span = f"{time_to_text(start)} … {time_to_text(end)}"
        raise NoResults(f"{directory}: no complete results from {span}")
    address = storage.address(root)
    # Spark reads many directories at once, and takes the name of the run from the path.
    reader = session.read.schema(_FINDINGS_OF_RUNS).option("basePath", address)
    found = reader.parquet(*(f"{address}/{run.path}/findings" for run in runs))
    return found.select(*FINDINGS.names, sf.concat(sf.lit("run="), "run").alias("run"))


def _tables_at(session: SparkSession, storage: Storage, root: str, run: RunName) -> RunTables:
    return RunTables(session, storage.address(f"{root}/{run.path}"))
