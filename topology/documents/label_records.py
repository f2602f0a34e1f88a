"""Conversion of the labels of clusters to plain records and back: one document for a run."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from topology.documents.cluster_document import clusters_from_text, clusters_to_text
from topology.documents.record_codec import many, text_pair

LAYOUT: Final = 1

Labels: TypeAlias = tuple[tuple[str, str], ...]  # name and value, in order of name
LABELS: Final = many(text_pair("name", "value"))


def labels_to_text(labels: Mapping[str, Labels]) -> str:
    """Write the labels of each cluster. The same labels give the same bytes."""
    return clusters_to_text(LAYOUT, labels, LABELS.write)


def labels_from_text(text: str) -> dict[str, Labels]:
    """Read what `labels_to_text` writes. Raises MalformedRecord."""
    return clusters_from_text(text, LAYOUT, LABELS.read, what="labels")
