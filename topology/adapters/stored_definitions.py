"""The compared definitions of a run, stored beside its readings.

    directory/day=2026-01-02/run=20260102T030405.000006Z/_definitions.json

A run without the file compared no definitions: the audit was not asked for it, or an earlier
version of gtid-audit wrote the run. Readers of tables ignore the name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from topology.adapters.stored_beside import parsed_beside, read_beside
from topology.documents.definition_records import definitions_from_text, definitions_to_text
from topology.readings.definition_reading import DefinitionReading

DEFINITIONS: Final = "_definitions.json"


def definitions_beside(definitions: Mapping[str, DefinitionReading] | None) -> dict[str, str]:
    """Return the files that store the comparison, by name; none if no comparison was made."""
    return {} if definitions is None else {DEFINITIONS: definitions_to_text(definitions)}


def definitions_of_run(run: Path) -> dict[str, DefinitionReading] | None:
    """Return the comparison by cluster; None if none was made. Raises UnreadableSnapshots."""
    return read_beside(run, DEFINITIONS, definitions_from_text)


def definitions_in(text: str, *, place: str) -> dict[str, DefinitionReading]:
    """Parse the text of such a file. Raises UnreadableSnapshots."""
    return parsed_beside(text, definitions_from_text, place=place)
