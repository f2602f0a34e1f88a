"""Shows where GTIDs are, as a document and to the operator: files, bytes, and GTIDs without a file.

1. OK if every GTID has a file; WARNING if some have none; UNKNOWN if a file that may hold them
   could not be read.
2. This module only shows; binlog.adapters.heads_files and heads_server find the places.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from binlog.errors import BinlogError
from binlog.locating.places import Absence, FilePlaces, Located, TransactionPlace
from gtid import GtidSet
from gtid.counted_nouns import counted
from gtid_audit.views.report_parts import QUIET, line_of, rest_of
from gtid_audit.views.report_text import headline, show
from topology.catalogue.findings import Verdict

FILES_SHOWN_MAX: Final = 20
PLACES_SHOWN_MAX: Final = 10
ERRORS_SHOWN_MAX: Final = 10

_WHY: Final = {
    Absence.PURGED: "purged: the server executed them, and their files no longer exist",
    Absence.BEFORE_FIRST: "before the first file: its header lists them as logged earlier",
    Absence.NOT_EXECUTED: "not executed: the server does not have them (yet)",
    Absence.IN_NO_FILE: "in none of the files",
    Absence.UNREAD: "not found in the files that could be read; some could not be read",
}


def verdict_of(located: Located) -> Verdict:
    """Return the verdict on the result."""
    if located.errors or any(why is Absence.UNREAD for why, _ in located.absent):
        return Verdict.UNKNOWN
    return Verdict.WARNING if located.absent else Verdict.OK


def document_of(located: Located, *, source: str) -> dict[str, Any]:
    """Return the result as a JSON document."""
    return {
        "verdict": verdict_of(located).value,
        "source": source,
        "wanted": _set(located.wanted),
        "files": [_file(each) for each in located.files],
        "absent": [{"reason": why.value, **_set(gtids)} for why, gtids in located.absent],
        "file_count": located.file_count,
        "heads_read": located.heads_read,
        "errors": [error_document(error) for error in located.errors],
    }


def error_document(error: BinlogError) -> dict[str, Any]:
    """Return an error as JSON: kind, text, and file and byte if known."""
    return {
        "error": type(error).__name__,
        "file": getattr(error, "file", None),
        "position": getattr(error, "position", None),
        "text": str(error),
    }


def _set(gtids: GtidSet) -> dict[str, Any]:
    return {"gtid_set": str(gtids), "gtid_count": gtids.gtid_count}


def _file(each: FilePlaces) -> dict[str, Any]:
    return {
        "file": each.file,
        **_set(each.gtids),
        "transactions": [
            {
                "gtid": str(place.gtid),
                "start": place.start,
                "end": place.end,
                "is_complete": place.is_complete,
            }
            for place in each.places
        ],
        "transactions_left_out": each.left_out,
    }


def show_located(located: Located, *, source: str) -> None:
    """Show the result to the operator."""
    parts: list[RenderableType] = [headline(verdict_of(located), locate_headline(located, source))]
    for each in located.files[:FILES_SHOWN_MAX]:
        parts += _file_parts(each)
    parts += rest_of(len(located.files), FILES_SHOWN_MAX, "files")
    for why, gtids in located.absent:
        parts += [Text(), Text(_WHY[why], style="bold yellow"), _indented(Text(gtids.shortened()))]
    parts += error_parts(located.errors)
    show(*parts)


def locate_headline(located: Located, source: str) -> str:
    """Return what stands after the verdict."""
    found = located.found.gtid_count
    said = (
        f"{found:,} of {counted(located.wanted.gtid_count, 'GTID')} located",
        f"in {len(located.files):,} of {counted(located.file_count, 'file')}",
        f"{counted(located.heads_read, 'header')} read",
    )
    return " · ".join((source, *said))


def _file_parts(each: FilePlaces) -> Iterator[RenderableType]:
    yield Text()
    heading = line_of(each.file)
    heading.stylize("bold")
    heading.append(f"  {counted(each.gtids.gtid_count, 'GTID')}", style=QUIET)
    yield heading
    yield _indented(Text(each.gtids.shortened()))
    if each.places:
        yield _indented(_places(each.places[:PLACES_SHOWN_MAX]))
    hidden = each.left_out + max(0, len(each.places) - PLACES_SHOWN_MAX)
    if hidden:
        yield Text(f"    … and {counted(hidden, 'more transaction')}", style=QUIET)


def _places(places: Iterable[TransactionPlace]) -> RenderableType:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(overflow="fold")
    for _ in ("start", "end"):
        grid.add_column(justify="right", no_wrap=True)
    grid.add_row("GTID", "from byte", "to", "", style=QUIET)
    for place in places:
        note = "" if place.is_complete else "its end is not in this file"
        grid.add_row(str(place.gtid), str(place.start), str(place.end), Text(note, style="yellow"))
    return grid


def error_parts(errors: Iterable[BinlogError]) -> Iterator[RenderableType]:
    """Show what could not be read, with file and byte."""
    texts = [str(error) for error in errors]
    if not texts:
        return
    yield Text()
    yield Text("Not read:", style="bold magenta")
    for text in texts[:ERRORS_SHOWN_MAX]:
        yield _indented(line_of(text))
    yield from rest_of(len(texts), ERRORS_SHOWN_MAX, "errors")


def _indented(part: RenderableType) -> RenderableType:
    return Padding(part, (0, 0, 0, 2))
