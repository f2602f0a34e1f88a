"""`gtid-audit trace`: an error of replication, followed to its cause."""

from typing import Annotated, Final

import typer

from gtid_audit.commands.options import AsJson, AskPassword, Format, ServerSeconds, seconds_of
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

_WINDOW_SECONDS_MAX: Final = 3600
_SEARCH_MIB_MAX: Final = 1_048_576
_SEARCH_SECONDS_MAX: Final = 30.0
_MIB: Final = 1 << 20

Operands = Annotated[
    list[str],
    typer.Argument(
        metavar="GTID|DSN DSN...",
        help="A GTID and servers, or servers: user@host:port or mysql://user@host:port/?option=value",
    ),
]
Window = Annotated[
    str,
    typer.Option("--window", metavar="SECONDS", help="Error log lines before and after the error."),
]
Search = Annotated[
    str,
    typer.Option(
        "--search",
        metavar="MIB",
        help="How much of each server's binary logs to search for DDL; 0: nothing.",
    ),
]


def trace(
    operands: Operands,
    *,
    window: Window = "60",
    search: Search = "1024",
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Follow an error of replication to its cause: thread, transaction, logs, and DDL.

    Exit status: 0 no thread is stopped with an error; 2 one is; 3 something could not be read, and
    no error was found.
    """
    from gtid_audit.operands.cluster_of_dsns import policy_of, servers_to_read
    from gtid_audit.operands.trace_operands import read_trace_operands, shown_dsns
    from gtid_audit.tasks.traced_errors import TraceRequest
    from gtid_audit.tasks.traced_errors import trace as trace_servers
    from gtid_audit.views.trace_document import trace_document
    from gtid_audit.views.trace_words import verdict_of_trace
    from gtid_audit.views.verdict_answers import DocumentAnswer, write_answer
    from topology.adapters.change_searches import SearchLimits

    chosen = form_of(form, as_json=as_json)
    window_seconds = _number("--window", window, most=_WINDOW_SECONDS_MAX)
    search_bytes = _number("--search", search, most=_SEARCH_MIB_MAX) * _MIB
    typed = read_trace_operands(operands)
    to_read = servers_to_read(
        typed.dsns, ask=ask_password, seconds_max=seconds_of(timeout), policy=policy_of((), ())
    )
    request = TraceRequest(
        to_read.targets,
        typed.wanted,
        to_read.limits.server_seconds_max,
        window_seconds,
        SearchLimits(search_bytes, _SEARCH_SECONDS_MAX),
    )
    with progress() as line:
        found = trace_servers(request, say=line.say)
    dsns = shown_dsns(typed.dsns, to_read.targets, [each.name for each in found.servers])
    from gtid_audit.views.trace_text import show_trace, trace_headline

    answer = DocumentAnswer(
        verdict_of_trace(found),
        trace_headline(found),
        lambda: trace_document(found, dsns),
        lambda: show_trace(found, dsns),
        {
            "errors": len(found.failures),
            "other_errors": len(found.others),
            "unknown": sum(len(each.unread) for each in found.servers),
            "servers": len(found.servers),
        },
    )
    return write_answer(answer, chosen)


def _number(option: str, text: str, *, most: int) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= most):
        raise UsageProblem(f"{option}: expected a whole number from 0 to {most:,}")
    return int(text)
