"""Results of comparing transaction contents, stored with the readings of a run.

    directory/day=2026-01-02/run=20260102T030405.000006Z/_contents.json

1. The reader of servers compares their contents and stores the results with the readings. So the
   run gives the same evaluation again when the servers no longer exist.
2. A run without the file made no comparison. Readers of tables ignore the name.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from topology.adapters.stored_beside import parsed_beside, read_beside
from topology.documents.content_records import contents_from_text, contents_to_text
from topology.readings.contents import ContentReading

CONTENTS: Final = "_contents.json"


def kept_beside(contents: Mapping[str, ContentReading] | None) -> dict[str, str]:
    """Return the files that store the comparison, by name; none if no comparison was made."""
    return {} if contents is None else {CONTENTS: contents_to_text(contents)}


def contents_of_run(run: Path) -> dict[str, ContentReading] | None:
    """Return the comparison by cluster; None if none was made. Raises UnreadableSnapshots."""
    return read_beside(run, CONTENTS, contents_from_text)


def contents_in(text: str, *, place: str) -> dict[str, ContentReading]:
    """Parse the text of such a file. Raises UnreadableSnapshots."""
    return parsed_beside(text, contents_from_text, place=place)
