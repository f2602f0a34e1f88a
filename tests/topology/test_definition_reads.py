"""What the reader of definitions concludes from answers that no MySQL server gives."""

from typing import Any, Self

import pytest

from topology.adapters import definition_reads
from topology.adapters.definition_reads import DefinitionReader
from topology.definitions.schema_objects import ObjectKey, ObjectKind
from topology.definitions.visibility import Visibility
from topology.readings.snapshot import UnreadReason
from topology.readings.target import ServerTarget
from topology.readings.version import ServerVersion

KEY = ObjectKey(ObjectKind.TABLE, "a", "b")


class Proxy:
    """Answers questions about sets, and SHOW CREATE without a row."""

    def __init__(self) -> None:
        self._rows: list[dict[str, str]] = []
        self.description: list[tuple[str]] = []

    def cursor(self, _kind: object = None) -> Self:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str) -> None:
        is_of_sets = "gtid_executed" in statement
        self._rows = [{"owned": "", "executed": ""}] if is_of_sets else []
        self.description = [("owned",), ("executed",)] if is_of_sets else [("Table",)]

    def fetchall(self) -> list[dict[str, str]]:
        return self._rows


def test_a_proxy_without_a_row_makes_no_table_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = DefinitionReader(ServerTarget("s", "h", 3306, "u"), seconds_max=1)
    facts: Any = definition_reads._ServerFacts
    visibility = Visibility.of_grants(["GRANT ALL ON *.* TO u"], are_literal=True)
    monkeypatch.setattr(reader, "_connection", Proxy())
    monkeypatch.setattr(reader, "_server", facts(ServerVersion(9, 7, 4), {}, visibility))
    read = reader.read_definitions([KEY])
    assert read is not None
    assert dict(read.definitions) == {}
    [unread] = read.unread
    assert (unread.fact, unread.reason) == (KEY.label, UnreadReason.UNPARSEABLE)
