"""`gtid-audit pair`: reads two servers, evaluates, shows.

It must be fast: modules are imported where they are used.
"""

from pathlib import Path
from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    CompareDefinitions,
    ServerSeconds,
    seconds_of,
)
from gtid_audit.output import progress, write

DsnA = Annotated[
    str,
    typer.Argument(metavar="DSN_A", help="user@host:port or mysql://user@host:port/?option=value"),
]
DsnB = Annotated[str, typer.Argument(metavar="DSN_B", help="The other server, in the same form.")]
# As text: a command that takes only texts and flags starts faster (fast_start.py).
HistoryPath = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="Record the findings in this file, and show since when each exists.",
    ),
]


def pair(
    dsn_a: DsnA,
    dsn_b: DsnB,
    *,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
    content: CompareContent = None,
    definitions: CompareDefinitions = None,
    history: HistoryPath = None,
) -> int:
    """Audit two live servers now, in this process."""
    from gtid_audit.operands.cluster_of_dsns import pair_to_read, policy_of
    from gtid_audit.tasks.kept_history import history_at
    from gtid_audit.tasks.named_servers import answer_of_servers

    seconds, policy = seconds_of(timeout), policy_of(allow_uuid or (), accepted or ())
    to_read = pair_to_read(dsn_a, dsn_b, ask=ask_password, seconds_max=seconds, policy=policy)
    kept = history_at(Path(history) if history else None, of_servers=True)
    with progress() as line:
        answer = answer_of_servers(
            to_read, content=content, definitions=bool(definitions), say=line.say, history=kept
        )
    if as_json:
        for piece in answer.document():
            write(piece)
    else:
        answer.show()
    return exits.status_of(answer.verdict)
