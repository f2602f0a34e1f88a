"""Writes a run: the snapshots of a fleet, and beside them contents, consumers and labels."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import require_parquet
from topology.documents.label_records import Labels
from topology.readings.contents import ContentReading
from topology.readings.snapshot import ClusterSnapshot

NO_LABELS: Final[Mapping[str, Labels]] = MappingProxyType({})


def store(
    directory: Path,
    snapshots: Iterable[ClusterSnapshot],
    contents: Mapping[str, ContentReading] | None,
    *,
    partial: Sequence[str] | None = None,
    labels: Mapping[str, Labels] = NO_LABELS,
) -> Path:
    """Write snapshots, and what is known beside them, as one run; return its directory.

    `partial` is the list of clusters if they were selected from a fleet. Raises UsageProblem.
    """
    require_parquet()
    from topology.adapters.parquet import write_snapshots
    from topology.adapters.stored_contents import kept_beside
    from topology.adapters.stored_labels import labels_beside

    beside = {**kept_beside(contents), **labels_beside(labels)}
    try:
        return write_snapshots(directory, snapshots, beside=beside, partial=partial)
    except OSError as error:
        raise UsageProblem(f"{directory}: {error.strerror or error}") from error
