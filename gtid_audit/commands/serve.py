"""`serve`: audits on a schedule; metrics, a JSON API and a page over HTTP."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from gtid_audit import exits
from gtid_audit.commands.apply_repair import JournalFile
from gtid_audit.commands.options import AsJson, FleetFile, KeepHistory
from gtid_audit.output import write_json, write_line
from gtid_audit.service.log_words import LogFormat, LogLevel

if TYPE_CHECKING:
    from gtid_audit.service.running_service import RunningService
    from gtid_audit.service.service_log import ServiceLog
    from topology.adapters.inventory.fleet import Fleet

SIGNAL_CHECK_SECONDS = 1.0

Listen: TypeAlias = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="Port 0 selects a free port.")
]
Interval: TypeAlias = Annotated[
    float,
    typer.Option(
        "--interval",
        metavar="SECONDS",
        min=0.1,
        max=86400,
        help="Time between two audits of a cluster. Each cluster has its own clock.",
    ),
]
TokenFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="Require one of the tokens in this file, one a line. Default: the token in"
        " GTID_AUDIT_TOKEN; none is required if neither is given.",
    ),
]
Certificate: TypeAlias = Annotated[
    Path | None,
    typer.Option("--tls-cert", metavar="FILE", help="Serve HTTPS with this certificate (PEM)."),
]
CertificateKey: TypeAlias = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="The key of the certificate (PEM).")
]
FormOfLog: TypeAlias = Annotated[
    LogFormat, typer.Option("--log-format", help="The form of the log on standard error.")
]
LevelOfLog: TypeAlias = Annotated[
    LogLevel,
    typer.Option(
        "--log-level",
        help="Log nothing below this level. Findings have the level of their severity.",
    ),
]

Zeros: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--zeros/--no-zeros",
        help="Export a findings series of value 0 for each code that was not found.",
    ),
]


def serve(
    *,
    fleet: FleetFile,
    listen: Listen = "127.0.0.1:9717",
    interval: Interval = 60.0,
    history: KeepHistory = None,
    journal: JournalFile = None,
    token_file: TokenFile = None,
    tls_cert: Certificate = None,
    tls_key: CertificateKey = None,
    log_format: FormOfLog = LogFormat.JSON,
    log_level: LevelOfLog = LogLevel.INFO,
    zeros: Zeros = True,
    as_json: AsJson = False,
) -> int:
    """Audit a fleet on a schedule; serve metrics, a JSON API and a page until stopped.

    SIGHUP loads the fleet file, the tokens and the certificate again. Needs the extra [serve].
    """
    from gtid_audit.optional_packages import require_serve

    require_serve()
    from gtid_audit.service.certificate import CertificateFiles
    from gtid_audit.service.listening import parse_address
    from gtid_audit.service.running_service import RunningService, ServiceOptions
    from gtid_audit.service.service_log import ServiceLog
    from gtid_audit.tasks.procedure_journal import place_of_journal
    from gtid_audit.tasks.served_audit import served_audit

    log = ServiceLog(log_format, least=log_level)
    options = ServiceOptions(
        parse_address(listen),
        interval,
        place_of_journal(journal),
        token_file,
        CertificateFiles.of(tls_cert, tls_key),
        zeros=zeros,
    )
    audited = served_audit(history)
    service = RunningService(
        options, partial(_load, fleet, log), audited, audited.open_findings, log
    )
    _serve(service, as_json=as_json)
    return exits.OK


def _load(path: Path, log: "ServiceLog") -> "Fleet":
    """Read the fleet file; warnings about it go to the log. Raises InventoryProblem."""
    from topology.adapters.inventory.fleet_file import load_fleet
    from topology.adapters.inventory.secrets import environment

    def warn(text: str) -> None:
        log.write(LogLevel.WARNING, "fleet_file", text)

    return load_fleet(path, environment=environment(), warn=warn)


def _serve(service: "RunningService", *, as_json: bool) -> None:
    """Serve until SIGTERM or SIGINT; load the files again on SIGHUP."""
    import signal
    import threading

    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    signal.signal(signal.SIGHUP, lambda _number, _frame: service.request_reload())
    address = service.server.address
    if as_json:
        write_json({"host": address.host, "port": address.port, "url": service.server.url})
    else:
        write_line(f"listening on {service.server.url}")
    service.start()
    while not stop.wait(SIGNAL_CHECK_SECONDS):
        pass  # Python calls no handler for a signal that comes just before a wait without an end
    service.stop()
