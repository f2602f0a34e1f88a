"""`reconcile`: audit, plan, and apply what the policy permits, from one table to a fleet."""

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.apply_repair import Admin, JournalFile
from gtid_audit.commands.options import (
    AsJson,
    CompareContent,
    Dsns,
    OneCluster,
    OptionalFleetFile,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.output import progress, write_json

if TYPE_CHECKING:
    from gtid_audit.views.reconciled import Reconciled
    from topology.definitions.definition_scope import DefinitionScope

_PAIR = 2


class Scope(Enum):
    """The values of SCOPE."""

    TABLE = "table"
    DATABASE = "database"
    SERVER = "server"
    CLUSTER = "cluster"
    FLEET = "fleet"


_OF_DEFINITIONS = (Scope.TABLE, Scope.DATABASE)


def reconcile(
    scope: Annotated[
        Scope,
        typer.Argument(metavar="SCOPE", help="table, database, server, cluster or fleet."),
    ],
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="schema.table, the schema, or the server or cluster as the fleet file names it.",
        ),
    ] = None,
    dsns: Dsns = None,
    *,
    fleet: OptionalFleetFile = None,
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
    from gtid_audit.operands.plan_servers import PlanServers
    from gtid_audit.tasks.procedure_journal import journal_at
    from gtid_audit.tasks.reconciling import Reconciling
    from gtid_audit.views.reconcile_text import reconcile_document, show_reconciled

    names = _clusters(scope, name, dsns or [], fleet, cluster)
    kept = journal_at(journal)
    results = []
    with progress() as line:
        reconciling = Reconciling(
            servers=PlanServers(
                tuple(dsns or ()), None if fleet is None else str(fleet.absolute())
            ),
            journal=kept,
            plans=out or kept.path.with_name("plans"),
            may_apply=yes,
            admin=admin,
            content=content,
            scope=_definitions(scope, name),
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


def _definitions(scope: Scope, name: str | None) -> "DefinitionScope | None":
    """Return the only definitions that are compared; None for the wider scopes."""
    from gtid_audit.operands.scope_of_definitions import scope_of

    return scope_of(
        name if scope is Scope.TABLE else None, name if scope is Scope.DATABASE else None
    )


def _clusters(
    scope: Scope, name: str | None, dsns: list[str], fleet: Path | None, cluster: str | None
) -> list[str]:
    """Return the clusters of a scope, in the order of the fleet file. Raises UsageProblem."""
    from gtid_audit.operands.cluster_of_dsns import CLUSTER
    from gtid_audit.operands.load_fleet import load_without_accounts

    if (name is None) is not (scope is Scope.FLEET):
        raise UsageProblem(
            "reconcile needs: table SCHEMA.TABLE, database NAME, server NAME, cluster NAME, or"
            " fleet without a name"
        )
    if (fleet is None) is not bool(dsns):
        raise UsageProblem("reconcile needs either --fleet FILE or, for a table or database, DSNs")
    if fleet is None:
        if scope not in _OF_DEFINITIONS or len(dsns) != _PAIR or cluster is not None:
            raise UsageProblem("DSNs are for reconcile table and database: those of two servers")
        return [CLUSTER]
    if cluster is not None and scope not in (*_OF_DEFINITIONS, Scope.SERVER):
        raise UsageProblem("--cluster is for reconcile table, database and server")
    if scope is Scope.CLUSTER:
        assert name is not None, "checked above"
        return [name]
    clusters = load_without_accounts(fleet).clusters
    if scope is Scope.FLEET:
        return [each.name for each in clusters]
    found = [
        each.name
        for each in clusters
        if cluster in (None, each.name)
        and (scope is not Scope.SERVER or name in {one.name for one in each.servers})
    ]
    if len(found) != 1:
        of_what = "a server of" if scope is Scope.SERVER else "in one of"
        raise UsageProblem(
            f"{fleet}: {name} is {of_what} {len(found)} clusters"
            + (f" ({', '.join(found)}): select one with --cluster" if found else "")
        )
    return found


def _status(found: "Reconciled") -> int:
    from topology.catalogue.findings import Verdict

    if found.unread:
        return exits.status_of(Verdict.UNKNOWN)
    return exits.status_of(Verdict.WARNING if found.left else Verdict.OK)
