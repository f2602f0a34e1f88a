"""The labels of a run's clusters, stored beside its readings.

    directory/day=2026-01-02/run=20260102T030405.000006Z/_labels.json

A run without the file has no labels: its fleet file has none, or an earlier version of gtid-audit
wrote it. Readers of tables ignore the name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from topology.adapters.stored_runs import UnreadableSnapshots
from topology.documents.label_records import Labels, labels_from_text, labels_to_text
from topology.documents.record_codec import MalformedRecord

LABELS_FILE: Final = "_labels.json"


def labels_beside(labels: Mapping[str, Labels]) -> dict[str, str]:
    """Return the files that store the labels of clusters, by name; none if there are none."""
    return {LABELS_FILE: labels_to_text(labels)} if labels else {}


def labels_of_run(run: Path) -> dict[str, Labels]:
    """Return the labels of each cluster that has some. Raises UnreadableSnapshots."""
    file = run / LABELS_FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSnapshots(f"{file}: {error}") from error
    return labels_in(text, place=str(file))


def labels_in(text: str, *, place: str) -> dict[str, Labels]:
    """Parse the text of such a file. Raises UnreadableSnapshots."""
    try:
        return labels_from_text(text)
    except MalformedRecord as error:
        raise UnreadableSnapshots(f"{place}: {error}") from error
