"""`repair apply` and `repair resume`: run the scripts of a plan. No other command writes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gtid_audit.commands.options import AsJson, AskPassword, Dsns, OneCluster, OptionalFleetFile
from gtid_audit.exits import UsageProblem

if TYPE_CHECKING:
    from repair.applying.procedures_applied import AppliedProcedure
    from repair.applying.written_plan import WrittenPlan

JournalFile = Annotated[
    Path | None,
    typer.Option(
        "--journal",
        metavar="FILE",
        help="The journal of procedures. Default: gtid-audit/journal.sqlite in $XDG_STATE_HOME, or"
        " in ~/.local/state.",
    ),
]
Admin = Annotated[
    str | None,
    typer.Option(
        "--admin",
        metavar="FILE",
        help="Option file with the account that may write. Default: the account of the audit.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before the first script.")]
StepByStep = Annotated[bool, typer.Option("--step", help="Ask before each step.")]
Detached = Annotated[
    bool, typer.Option("--detach", help="Print the procedure id, and go on in the background.")
]
JsonLines = Annotated[
    bool,
    typer.Option("--json-lines", help="Write each event as one line of JSON when it happens."),
]


def apply(
    *,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory of the plan.")],
    dsns: Dsns = None,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    admin: Admin = None,
    ask_password: AskPassword = False,
    yes: Yes = False,
    approve: Annotated[
        str | None,
        typer.Option(
            "--approve", metavar="ID", help="Apply the plan only if it has this id; do not ask."
        ),
    ] = None,
    step: StepByStep = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print every statement that would be sent, and send none."),
    ] = False,
    detach: Detached = False,
    journal: JournalFile = None,
    json_lines: JsonLines = False,
    as_json: AsJson = False,
) -> int:
    """Run the scripts of a plan, and compare the servers with its simulation after each.

    The servers are those of the command that made the plan, unless DSNs or a fleet file are given.

    Exit status: 0 done, and the audit afterwards shows only what the plan announced; 1 not done: it
    was stopped, or the servers were not as simulated; 2 a script failed. If the audit shows more,
    the status is that of what it shows; 3 something could not be read.
    """
    from gtid_audit.operands.plan_servers import PlanServers
    from gtid_audit.tasks.applied_repair import PreparedRepair, load_directory
    from gtid_audit.tasks.procedure_journal import begin, journal_at

    plan, texts = load_directory(directory)
    if approve is not None and approve != plan.id:
        raise UsageProblem(f"--approve {approve}: the plan in {directory} has the id {plan.id}")
    if not plan.scripts:
        raise UsageProblem(f"{directory}: the plan has no script; read its RUNBOOK.md")
    if dry_run:
        from gtid_audit.views.procedure_text import show_what_is_sent

        return show_what_is_sent(plan, texts, as_json=as_json)
    _refuse_two_ways(step=step, detach=detach)
    named = PlanServers(
        tuple(dsns or ()), None if fleet is None else str(fleet), cluster, admin, ask_password
    )
    named = named.or_of_plan(plan).from_anywhere()
    targets = named.targets(plan)
    if not (yes or approve is not None):
        _ask(plan, directory)
    kept = journal_at(journal)
    procedure = begin(kept, plan, directory, named.words)
    from gtid_audit.commands.running_repair import RunOptions, run

    options = RunOptions(step, detach, json_lines, as_json, asks_password=named.ask)
    return run(kept, procedure, PreparedRepair(plan, texts, targets), options)


def resume(
    *,
    procedure_id: Annotated[str, typer.Argument(metavar="ID", help="Or how the id begins.")],
    yes: Yes = False,
    step: StepByStep = False,
    detach: Detached = False,
    journal: JournalFile = None,
    json_lines: JsonLines = False,
    as_json: AsJson = False,
) -> int:
    """Go on with a procedure that was stopped, failed or was interrupted.

    It begins with the first step that is not done. A script that was interrupted runs again: its
    guards decide what is left of it.
    """
    from gtid_audit.operands.plan_servers import PlanServers
    from gtid_audit.tasks.applied_repair import PreparedRepair, load_directory
    from gtid_audit.tasks.procedure_journal import journal_at, procedure_of

    _refuse_two_ways(step=step, detach=detach)
    kept = journal_at(journal)
    procedure = procedure_of(kept, procedure_id)
    if procedure.verdict is not None:
        raise UsageProblem(f"procedure {procedure.id} is done")
    directory = Path(procedure.directory)
    plan, texts = load_directory(directory)
    if plan.id != procedure.plan_id:
        raise UsageProblem(
            f"{directory} holds plan {plan.id} now; procedure {procedure.id} was about plan"
            f" {procedure.plan_id}"
        )
    named = PlanServers.of_words(procedure.servers)
    targets = named.targets(plan)
    if not yes:
        _ask(plan, directory, after=procedure)
    from gtid_audit.commands.running_repair import RunOptions, run

    options = RunOptions(step, detach, json_lines, as_json, asks_password=named.ask)
    return run(kept, procedure, PreparedRepair(plan, texts, targets), options)


def _refuse_two_ways(*, step: bool, detach: bool) -> None:
    if step and detach:
        raise UsageProblem("--step asks on the terminal, so it cannot be used with --detach")


def _ask(plan: "WrittenPlan", directory: Path, *, after: "AppliedProcedure | None" = None) -> None:
    """Ask whether to apply a plan. Raises UsageProblem without a terminal, Abort for no."""
    import sys

    from gtid_audit.views.procedure_text import show_scripts

    if not sys.stdin.isatty():
        raise UsageProblem(f"there is no terminal to ask on: use --yes, or --approve {plan.id}")
    show_scripts(plan, directory, done=0 if after is None else after.scripts_done)
    typer.confirm("Apply it?", abort=True, err=True)
