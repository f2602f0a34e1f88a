"""Writes and reads the results of a run for the local engine: the same files, without Java.

1. The guarantees of adapters/results.py hold here too: a run is complete or absent, and is never
   overwritten with other results. Each engine continues the history that the other has written.
2. Each engine has its own digest of rows. For a run that the other engine wrote, this engine
   computes its own digests of the tables, and compares these.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from spark_audit.adapters.result_place import ResultPlace
from spark_audit.evaluated_rows import rows_of_audits
from spark_audit.result_columns import CLUSTER_SCHEMA, FINDING_SCHEMA, UNKNOWN_SCHEMA
from spark_audit.result_records import (
    LocalResults,
    contents_of_tables,
    results_of,
    tables_of,
)
from spark_audit.summary import LOCAL_DIGEST, FleetSummary
from topology.adapters.run_directory import LocalStorage, RunName
from topology.adapters.snapshot_columns import records_of_table, table_of_records
from topology.catalogue.findings import ClusterAudit, Finding
from topology.documents.records import Record, finding_from_record
from topology.policy import Policy

_PART: Final = "part-00000.parquet"
_SCHEMAS: Final[Mapping[str, pa.Schema]] = {
    "clusters": CLUSTER_SCHEMA,
    "findings": FINDING_SCHEMA,
    "unknown": UNKNOWN_SCHEMA,
    "carried": FINDING_SCHEMA,
}


def write_results_locally(
    audits: Sequence[ClusterAudit],
    *,
    directory: Path,
    run: RunName,
    policy: Policy,
    contents_compared: int | None,
) -> LocalResults:
    """Write one run below `directory`, with history, and return its results.

    Raises ResultsDiffer, and OSError where the directory cannot be written.
    """
    place = ResultPlace.below(LocalStorage(), str(directory.resolve()), run=run, policy=policy)
    previous = place.previous
    made = results_of(
        audits,
        run=run.text,
        previous=None if previous is None else previous.text,
        known=() if previous is None else _known(Path(place.root) / previous.path),
        run_at=run.moment,
        policy=policy,
        contents_compared=contents_compared,
    )
    if place.kept is None:
        _write(place, made, audits)
    else:
        place.require_same(_digested_here(place.kept, Path(place.path)), made.summary)
    return replace(made, place=place.path)


def _write(place: ResultPlace, made: LocalResults, audits: Sequence[ClusterAudit]) -> None:
    draft = Path(place.new_draft)
    try:
        tables = tables_of(made.audits, made.carried)
        # As evaluated, without history: Spark derives the other tables from these rows.
        evaluated = rows_of_audits(sorted(audits, key=lambda one: one.cluster))
        _write_table(draft / "clusters", evaluated)
        for name in ("findings", "unknown", "carried"):
            _write_table(draft / name, table_of_records(tables[name], _SCHEMAS[name]))
        place.publish(made.summary, draft=str(draft))
    finally:
        place.storage.delete(str(draft))


def _write_table(directory: Path, rows: pa.Table) -> None:
    directory.mkdir(parents=True)
    pq.write_table(rows, directory / _PART, compression="zstd")


def _known(place: Path) -> tuple[Finding, ...]:
    rows = [*_read(place, "findings"), *_read(place, "carried")]
    return tuple(finding_from_record(row) for row in rows)


def _digested_here(kept: FleetSummary, place: Path) -> FleetSummary:
    if kept.digest_by == LOCAL_DIGEST:
        return kept
    content = contents_of_tables({name: _read(place, name) for name in _SCHEMAS})
    return replace(kept, content=content, digest_by=LOCAL_DIGEST)


def _read(place: Path, name: str) -> list[Record]:
    schema = _SCHEMAS[name]
    files = sorted(each for each in (place / name).glob("*.parquet") if each.name[0] not in "._")
    try:
        found = [pq.read_table(file, columns=schema.names, partitioning=None) for file in files]
        tables = [table.select(schema.names).cast(schema, safe=False) for table in found]
    except (pa.ArrowException, KeyError) as error:  # KeyError: an earlier version has fewer columns
        raise OSError(f"{place / name}: {error}") from error
    return [record for table in tables for record in records_of_table(table)]
