"""`gtid-audit binlog locate`: which file, and which bytes, hold the GTIDs of a set."""

from typing import TYPE_CHECKING

from gtid_audit import exits
from gtid_audit.commands.log_options import LogSources, WantedSet
from gtid_audit.commands.options import AsJson, AskPassword, ServerSeconds, seconds_of
from gtid_audit.operands.logs_from_operands import (
    SECONDS_DEFAULT,
    LogServer,
    one_source,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.operands.sets_from_operands import read_operands
from gtid_audit.optional_packages import require_columns
from gtid_audit.output import progress, write_json

if TYPE_CHECKING:
    from binlog.locating.places import Located


def locate(
    wanted: WantedSet,
    sources: LogSources,
    *,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Find the files and positions of the GTIDs in SET. Reads as few files as possible.

    Exit status: 0 all are in the logs; 1 some are not; 3 something could not be read.
    """
    [gtids] = read_operands((wanted,))
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
        from gtid_audit.views.locate_text import document_of, show_located, verdict_of

        found = located()
        name = ", ".join(each.name for each in operands)
        if as_json:
            write_json(document_of(found, source=name))
        else:
            show_located(found, source=name)
        return exits.status_of(verdict_of(found))

    return said_if_unread(work)
