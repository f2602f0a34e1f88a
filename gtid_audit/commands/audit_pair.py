"""`gtid-audit pair`: reads two servers, evaluates, shows.

It must be fast: modules are imported where they are used.
"""

from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    Accepted,
    AsJson,
    AskPassword,
    CompareContent,
    ServerSeconds,
    seconds_of,
)
from gtid_audit.output import printable, progress, write, write_line

DsnA = Annotated[str, typer.Argument(metavar="DSN_A", help="mysql://user@host:port/?option=value")]
DsnB = Annotated[str, typer.Argument(metavar="DSN_B", help="The other server, in the same form.")]


def pair(
    dsn_a: DsnA,
    dsn_b: DsnB,
    *,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-uuid",
            metavar="UUID",
            help="Allow extra transactions of this UUID. Repeatable.",
        ),
    ] = None,
    accepted: Accepted = None,
    content: CompareContent = None,
) -> int:
    """Audit two live servers now, in this process."""
    from gtid_audit.operands.pair import CLUSTER, pair_to_read, policy_of
    from gtid_audit.tasks.audited_cluster import read_and_audit
    from gtid_audit.views.report import Engine, report_of

    seconds, policy = seconds_of(timeout), policy_of(allow_uuid or (), accepted or ())
    to_read = pair_to_read(dsn_a, dsn_b, ask=ask_password, seconds_max=seconds, policy=policy)
    with progress() as line:
        done = read_and_audit(to_read, content=content, say=line.say)
    report = report_of(Engine.LOCAL, [done.audit])
    compared = {} if done.contents is None else {CLUSTER: done.contents}
    contents = None if content is False else compared
    if as_json:
        for piece in report.document_pieces(contents):
            write(piece)
    else:
        from gtid_audit.views.content_text import content_lines
        from gtid_audit.views.report_text import show_report

        show_report(report, snapshots=(done.snapshot,))
        for text in content_lines(contents, is_stored=False):
            write_line(printable(text))
    return exits.status_of(report.verdict)
