"""Joins the parts of the service: audits, files, journal, web server. It starts and stops them.

The caller makes the functions that load the fleet and audit a cluster: this package knows no task.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gtid_audit.service.access import Access, read_tokens
from gtid_audit.service.certificate import CertificateFiles
from gtid_audit.service.listening import Address
from gtid_audit.service.loaded_files import FileToLoad, LoadedFiles
from gtid_audit.service.log_watcher import LogWatcher
from gtid_audit.service.log_words import LogLevel
from gtid_audit.service.metrics import AuditCollector
from gtid_audit.service.procedure_metrics import ServiceCollector
from gtid_audit.service.procedure_source import ProcedureSource
from gtid_audit.service.repeated_audit import AuditCluster, AuditService, OpenBefore
from gtid_audit.service.service_log import ServiceLog
from gtid_audit.service.web import WebServer
from gtid_audit.service.web_app import ShownFacts, WebApp
from topology.adapters.inventory.fleet import Fleet

STOP_SECONDS_MAX: Final = 5.0


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What the operator chose."""

    address: Address
    interval_seconds: float
    journal: Path | None
    token_file: Path | None
    certificate: CertificateFiles | None
    zeros: bool = True  # metrics of findings that there are not


class RunningService:
    """All parts of one service. It listens as soon as it is created."""

    def __init__(
        self,
        options: ServiceOptions,
        load_fleet: Callable[[], Fleet],
        audit: AuditCluster,
        open_before: OpenBefore,
        log: ServiceLog,
    ) -> None:
        """Load all files. Raises InventoryProblem and UsageProblem."""
        self._options = options
        self._log = log
        tls = None if options.certificate is None else options.certificate.new_context()
        fleet = load_fleet()
        self.audits = AuditService(
            fleet,
            audit,
            interval_seconds=options.interval_seconds,
            watcher=LogWatcher(log),
            open_before=open_before,
        )
        self._journal = ProcedureSource(options.journal)
        self.server = WebServer(options.address, tls=tls)
        self._app = WebApp(self._facts(), self._access())
        self._files = LoadedFiles(
            load_fleet,
            self._other_files(),
            self.audits,
            log,
            interval_seconds=options.interval_seconds,
            is_listed=fleet.is_listed,
        )

    def start(self) -> None:
        """Answer, and begin the first audits."""
        self._journal.start()
        self.server.start(self._app, report_defect=self._report_defect)
        self.audits.start()
        self._files.start()

    def request_reload(self) -> None:
        """Load all files again, soon."""
        self._files.request()

    def stop(self) -> None:
        """Stop answering, and wait a moment for running audits."""
        self._files.stop()
        self._journal.stop()
        self.server.stop()
        self.audits.stop(wait_seconds_max=STOP_SECONDS_MAX)

    def _facts(self) -> ShownFacts:
        collectors = (
            AuditCollector(self.audits.states, zeros=self._options.zeros),
            ServiceCollector(self._journal.latest, lambda: self.audits.results().configuration),
        )
        return ShownFacts(self.audits.results, self.audits.health, self._journal, collectors)

    def _other_files(self) -> list[FileToLoad]:
        found = [FileToLoad("the token file", self._use_tokens)]
        certificate, context = self._options.certificate, self.server.tls
        if certificate is not None and context is not None:
            found.append(FileToLoad("the certificate", lambda: certificate.load_again(context)))
        return found

    def _use_tokens(self) -> None:
        self._app.access = self._access()

    def _access(self) -> Access:
        """Return who may read what now; warn if that deserves it. Raises UsageProblem."""
        tokens = read_tokens(self._options.token_file, os.environ)
        address = self.server.address
        if not address.is_loopback and tokens is None:
            self._warn(
                f"other machines reach {address}, and there is no token: only /metrics, /healthz"
                " and /readyz are answered, to everyone. Set --token-file for the API and the page"
            )
        if not address.is_loopback and tokens is not None and self._options.certificate is None:
            self._warn(
                f"other machines reach {address} without TLS: the token and all findings can be"
                " read on the network. Set --tls-cert and --tls-key, or listen on a loopback"
                " address behind a proxy"
            )
        return Access(tokens, address.is_loopback)

    def _warn(self, text: str) -> None:
        self._log.write(LogLevel.CRITICAL, "exposed", text)

    def _report_defect(self, text: str) -> None:
        self._log.write(LogLevel.CRITICAL, "defect", f"a defect of the web server: {text}")
