"""`gtid-audit locks`: who waits for a lock, and who holds it."""

from typing import Annotated

import typer

from gtid.counted_nouns import counted
from gtid_audit.commands.options import AsJson, AskPassword, Format, ServerSeconds, seconds_of
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

Dsns = Annotated[
    list[str],
    typer.Argument(
        metavar="DSN", help="Servers: user@host:port or mysql://user@host:port/?option=value"
    ),
]


def locks(
    dsns: Dsns,
    *,
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
) -> int:
    """Show who waits for a lock, who holds it, and what ends the wait.

    Exit status: 0 no session waits; 1 one waits; 3 something could not be read, or the server does
    not show who holds a lock.
    """
    from concurrent.futures import ThreadPoolExecutor

    from gtid_audit.operands.cluster_of_dsns import policy_of, servers_to_read
    from gtid_audit.views.server_locks import locks_document, locks_of, verdict_of_locks
    from gtid_audit.views.verdict_answers import DocumentAnswer, write_answer
    from topology.adapters.lock_reads import read_locks

    chosen = form_of(form, as_json=as_json)
    to_read = servers_to_read(
        dsns, ask=ask_password, seconds_max=seconds_of(timeout), policy=policy_of((), ())
    )
    seconds = to_read.limits.server_seconds_max
    with progress() as line, ThreadPoolExecutor(len(to_read.targets)) as pool:
        line.say(f"reading locks of {counted(len(to_read.targets), 'server')}")
        readings = list(
            pool.map(lambda each: read_locks(each, seconds_max=seconds), to_read.targets)
        )
    found = [
        locks_of(target.name, reading, unread)
        for target, (reading, unread) in zip(to_read.targets, readings, strict=True)
    ]
    from gtid_audit.views.locks_text import locks_headline, show_locks

    answer = DocumentAnswer(
        verdict_of_locks(found),
        locks_headline(found),
        lambda: locks_document(found),
        lambda: show_locks(found),
        {
            "waits": sum(len(each.waits) for each in found),
            "unknown": sum(len(each.unread) for each in found),
            "servers": len(found),
        },
        warns=frozenset({"waits"}),
    )
    return write_answer(answer, chosen)
