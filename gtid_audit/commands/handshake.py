"""`gtid-audit handshake`: which server could replicate from which, and may one be promoted."""

from typing import Annotated

import typer

from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    Dsns,
    Format,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    seconds_of,
)
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress
from gtid_audit.output_form import form_of

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
ConsumerName = Annotated[
    str | None,
    typer.Option(
        "--consumer",
        metavar="NAME",
        help="What would connect: this consumer of the fleet file, with the set that it has now.",
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
    consumer: ConsumerName = None,
    promote: Promote = None,
    as_json: AsJson = False,
    form: Format = None,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
    content: CompareContent = None,
) -> int:
    """Show which server could replicate from which one now, and what would be hidden.

    Exit status: 0 every server could replicate from every other one (with --offered or --consumer:
    every server serves the set; with --promote: nothing breaks); 1 some could not; 2 no server
    could be the source of all others (no server serves the set; transactions or servers would be
    lost); 3 something could not be read.
    """
    from gtid_audit.operands.cluster_of_dsns import policy_of, servers_to_read
    from gtid_audit.operands.offered_set import read_offered
    from gtid_audit.tasks.audited_cluster import read_and_audit
    from gtid_audit.views.handshakes import handshakes_of, handshakes_of_consumer
    from gtid_audit.views.verdict_answers import DocumentAnswer, write_answer

    chosen = form_of(form, as_json=as_json)
    questions = {"--offered": offered, "--consumer": consumer, "--promote": promote}
    given = tuple(name for name, value in questions.items() if value is not None)
    _check(dsns or [], given, has_fleet=fleet is not None, has_cluster=cluster is not None)
    asked = read_offered(offered) if offered is not None else None
    if fleet is not None and cluster is not None:
        from gtid_audit.operands.load_fleet import cluster_to_read

        if ask_password or timeout is not None or allow_uuid or accepted:
            raise UsageProblem(
                "--ask-password, --timeout, --allow-uuid and --accepted are for DSNs; set them in"
                " the fleet file"
            )
        to_read = cluster_to_read(fleet, cluster)
    else:
        seconds, policy = seconds_of(timeout), policy_of(allow_uuid or (), accepted or ())
        to_read = servers_to_read(dsns or [], ask=ask_password, seconds_max=seconds, policy=policy)
    if consumer is not None:
        _check_consumer(consumer, [each.name for each in to_read.consumers])
    with progress() as line:
        read = read_and_audit(to_read, content=content, say=line.say, offered=asked, pairs=True)
    snapshot = read.snapshot.with_contents(read.contents)
    if consumer is not None:
        [found] = [each for each in snapshot.consumers if each.name == consumer]
        shown = handshakes_of_consumer(snapshot, read.audit, read.policy, found)
    else:
        shown = handshakes_of(snapshot, read.audit, read.policy, offered=asked, promote=promote)
    from gtid_audit.views.handshake_text import handshake_summary, outcome_counts, show_handshakes

    answer = DocumentAnswer(
        shown.verdict,
        handshake_summary(shown),
        shown.document,
        lambda: show_handshakes(shown),
        outcome_counts(shown),
    )
    return write_answer(answer, chosen)


def _check(
    dsns: list[str], questions: tuple[str, ...], *, has_fleet: bool, has_cluster: bool
) -> None:
    """Raise UsageProblem unless the operands select servers of one cluster, and one question."""
    if bool(dsns) == has_fleet:
        raise UsageProblem("handshake needs either DSNs or --fleet FILE --cluster NAME")
    if has_fleet != has_cluster:
        raise UsageProblem("--fleet and --cluster must be used together")
    if len(questions) > 1:
        first, *_, last = questions
        raise UsageProblem(f"{first} and {last} are two questions: ask one at a time")
    if "--consumer" in questions and not has_fleet:
        raise UsageProblem("--consumer needs --fleet FILE --cluster NAME, which list the consumers")
    if dsns and "--offered" not in questions and len(dsns) == 1:
        raise UsageProblem("handshake compares servers: give at least two DSNs")


def _check_consumer(consumer: str, names: list[str]) -> None:
    """Raise UsageProblem unless the cluster has a consumer of this name."""
    if consumer not in names:
        known = f"the consumers are {', '.join(names)}" if names else "it has no consumers"
        raise UsageProblem(f"--consumer: the cluster has no consumer {consumer!r}; {known}")
