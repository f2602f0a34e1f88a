"""Reads which servers, consumers and definitions a stored run has, to compare with a fleet file.

For a run on this machine it reads files. For any other place Spark reads the columns with names and
addresses. PySpark is imported only for such a place: the local engine works without it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from spark_audit.absent_readings import NotInRun, RunReadings, not_in_run
from spark_audit.expected_fleet import ExpectedFleet
from topology.adapters.stored_consumers import CONSUMERS, consumers_in, consumers_of_run
from topology.adapters.stored_definitions import DEFINITIONS, definitions_in, definitions_of_run
from topology.adapters.stored_runs import (
    ADDRESS_COLUMNS,
    addresses_in,
    addresses_of_files,
    files_of_run,
    record_of_run,
)
from topology.readings.consumers import ConsumerReading

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def not_in_folder(run: Path, fleet: ExpectedFleet) -> NotInRun:
    """Compare a fleet file with a run on this machine. Raises UnreadableSnapshots, NoSnapshots."""
    record = record_of_run(run)
    readings = RunReadings(
        run.resolve().name,
        addresses_of_files(files_of_run(run), clusters=_names(fleet)),
        _consumer_names(consumers_of_run(run)),
        definitions_of_run(run) or {},
        None if record is None else record.partial,
    )
    return not_in_run(readings, fleet)


def not_in_place(session: "SparkSession", run: str, fleet: ExpectedFleet) -> NotInRun:
    """Compare a fleet file with a run in any place. Raises UnreadableSnapshots, NoSnapshots.

    The run is one of the whole fleet: run_checks.py refuses any other.
    """
    if urlsplit(run).scheme in ("", "file"):
        return not_in_folder(Path(run.removeprefix("file://")), fleet)
    from spark_audit.adapters.beside_rows import text_beside
    from spark_audit.adapters.storage import storage_of
    from spark_audit.schema import SNAPSHOTS
    from topology.adapters.run_directory import RunName

    storage, root = storage_of(run, session)
    rows = session.read.schema(SNAPSHOTS).parquet(storage.address(root))
    found = rows.select(*ADDRESS_COLUMNS).distinct().toArrow()
    read, defined = (text_beside(storage, root, name) for name in (CONSUMERS, DEFINITIONS))
    readings = RunReadings(
        RunName.of_place(run).text,
        addresses_in([found], clusters=_names(fleet)),
        _consumer_names({} if read is None else consumers_in(read[0], place=read[1])),
        {} if defined is None else definitions_in(defined[0], place=defined[1]),
    )
    return not_in_run(readings, fleet)


def _names(fleet: ExpectedFleet) -> list[str]:
    return [cluster.name for cluster in fleet.clusters]


def _consumer_names(
    consumers: Mapping[str, tuple[ConsumerReading, ...]],
) -> dict[str, frozenset[str]]:
    return {
        cluster: frozenset(each.name for each in readings)
        for cluster, readings in consumers.items()
    }
