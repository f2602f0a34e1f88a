"""A JSON document beside the rows of a run: one value for each cluster, under a layout number."""

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

from topology.documents.record_codec import MalformedRecord, Plain, Record

T = TypeVar("T")


def clusters_to_text(layout: int, clusters: Mapping[str, T], write: Callable[[T], Plain]) -> str:
    """Write the value of each cluster, in order of name. The same values give the same bytes."""
    written: Record = {name: write(clusters[name]) for name in sorted(clusters)}
    document: Record = {"layout": layout, "clusters": written}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def clusters_from_text(
    text: str, layout: int, read: Callable[[Plain], T], *, what: str
) -> dict[str, T]:
    """Read what `clusters_to_text` writes. Raises MalformedRecord with the place.

    `what` names the values in an error.
    """
    try:
        found: Plain = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise MalformedRecord("", f"not JSON: {error}") from error
    if not isinstance(found, dict) or found.get("layout") != layout:
        raise MalformedRecord("layout", f"expected {what} of layout {layout}")
    clusters = found.get("clusters")
    if not isinstance(clusters, dict):
        raise MalformedRecord("clusters", "expected a record")
    values = {}
    for name, plain in clusters.items():
        try:
            values[name] = read(plain)
        except MalformedRecord as error:
            raise error.within(name) from error
    return values
