"""`gtid-audit binlog compare`: do two servers hold the same transactions under the same GTIDs."""

from typing import Annotated

import typer

from gtid_audit.commands.options import AsJson, AskPassword, Format, ServerSeconds, seconds_of
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.logs_from_operands import (
    SECONDS_DEFAULT,
    LogFiles,
    read_log_operands,
    said_if_unread,
)
from gtid_audit.operands.sets_from_operands import read_operands
from gtid_audit.optional_packages import require_columns
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

Left = Annotated[
    str, typer.Argument(metavar="A", help="Its logs: a directory, file, glob, or DSN.")
]
Right = Annotated[
    str, typer.Argument(metavar="B", help="The other server's logs, in the same form.")
]


def compare(
    left: Left,
    right: Right,
    *,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--everywhere", help="Compare every GTID that both have, not only around restarts."
        ),
    ] = False,
    only: Annotated[
        str | None, typer.Option("--only", metavar="SET", help="Compare only these GTIDs.")
    ] = None,
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Compare the transactions that two servers have under the same GTIDs.

    By default it compares those around the restarts of the two servers.


    A server that lost its last transactions in a crash reuses their GTIDs, beginning with its first
    transaction after the restart. Exit status: 0 the same; 1 one of them has less or nothing, or
    was applied to other rows; 2 different; 3 not compared: unread, not comparable, or no GTID in
    common.
    """
    chosen = form_of(form, as_json=as_json)
    if everywhere and only is not None:
        raise UsageProblem("use --everywhere or --only, not both")
    gtids = None if only is None else read_operands((only,))[0]
    operands = read_log_operands((left, right), ask=ask_password)
    if everywhere or any(isinstance(operand, LogFiles) for operand in operands):
        require_columns()
    seconds = seconds_of(timeout) or SECONDS_DEFAULT

    def work() -> int:
        from gtid_audit.tasks.comparing import compare_logs
        from gtid_audit.views.compare_text import compare_headline, document_of, show_comparison
        from gtid_audit.views.verdict_answers import DocumentAnswer, write_answer

        with progress() as line:
            line.say("comparing")
            done = compare_logs(*operands, everywhere=everywhere, only=gtids, seconds_max=seconds)
        left_name, right_name = (each.name for each in operands)
        answer = DocumentAnswer(
            done.verdict,
            compare_headline(done, left=left_name, right=right_name),
            lambda: document_of(done),
            lambda: show_comparison(done, left=left_name, right=right_name),
            {
                "compared": done.compared.gtids.gtid_count,
                "differences": len(done.reading.differences),
                "unknown": len(done.unknown),
            },
        )
        return write_answer(answer, chosen)

    return said_if_unread(work)
