"""The compared definitions of a run, stored beside its readings.

    directory/day=2026-01-02/run=20260102T030405.000006Z/_definitions.json

A run without the file compared no definitions: the audit was not asked for it, or an earlier
version of gtid-audit wrote the run. Readers of tables ignore the name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from topology.adapters.stored_runs import UnreadableSnapshots
from topology.documents.definition_records import definitions_from_text, definitions_to_text
from topology.documents.record_codec import MalformedRecord
from topology.readings.definition_reading import DefinitionReading

DEFINITIONS: Final = "_definitions.json"


def definitions_beside(definitions: Mapping[str, DefinitionReading] | None) -> dict[str, str]:
    """Return the files that store the comparison, by name; none if no comparison was made."""
    return {} if definitions is None else {DEFINITIONS: definitions_to_text(definitions)}


def definitions_of_run(run: Path) -> dict[str, DefinitionReading] | None:
    """Return the comparison by cluster; None if none was made. Raises UnreadableSnapshots."""
    file = run / DEFINITIONS
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSnapshots(f"{file}: {error}") from error
    return definitions_in(text, place=str(file))


def definitions_in(text: str, *, place: str) -> dict[str, DefinitionReading]:
    """Parse the text of such a file. Raises UnreadableSnapshots."""
    try:
        return definitions_from_text(text)
    except MalformedRecord as error:
        raise UnreadableSnapshots(f"{place}: {error}") from error
