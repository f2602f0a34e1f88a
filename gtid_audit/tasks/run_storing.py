"""Stores what was read of a fleet as one run, with what was compared beside it.

Runs of selected clusters have a directory of their own. They must not appear as the state of the
fleet.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import require_parquet
from topology.adapters.inventory.fleet import Fleet
from topology.readings.contents import ContentReading
from topology.readings.definition_reading import DefinitionReading
from topology.readings.snapshot import ClusterSnapshot

# Below the directory of runs: readings of selected clusters, and their findings.
PARTIAL: Final = "partial"


def store(
    directory: Path,
    snapshots: Iterable[ClusterSnapshot],
    contents: Mapping[str, ContentReading] | None,
    *,
    definitions: Mapping[str, DefinitionReading] | None = None,
    partial: Sequence[str] | None = None,
) -> Path:
    """Write snapshots with what was compared as one run; return its directory.

    `partial` is the list of clusters if they were selected from a fleet. Raises UsageProblem.
    """
    require_parquet()
    from topology.adapters.parquet import write_snapshots
    from topology.adapters.stored_contents import kept_beside
    from topology.adapters.stored_definitions import definitions_beside

    beside = {**kept_beside(contents), **definitions_beside(definitions)}
    try:
        return write_snapshots(directory, snapshots, beside=beside, partial=partial)
    except OSError as error:
        raise UsageProblem(f"{directory}: {error.strerror or error}") from error


def place_of(fleet: Fleet, directory: Path) -> Path:
    """Return where a fleet's runs and results belong; selected clusters have their own place."""
    return directory / PARTIAL if fleet.is_partial else directory
