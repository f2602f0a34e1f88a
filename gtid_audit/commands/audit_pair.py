"""`gtid-audit pair`: reads two servers, evaluates, shows.

It must be fast: modules are imported where they are used.
"""

from typing import Annotated

import typer

from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    CompareDefinitions,
    Format,
    KeepHistory,
    ServerSeconds,
    Watch,
    seconds_of,
)
from gtid_audit.commands.watching import Say, audited
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

DsnA = Annotated[
    str,
    typer.Argument(metavar="DSN_A", help="user@host:port or mysql://user@host:port/?option=value"),
]
DsnB = Annotated[str, typer.Argument(metavar="DSN_B", help="The other server, in the same form.")]


def pair(
    dsn_a: DsnA,
    dsn_b: DsnB,
    *,
    as_json: AsJson = False,
    form: Format = None,
    watch: Watch = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
    content: CompareContent = None,
    definitions: CompareDefinitions = None,
    history: KeepHistory = None,
) -> int:
    """Audit two live servers now, in this process."""
    from gtid_audit.operands.cluster_of_dsns import pair_to_read, policy_of
    from gtid_audit.operands.servers_in_commands import typed_servers
    from gtid_audit.tasks.kept_history import history_at
    from gtid_audit.tasks.named_servers import answer_of_servers
    from gtid_audit.views.audit_results import naming

    chosen = form_of(form, as_json=as_json)
    seconds, policy = seconds_of(timeout), policy_of(allow_uuid or (), accepted or ())
    to_read = pair_to_read(dsn_a, dsn_b, ask=ask_password, seconds_max=seconds, policy=policy)
    kept = history_at(history, of_servers=True)
    names = [each.name for each in to_read.targets]
    named = typed_servers((dsn_a, dsn_b), to_read.targets, names, ask=ask_password)

    def audit(say: Say) -> int:
        with progress() as line:
            answer = answer_of_servers(
                to_read, content=content, definitions=bool(definitions), say=line.say, history=kept
            )
        return say(naming(answer, named))

    return audited(audit, form=chosen, watch=watch)
