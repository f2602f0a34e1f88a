"""TLS of `serve`: a certificate and its key, which can be replaced while the service runs.

A new pair is tried in a context of its own first. If it does not fit, the context that is in use is
not touched. Connections that exist keep their certificate; new ones get the new one.
"""

import ssl
from dataclasses import dataclass
from pathlib import Path

from gtid_audit.exits import UsageProblem


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate with its chain, and its key without a passphrase: PEM files."""

    certificate: Path
    key: Path

    @classmethod
    def of(cls, certificate: Path | None, key: Path | None) -> "CertificateFiles | None":
        """Return the files, None if TLS is off. Raises UsageProblem if only one is given."""
        if certificate is None and key is None:
            return None
        if certificate is None or key is None:
            raise UsageProblem("--tls-cert and --tls-key must be used together")
        return cls(certificate, key)

    def new_context(self) -> ssl.SSLContext:
        """Return a context with the certificate. Raises UsageProblem."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._load(context)
        return context

    def load_again(self, context: ssl.SSLContext) -> None:
        """Replace the certificate of a context. Raises UsageProblem; the old one is kept then."""
        self.new_context()
        self._load(context)

    def _load(self, context: ssl.SSLContext) -> None:
        try:
            # The function asks on a terminal otherwise, and a service has none.
            context.load_cert_chain(self.certificate, self.key, password=_no_passphrase)
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            raise UsageProblem(
                f"{self.certificate} and {self.key}: not a certificate and its key: {reason}"
            ) from error
        except OSError as error:
            for file in (self.certificate, self.key):
                _require_readable(file)
            raise UsageProblem(f"{self.certificate}: {error.strerror or error}") from error


def _no_passphrase() -> str:
    return ""


def _require_readable(file: Path) -> None:
    try:
        with file.open("rb"):
            return
    except OSError as error:
        raise UsageProblem(f"{file}: {error.strerror or error}") from error
