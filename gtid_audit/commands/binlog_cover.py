"""`gtid-audit binlog cover`: whether an archive of logs is complete from a set on."""

from typing import TYPE_CHECKING, Annotated

import typer

from gtid_audit.commands.options import AsJson, Format
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.logs_from_operands import (
    LogServer,
    paths_of,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.operands.sets_from_operands import read_operands
from gtid_audit.optional_packages import require_columns
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

if TYPE_CHECKING:
    from binlog.locating.cover import ArchiveCover

Start = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="SET",
        help="What is there already: of a backup or a consumer. Text, @file, or -.",
    ),
]
Archive = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Files, a directory, an index, or a glob.")
]


def cover(paths: Archive, *, start: Start, as_json: AsJson = False, form: Format = None) -> int:
    """Show whether an archive of binary logs is complete from a GTID set on, else the hole.

    Exit status: 0 it is complete; 1 it is, but the set has GTIDs that the archive does not know, or
    GTIDs between others are in no file and no header;
    2 there is a hole; 3 a file is damaged or cut, has transactions without a GTID, or GTIDs begin
    anew in a file (RESET BINARY LOGS AND GTIDS). Only the newest file of a server may end inside a
    transaction, which does not count, and inside an event only if it is marked as in use.
    """
    chosen = form_of(form, as_json=as_json)
    [gtids] = read_operands((start,))
    operands = read_log_operands(paths)
    if any(isinstance(each, LogServer) for each in operands):
        raise UsageProblem(
            "binlog cover reads files; for a live server, use handshake --offered SET DSN"
        )
    files = paths_of(operands)
    require_columns()

    def covered() -> "ArchiveCover":
        from binlog.adapters.archived_logs import archived_logs, repeated_gtids
        from binlog.locating.cover import cover_of

        with progress() as line:
            logs = archived_logs(files, say=line.say)
            return cover_of(gtids, logs, repeated_gtids(files, logs, say=line.say))

    def work() -> int:
        from gtid_audit.views.cover_text import cover_headline, document_of, show_cover, verdict_of
        from gtid_audit.views.verdict_answers import DocumentAnswer, write_answer

        found = covered()
        answer = DocumentAnswer(
            verdict_of(found),
            cover_headline(found),
            lambda: document_of(found),
            lambda: show_cover(found),
            {
                "hole": found.hole.gtid_count,
                "unread": len(found.unread),
                "files": len(found.files),
            },
        )
        return write_answer(answer, chosen)

    return said_if_unread(work)
