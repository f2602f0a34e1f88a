"""`reconcile`: audit a server, a cluster or a fleet, plan, and apply what the policy permits."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.apply_repair import Admin, JournalFile
from gtid_audit.commands.options import AsJson, CompareContent, FleetFile, OneCluster
from gtid_audit.exits import UsageProblem
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.output import progress, write_json

if TYPE_CHECKING:
    from gtid_audit.views.reconciled import Reconciled


class Scope(Enum):
    """The values of SCOPE."""

    SERVER = "server"
    CLUSTER = "cluster"
    FLEET = "fleet"


def reconcile(
    *,
    scope: Annotated[Scope, typer.Argument(metavar="SCOPE", help="server, cluster or fleet.")],
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="The server or cluster, as the fleet file names it."),
    ] = None,
    fleet: FleetFile,
    cluster: OneCluster = None,
    admin: Admin = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Apply what policy.reconcile of the fleet file permits.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="DIR",
            help="Write plans below DIR. Default: `plans` beside the journal.",
        ),
    ] = None,
    content: CompareContent = None,
    journal: JournalFile = None,
    as_json: AsJson = False,
) -> int:
    """Audit, plan, and apply what the policy permits. The rest stays a plan for an operator.

    Exit status: 0 there is nothing above info, or all of it is being applied; 1 something is left
    for an operator; 3 something could not be read. Of a fleet, the highest of all clusters.
    """
    from gtid_audit.tasks.procedure_journal import journal_at
    from gtid_audit.tasks.reconciling import Reconciling
    from gtid_audit.views.reconcile_text import reconcile_document, show_reconciled

    names = _clusters(scope, name, fleet, cluster)
    kept = journal_at(journal)
    results = []
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
        for each in names:
            found = reconciling.cluster(each, server=name if scope is Scope.SERVER else None)
            line.clear()
            if not as_json:
                show_reconciled(found, is_short=GLOBAL_OPTIONS.is_quiet)
            results.append(found)
    if as_json:
        write_json(reconcile_document(results))
    return max(map(_status, results), default=exits.OK)


def _clusters(scope: Scope, name: str | None, fleet: Path, cluster: str | None) -> list[str]:
    """Return the clusters of a scope, in the order of the fleet file. Raises UsageProblem."""
    from gtid_audit.operands.load_fleet import load_without_accounts

    if (name is None) is not (scope is Scope.FLEET):
        raise UsageProblem("reconcile needs: server NAME, cluster NAME, or fleet without a name")
    if cluster is not None and scope is not Scope.SERVER:
        raise UsageProblem("--cluster is for reconcile server: the cluster of that server")
    if scope is Scope.CLUSTER:
        assert name is not None, "checked above"
        return [name]
    clusters = load_without_accounts(fleet).clusters
    if scope is Scope.FLEET:
        return [each.name for each in clusters]
    found = [
        each.name
        for each in clusters
        if cluster in (None, each.name) and name in {one.name for one in each.servers}
    ]
    if len(found) != 1:
        raise UsageProblem(
            f"{fleet}: {name} is a server of {len(found)} clusters"
            + (f" ({', '.join(found)}): select one with --cluster" if found else "")
        )
    return found


def _status(found: "Reconciled") -> int:
    from topology.catalogue.findings import Verdict

    if found.unread:
        return exits.status_of(Verdict.UNKNOWN)
    return exits.status_of(Verdict.WARNING if found.left else Verdict.OK)
