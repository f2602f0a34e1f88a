"""`gtid-audit handshake`: which server could replicate from which, and may one be promoted."""

from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import (
    AsJson,
    AskPassword,
    CompareContent,
    Dsns,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    seconds_of,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, write_json

Offered = Annotated[
    str | None,
    typer.Option(
        "--offered",
        metavar="SET",
        help="What would connect: a GTID set, @file or '-'; of a consumer, a backup or a clone,"
        " also in the form in which Debezium, Flink CDC, Canal, Maxwell, DM, XtraBackup, mysqldump"
        " or a clone store it.",
    ),
]
Promote = Annotated[
    str | None,
    typer.Option("--promote", metavar="NAME", help="May this server become the source of all?"),
]


def handshake(
    dsns: Dsns = None,
    *,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    offered: Offered = None,
    promote: Promote = None,
    as_json: AsJson = False,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    content: CompareContent = None,
) -> int:
    """Show which server could replicate from which one now, and what would be hidden.

    Exit status: 0 every server could replicate from every other one (with --offered: every server
    serves the set; with --promote: nothing breaks); 1 some could not; 2 no server could be the
    source of all others (no server serves the set; transactions or servers would be lost);
    3 something could not be read.
    """
    from gtid_audit.operands.cluster_of_dsns import policy_of, servers_to_read
    from gtid_audit.operands.offered_set import read_offered
    from gtid_audit.tasks.audited_cluster import read_and_audit
    from gtid_audit.views.handshakes import handshakes_of

    _check(dsns or [], fleet is not None, cluster, offered, promote)
    asked = read_offered(offered) if offered is not None else None
    if fleet is not None and cluster is not None:
        from gtid_audit.operands.load_fleet import cluster_to_read

        if ask_password or timeout is not None:
            raise UsageProblem("--ask-password and --timeout are set in the fleet file")
        to_read = cluster_to_read(fleet, cluster)
    else:
        seconds, policy = seconds_of(timeout), policy_of((), ())
        to_read = servers_to_read(dsns or [], ask=ask_password, seconds_max=seconds, policy=policy)
    with progress() as line:
        read = read_and_audit(to_read, content=content, say=line.say, offered=asked)
    shown = handshakes_of(
        read.snapshot.with_contents(read.contents),
        read.audit,
        read.policy,
        offered=asked,
        promote=promote,
    )
    if as_json:
        write_json(shown.document())
    else:
        from gtid_audit.views.handshake_text import show_handshakes

        show_handshakes(shown)
    return exits.status_of(shown.verdict)


def _check(
    dsns: list[str], has_fleet: bool, cluster: str | None, offered: str | None, promote: str | None
) -> None:
    """Raise UsageProblem unless the operands select servers of one cluster, and one question."""
    if bool(dsns) == has_fleet:
        raise UsageProblem("handshake needs either DSNs or --fleet FILE --cluster NAME")
    if has_fleet != (cluster is not None):
        raise UsageProblem("--fleet and --cluster must be used together")
    if offered is not None and promote is not None:
        raise UsageProblem("--offered and --promote are two questions: ask one at a time")
    if dsns and offered is None and len(dsns) == 1:
        raise UsageProblem("handshake compares servers: give at least two DSNs")
