"""`gtid-audit audit --offline DIR`: evaluates pasted output of servers that are not reachable.

Modules that only this form needs are imported where they are used.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gtid_audit import exits
from gtid_audit.commands.options import max_age_of
from gtid_audit.exits import UsageProblem
from gtid_audit.output import write, write_json
from gtid_audit.output_form import OutputForm

if TYPE_CHECKING:
    from gtid_audit.views.verdict_answers import VerdictAnswer

Offline: TypeAlias = Annotated[
    Path | None,
    typer.Option("--offline", metavar="DIR", help="Evaluate pasted output, a file per server."),
]
Questions: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--questions",
        metavar="VERSION",
        help="Print the statements for --offline, for servers of this version, as 5.7.44 or 9.7.4.",
    ),
]


def print_questions(text: str, offline: Path | None, form: OutputForm) -> int:
    """Print the statements for --offline, for one version, as a script or a JSON document."""
    if form not in (OutputForm.TEXT, OutputForm.JSON):
        raise UsageProblem(f"--questions has no verdict: --format {form.value} is for audits")
    if offline is not None:
        raise UsageProblem("--questions prints the statements for --offline: give one of them")
    from topology.adapters.offline.statements_to_paste import script_for
    from topology.readings.version import ServerVersion, UnreadableVersion

    try:
        version = ServerVersion.parse(text)
    except UnreadableVersion as problem:
        raise UsageProblem(f"--questions: {problem}") from None
    script = script_for(version)
    if form is OutputForm.JSON:
        write_json({"version": str(version), "script": script})
    else:
        write(script)
    return exits.OK


def audit_offline(
    directory: Path,
    *,
    allow_uuid: Sequence[str],
    accepted: Sequence[str],
    max_age: str,
    content: bool | None,
) -> "VerdictAnswer":
    """Evaluate pasted output. Raises UsageProblem, InventoryProblem."""
    from gtid_audit import clock
    from gtid_audit.operands.cluster_of_dsns import policy_of
    from gtid_audit.tasks.offline_audit import answer_of_offline
    from topology.documents.run_record import AgeLimit

    limit = AgeLimit(clock.now(), max_age_of(max_age))
    policy = policy_of(allow_uuid, accepted)
    return answer_of_offline(directory, policy, limit, compares=content is not False)
