"""`serve`: audits on a schedule, and serves the results to Prometheus."""

from typing import Annotated

import typer

from gtid_audit import exits
from gtid_audit.commands.options import AsJson, FleetFile, KeepHistory
from gtid_audit.output import warn, write_json, write_line

STOP_SECONDS_MAX = 5.0
SIGNAL_CHECK_SECONDS = 1.0


def serve(
    *,
    fleet: FleetFile,
    listen: Annotated[
        str, typer.Option("--listen", metavar="HOST:PORT", help="Port 0 selects a free port.")
    ] = "127.0.0.1:9717",
    interval: Annotated[
        float,
        typer.Option(
            "--interval", metavar="SECONDS", min=0.1, max=86400, help="Time between two audits."
        ),
    ] = 60.0,
    history: KeepHistory = None,
    zeros: Annotated[
        bool,
        typer.Option(
            "--zeros/--no-zeros",
            help="Export a findings series of value 0 for each code that was not found.",
        ),
    ] = True,
    as_json: AsJson = False,
) -> int:
    """Audit a fleet on a schedule and serve /metrics, /runbook and /healthz until stopped."""
    import signal
    import threading

    from gtid_audit.operands.load_fleet import load
    from gtid_audit.service.cluster_state import MeasuredAudit, measured_audits
    from gtid_audit.service.repeated_audit import AuditService
    from gtid_audit.service.web import WebServer, parse_address
    from gtid_audit.tasks.compared_restarts import ProcessMemory
    from gtid_audit.tasks.fleet_audit import audit_fleet
    from gtid_audit.tasks.kept_history import history_at

    address = parse_address(listen)
    settings = load(fleet, None)

    memory, kept = ProcessMemory(), history_at(history, of_servers=False)

    def audit() -> tuple[MeasuredAudit, ...]:
        # Commands of the fleet file are run again: they may list other servers now.
        now = load(fleet, None) if settings.is_listed else settings
        found = audit_fleet(now, memory=memory, history=kept)
        return measured_audits(found.report.audits, found.snapshots, now.policy)

    service = AuditService(
        audit, interval_seconds=interval, report_failure=lambda text: warn(f"audit failed: {text}")
    )
    server = WebServer(address, service, zeros=zeros)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stop.set())
    threading.Thread(target=server.serve, name="web", daemon=True).start()
    if as_json:
        write_json({"host": server.address.host, "port": server.address.port})
    else:
        write_line(f"listening on http://{server.address}")
    service.start()
    while not stop.wait(SIGNAL_CHECK_SECONDS):
        pass  # Python calls no handler for a signal that comes just before a wait without an end
    server.stop()
    service.stop(wait_seconds_max=STOP_SECONDS_MAX)
    return exits.OK
