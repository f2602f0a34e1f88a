"""`reconcile`: audit a server, a cluster or a fleet, plan, and apply what the policy permits."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gtid_audit import exits
from gtid_audit.commands.apply_repair import Admin, JournalFile
from gtid_audit.commands.options import AsJson, CompareContent, FleetFile, OneCluster
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, write_json

if TYPE_CHECKING:
    from gtid_audit.views.reconciled import Reconciled

MayApply = Annotated[
    bool, typer.Option("--yes", help="Apply what policy.reconcile of the fleet file permits.")
]
Plans = Annotated[
    Path | None,
    typer.Option(
        "--out", metavar="DIR", help="Write plans below DIR. Default: `plans` beside the journal."
    ),
]


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(
        help="Audit, plan, and apply what the policy permits.", no_args_is_help=False, **settings
    )
    family.callback()(_reconcile)
    family.command("server")(server)
    family.command("cluster")(cluster)
    family.command("fleet")(whole_fleet)
    return family


def _reconcile() -> None:
    """Audit, plan, and apply what the policy permits."""


def server(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A server of the fleet file.")],
    fleet: FleetFile,
    cluster: OneCluster = None,
    admin: Admin = None,
    yes: MayApply = False,
    out: Plans = None,
    content: CompareContent = None,
    journal: JournalFile = None,
    as_json: AsJson = False,
) -> int:
    """Repair what is missing or wrong on one server.

    Exit status: that of `reconcile cluster`.
    """
    from gtid_audit.operands.load_fleet import load_without_accounts

    found = [
        each.name
        for each in load_without_accounts(fleet).clusters
        if cluster in (None, each.name) and name in {one.name for one in each.servers}
    ]
    if len(found) != 1:
        raise UsageProblem(
            f"{fleet}: {name} is a server of {len(found)} clusters"
            + (f" ({', '.join(found)}): select one with --cluster" if found else "")
        )
    return _run(
        found,
        server=name,
        fleet=fleet,
        admin=admin,
        yes=yes,
        out=out,
        content=content,
        journal=journal,
        as_json=as_json,
    )


def cluster(
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A cluster of the fleet file.")],
    fleet: FleetFile,
    admin: Admin = None,
    yes: MayApply = False,
    out: Plans = None,
    content: CompareContent = None,
    journal: JournalFile = None,
    as_json: AsJson = False,
) -> int:
    """Repair one cluster.

    Exit status: 0 there is nothing above info, or all of it is being applied; 1 something is left
    for an operator; 3 something could not be read.
    """
    return _run(
        [name],
        server=None,
        fleet=fleet,
        admin=admin,
        yes=yes,
        out=out,
        content=content,
        journal=journal,
        as_json=as_json,
    )


def whole_fleet(
    *,
    fleet: FleetFile,
    admin: Admin = None,
    yes: MayApply = False,
    out: Plans = None,
    content: CompareContent = None,
    journal: JournalFile = None,
    as_json: AsJson = False,
) -> int:
    """Repair every cluster of a fleet file, one after the other.

    Exit status: that of `reconcile cluster`, the highest of all clusters.
    """
    from gtid_audit.operands.load_fleet import load_without_accounts

    names = [each.name for each in load_without_accounts(fleet).clusters]
    return _run(
        names,
        server=None,
        fleet=fleet,
        admin=admin,
        yes=yes,
        out=out,
        content=content,
        journal=journal,
        as_json=as_json,
    )


def _run(
    names: Sequence[str],
    *,
    server: str | None,
    fleet: Path,
    admin: str | None,
    yes: bool,
    out: Path | None,
    content: bool | None,
    journal: Path | None,
    as_json: bool,
) -> int:
    from gtid_audit.tasks.procedure_journal import journal_at
    from gtid_audit.tasks.reconciling import Reconciling
    from gtid_audit.views.reconcile_text import reconcile_document, show_reconciled

    kept = journal_at(journal)

    def results() -> "Iterator[Reconciled]":
        with progress() as line:
            reconciling = Reconciling(
                fleet=fleet.absolute(),
                journal=kept,
                plans=out or kept.path.with_name("plans"),
                may_apply=yes,
                admin=admin,
                content=content,
                say=line.say,
            )
            for name in names:
                found = reconciling.cluster(name, server=server)
                line.clear()
                if not as_json:
                    show_reconciled(found)
                yield found

    done = tuple(results())
    if as_json:
        write_json(reconcile_document(done))
    return max((_status(each) for each in done), default=exits.OK)


def _status(found: "Reconciled") -> int:
    from topology.catalogue.findings import Verdict

    if found.unread:
        return exits.status_of(Verdict.UNKNOWN)
    return exits.status_of(Verdict.WARNING if found.left else Verdict.OK)
