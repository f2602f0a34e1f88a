"""`gtid-audit audit`: evaluates a live fleet, servers named by DSN, stored or pasted readings.

Modules that only one of them needs are imported where they are used.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gtid_audit.commands.audit_fleets import AuditComparing, AuditedFleets, audit_fleets
from gtid_audit.commands.audit_offline import Offline, Questions, audit_offline, print_questions
from gtid_audit.commands.audit_servers import NamedServers, named_audit
from gtid_audit.commands.options import (
    Accepted,
    AllowedUuids,
    AsJson,
    AskPassword,
    CompareContent,
    CompareDefinitions,
    Dsns,
    EngineChoice,
    EngineOption,
    Format,
    KeepHistory,
    MaxAge,
    OneCluster,
    OptionalFleetFile,
    ServerSeconds,
    Watch,
)
from gtid_audit.commands.watching import AuditOnce, audited
from gtid_audit.exits import UsageProblem
from gtid_audit.output_form import form_of
from topology.documents.run_record import MAX_AGE_DEFAULT

Snapshots = Annotated[
    Path | None,
    typer.Option("--snapshots", metavar="DIR", help="Evaluate stored snapshots."),
]
StoreIn = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Store snapshots and findings there as Parquet."),
]
WriteBaseline = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline",
        metavar="FILE",
        help="Write the findings above info there, as entries that the fleet file can accept.",
    ),
]
WriteMetrics = Annotated[
    Path | None,
    typer.Option(
        "--write-metrics",
        metavar="FILE",
        help="Write the metrics there, for node_exporter's textfile collector.",
    ),
]
Discover = Annotated[
    str | None,
    typer.Option("--discover", metavar="DSN", help="Find the other servers from this one."),
]


def audit(
    dsns: Dsns = None,
    *,
    discover: Discover = None,
    fleet: OptionalFleetFile = None,
    cluster: OneCluster = None,
    snapshots: Snapshots = None,
    offline: Offline = None,
    questions: Questions = None,
    engine: EngineOption = EngineChoice.AUTO,
    out: StoreIn = None,
    as_json: AsJson = False,
    form: Format = None,
    watch: Watch = None,
    history: KeepHistory = None,
    write_baseline: WriteBaseline = None,
    write_metrics: WriteMetrics = None,
    content: CompareContent = None,
    definitions: CompareDefinitions = None,
    max_age: MaxAge = MAX_AGE_DEFAULT,
    ask_password: AskPassword = False,
    timeout: ServerSeconds = None,
    allow_uuid: AllowedUuids = None,
    accepted: Accepted = None,
) -> int:
    """Audit a fleet by its fleet file, the servers of DSNs, or what was stored.

    --offline audits servers that gtid-audit cannot reach, from the output of their statements.
    """
    chosen = form_of(form, as_json=as_json)
    named = NamedServers(
        tuple(dsns or ()),
        discover,
        ask_password=ask_password,
        timeout=timeout,
        allow_uuid=tuple(allow_uuid or ()),
        accepted=tuple(accepted or ()),
    )
    stored = AuditedFleets(
        *(fleet, cluster, snapshots, out, engine, max_age, history),
        baseline=write_baseline,
        metrics=write_metrics,
    )
    if watch is not None:
        read_once = {"--snapshots": snapshots, "--offline": offline, "--questions": questions}
        _refuse(read_once | {"--write-baseline": write_baseline}, "is not for --watch")
    if questions is not None:
        return print_questions(questions, offline, chosen)
    compared = AuditComparing(content, definitions)
    if offline is not None:
        done = _offline(offline, named, stored, compared)
    elif named.has_servers:
        _refuse(stored.given(), "is for fleets: use it without DSNs and --discover")
        done = named_audit(named, content=content, definitions=bool(definitions), history=history)
    elif named.has_options:
        raise UsageProblem(
            "--ask-password, --timeout, --allow-uuid and --accepted are for DSNs. The fleet file"
            " has its own settings"
        )
    else:
        done = partial(audit_fleets, stored, compared)
    return audited(done, form=chosen, watch=watch)


def _offline(
    directory: Path, named: NamedServers, stored: AuditedFleets, compared: AuditComparing
) -> AuditOnce:
    """Return the audit of pasted output. Raises UsageProblem for options of live servers."""
    of_live = {**named.given(), **stored.given(), "--max-age": None}
    of_live |= {"--content": compared.content or None, "--history": stored.history}
    of_live["--definitions"] = compared.definitions or None
    _refuse(of_live, "is for servers that gtid-audit reads, not for --offline")
    return lambda say: say(
        audit_offline(
            directory,
            allow_uuid=named.allow_uuid,
            accepted=named.accepted,
            max_age=stored.max_age,
            content=compared.content,
        )
    )


def _refuse(options: Mapping[str, object], reason: str) -> None:
    """Raise UsageProblem for an option that was given and has no meaning here."""
    for option, value in options.items():
        if value is not None:
            raise UsageProblem(f"{option} {reason}")
