"""Documents beside the rows of a run: damaged ones are refused with their place."""

import pytest

from topology.documents.cluster_document import clusters_from_text, clusters_to_text
from topology.documents.record_codec import TEXT, MalformedRecord


def read(text: str) -> dict[str, str]:
    return clusters_from_text(text, 2, TEXT.read, what="texts")


def test_what_is_written_is_read_in_order_of_name() -> None:
    written = clusters_to_text(2, {"b": "two", "a": "ä"}, TEXT.write)
    assert list(read(written).items()) == [("a", "ä"), ("b", "two")]
    assert "ä" in written


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "layout: expected texts of layout 2"),
        ('{"layout": 1, "clusters": {}}', "layout: expected texts of layout 2"),
        ('{"layout": 2, "clusters": []}', "clusters: expected a record"),
        ('{"layout": 2, "clusters": {"a": 1}}', "a: expected a text"),
    ],
)
def test_another_document_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(MalformedRecord, match=expected):
        read(text)
