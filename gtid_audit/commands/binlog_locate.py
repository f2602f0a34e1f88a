"""`gtid-audit binlog locate`: which file, and which bytes, hold the GTIDs of a set."""

from typing import TYPE_CHECKING

from gtid_audit.commands.log_options import LogSources, WantedSet
from gtid_audit.commands.options import AsJson, AskPassword, Format, ServerSeconds, seconds_of
from gtid_audit.operands.logs_from_operands import (
    SECONDS_DEFAULT,
    LogServer,
    one_source,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.operands.sets_from_operands import read_wanted
from gtid_audit.optional_packages import require_columns
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

if TYPE_CHECKING:
    from binlog.locating.places import Located


def locate(
    wanted: WantedSet,
    sources: LogSources,
    *,
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Find the files and positions of the GTIDs in SET. Reads as few files as possible.

    Exit status: 0 all are in the logs; 1 some are not; 3 something could not be read.
    """
    chosen = form_of(form, as_json=as_json)
    gtids = read_wanted(wanted)
    seconds = seconds_of(timeout) or SECONDS_DEFAULT
    operands = read_log_operands(sources, ask=ask_password)
    source = one_source(operands)

    def located() -> "Located":
        with progress() as line:
            if isinstance(source, LogServer):
                from binlog.adapters.heads_server import locate_on_server

                connect = source.connector(seconds_max=seconds)
                return locate_on_server(connect, gtids, timeout_seconds_max=seconds, say=line.say)
            require_columns()
            from binlog.adapters.heads_files import locate_in_files

            return locate_in_files(source, gtids, say=lambda name: line.say(f"reading {name}"))

    def work() -> int:
        from gtid_audit.views.locate_text import (
            document_of,
            locate_headline,
            show_located,
            verdict_of,
        )
        from gtid_audit.views.verdict_answers import DocumentAnswer, write_answer

        found = located()
        name = ", ".join(each.name for each in operands)
        answer = DocumentAnswer(
            verdict_of(found),
            locate_headline(found, name),
            lambda: document_of(found, source=name),
            lambda: show_located(found, source=name),
            {
                "wanted": found.wanted.gtid_count,
                "located": found.found.gtid_count,
                "files": found.file_count,
            },
        )
        return write_answer(answer, chosen)

    return said_if_unread(work)
