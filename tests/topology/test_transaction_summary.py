"""How values of rows are shown in a line."""

import pytest

from binlog.rows.json_values import DiffKind, JsonDiff, JsonDiffs, JsonDocument, JsonObject
from binlog.rows.values import Value
from topology.adapters.transaction_summary import _value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (JsonDocument(None), "null"),
        (JsonDocument(JsonObject((("a", (1, 4.5e300)),))), '{"a": [1, 4.5e300]}'),
        (JsonDocument("x" * 50), '"' + "x" * 39 + "…"),
        (JsonDiffs((JsonDiff(DiffKind.REPLACE, "$.a", JsonDocument(7)),)), "replace $.a: 7"),
    ],
)
def test_documents_are_shown_as_mysql_prints_them(value: Value, text: str) -> None:
    assert _value(value) == text
