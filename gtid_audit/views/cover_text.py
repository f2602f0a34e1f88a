"""Shows whether an archive of logs is complete from a set on: to the operator, and as a document.

This module only shows; binlog.locating.cover finds the hole.
"""

from typing import Any, Final

from rich.console import RenderableType
from rich.text import Text

from binlog.locating.cover import ArchiveCover, ArchivedLog
from binlog.locating.histories import NewHistory
from gtid import GtidSet
from gtid.counted_nouns import counted
from gtid_audit.output import printable
from gtid_audit.views.locate_text import error_document
from gtid_audit.views.report_parts import line_of, rest_of
from gtid_audit.views.report_text import headline, labelled, show
from topology.catalogue.findings import Verdict
from topology.documents.document_version import versioned

UNREAD_SHOWN_MAX: Final = 10
_NOWHERE: Final = (
    "is in no file and no header. Either no transaction has these numbers, or a server executed"
    " them while it ran without its binary log: compare with gtid_executed"
)
_ADVICE: Final = "Give the files of one history alone, with a set of the same history."


def verdict_of(cover: ArchiveCover) -> Verdict:
    """Return the verdict. What could not be read may be the hole, so it outweighs it."""
    if cover.unread:
        return Verdict.UNKNOWN
    if cover.hole:
        return Verdict.CRITICAL
    if cover.new_histories:
        return Verdict.UNKNOWN
    return Verdict.WARNING if cover.beyond or cover.between else Verdict.OK


def document_of(cover: ArchiveCover) -> dict[str, Any]:
    """Return the result as a JSON document."""
    return versioned(
        {
            "verdict": verdict_of(cover).value,
            "from": str(cover.start),
            "end": str(cover.end),
            "hole": str(cover.hole),
            "hole_count": cover.hole.gtid_count,
            "beyond": str(cover.beyond),
            "between": str(cover.between),
            "files": [each.file for each in cover.files],
            "needed": [each.file for each in cover.needed],
            "unread": [_unread(each) for each in cover.unread],
            "unchecked": [each.file for each in cover.unchecked],
            "new_histories": [
                {
                    "file": each.file,
                    "before": each.before,
                    "lost": str(each.lost),
                    "reused": str(each.reused),
                    "is_proved": each.is_proved,
                }
                for each in cover.new_histories
            ],
            "copies": [{"file": each.file, "of": each.of} for each in cover.copies],
        }
    )


def _unread(log: ArchivedLog) -> dict[str, Any]:
    return {
        "file": log.file,
        "has_previous_gtids": log.previous_gtids is not None,
        "anonymous_count": log.anonymous_count,
        "ends_in_transaction": log.ends_in_transaction,
        "error": None if log.error is None else error_document(log.error),
    }


def show_cover(cover: ArchiveCover) -> None:
    """Show the result to the operator."""
    parts: list[RenderableType] = [
        headline(verdict_of(cover), cover_headline(cover)),
        Text(),
        labelled((name, line_of(text)) for name, text in _rows(cover)),
    ]
    for log in cover.unread[:UNREAD_SHOWN_MAX]:
        parts.append(line_of(f"{log.file}: {_why(log)}"))
    parts += rest_of(len(cover.unread), UNREAD_SHOWN_MAX, "files")
    for new in cover.new_histories[:UNREAD_SHOWN_MAX]:
        parts.append(line_of(f"{new.file}: {_begins(new)}"))
    parts += rest_of(len(cover.new_histories), UNREAD_SHOWN_MAX, "files")
    if cover.new_histories:
        parts.append(line_of(_ADVICE))
    show(*parts)


def cover_headline(cover: ArchiveCover) -> str:
    """Return what stands after the verdict."""
    files = counted(len(cover.files), "file")
    if cover.unread:
        return f"{files}, of which {len(cover.unread):,} could not be evaluated"
    if cover.hole:
        where = "no file of their history" if cover.new_histories else "none of them"
        return f"{files}, and {counted(cover.hole.gtid_count, 'GTID')} in {where}"
    if cover.new_histories:
        return (
            f"{files} of more than one history: GTIDs begin anew in {cover.new_histories[0].file}"
        )
    if cover.between:
        return f"{files}, complete from this set on, except for numbers that are nowhere"
    return f"{files}, complete from this set on"


def _rows(cover: ArchiveCover) -> list[tuple[str, str]]:
    rows = [("from", _short(cover.start)), ("end", _short(cover.end))]
    if cover.hole:
        rows.append(("hole", _short(cover.hole)))
    needed = cover.needed
    if needed:
        last = f" to {needed[-1].file}" if len(needed) > 1 else ""
        rows.append(("read", printable(f"{needed[0].file}{last}")))
    if cover.copies:
        rows.append(("copy", _copied(cover)))
    if cover.beyond:
        rows.append(("but", f"the set has {_short(cover.beyond)}, which {_unlisted(cover)}"))
    if cover.between:
        rows.append(("but", f"{_short(cover.between)} {_NOWHERE}"))
    if cover.unchecked:
        files = counted(len(cover.unchecked), "file")
        rows.append(("but", f"{files} without checksums: damage inside a transaction is not seen"))
    return rows


def _copied(cover: ArchiveCover) -> str:
    first, *rest = cover.copies
    more = f", and {counted(len(rest), 'more file')}" if rest else ""
    of = "another file of this name" if first.file == first.of else first.of
    return printable(f"{first.file} has the transactions of {of}: it is left out{more}")


def _unlisted(cover: ArchiveCover) -> str:
    if all(each.origin.is_relay_log for each in cover.files):
        return "these relay logs do not list (normal: they list only what was received)"
    return "the archive does not know"


def _begins(new: NewHistory) -> str:
    said = [f"GTIDs begin anew after {new.before}"]
    if new.lost:
        said.append(f"its header does not list {_short(new.lost)}")
    if new.reused:
        used = "used" if new.is_proved else "may be used"
        said.append(f"{used} for two transactions: {_short(new.reused)}")
    return "; ".join(said)


def _why(log: ArchivedLog) -> str:
    if log.error is not None:
        return str(log.error)
    if log.previous_gtids is None:
        return "its header lists no previous GTIDs"
    if log.anonymous_count:
        return f"{counted(log.anonymous_count, 'transaction')} without a GTID: no set covers them"
    return "it ends inside a transaction, and its server made later files: the copy is cut"


def _short(gtids: GtidSet) -> str:
    return gtids.shortened() or "(empty)"
