"""A document written in pieces has the bytes of one written whole."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.hypothesis_profiles import laws
from topology.documents.json_items import document_pieces, item_text, items_text

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
PLAIN = st.recursive(
    SCALARS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
RECORDS = st.dictionaries(st.text(), PLAIN, max_size=4)


@pytest.mark.long
@given(RECORDS)
def test_an_item_is_what_the_standard_library_writes(record: dict[str, Any]) -> None:
    whole = json.dumps([[record]], ensure_ascii=False, indent=2)
    assert f"[\n  [\n{item_text(record)}\n  ]\n]" == whole


@pytest.mark.long
@laws()
@given(
    st.dictionaries(st.text(), SCALARS, min_size=1),
    st.lists(RECORDS, max_size=5),
    st.integers(1, 3),
)
def test_a_document_is_what_the_standard_library_writes(
    head: dict[str, Any], records: list[dict[str, Any]], size: int
) -> None:
    head = {f"h{name}": value for name, value in head.items()}
    pieces = [items_text(records[at : at + size]) for at in range(0, len(records), size)]
    text = "".join(document_pieces(head, {"found": pieces, "nothing": [], "unasked": None}))
    whole = {"schema_version": 1, **head, "found": records, "nothing": [], "unasked": None}
    assert text == json.dumps(whole, ensure_ascii=False, indent=2) + "\n"
