"""Reads the files that are stored beside the readings of a run.

    directory/day=2026-01-02/run=20260102T030405.000006Z/_contents.json

The caller knows the name and the form of its file. Readers of tables ignore names that begin with
an underscore.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from topology.adapters.stored_runs import UnreadableSnapshots
from topology.documents.record_codec import MalformedRecord

T = TypeVar("T")


def read_beside(run: Path, name: str, parse: Callable[[str], T]) -> T | None:
    """Return what a file of a run holds, None if the run has none. Raises UnreadableSnapshots."""
    file = run / name
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableSnapshots(f"{file}: {error}") from error
    return parsed_beside(text, parse, place=str(file))


def parsed_beside(text: str, parse: Callable[[str], T], *, place: str) -> T:
    """Parse the text of such a file. Raises UnreadableSnapshots."""
    try:
        return parse(text)
    except MalformedRecord as error:
        raise UnreadableSnapshots(f"{place}: {error}") from error
