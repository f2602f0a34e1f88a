"""Makes the TLS contexts of connections: what is verified, and which client certificate is shown.

1. The modes are those of the mysql client (topology/readings/target.py, SslMode).
2. A context never prompts: OpenSSL would ask for the passphrase of a key on the terminal, and a
   service would hang.
3. `VERIFY_X509_STRICT`, which Python 3.13 sets in its default context, stays off. The certificates
   that MySQL makes for itself do not have the extensions that it requires (seen on 9.7.4).
"""

import ssl
from functools import lru_cache
from typing import NoReturn

from topology.readings.target import ServerTarget, SslMode


class EncryptedKey(OSError):
    """A private key that has a passphrase. An OSError: to connect fails with it."""

    def __init__(self, file: str) -> None:
        super().__init__(f"the private key {file} has a passphrase, which is not supported")


def required_context(target: ServerTarget) -> ssl.SSLContext | None:
    """Return the context of a connection that must be encrypted; None if it need not be.

    Raises OSError (which ssl.SSLError is) for a file that cannot be read or used.
    """
    if target.ssl_mode in (SslMode.DISABLED, SslMode.PREFERRED):
        return None
    context = _new_context()
    if target.ssl_ca is not None:
        trust(context, target.ssl_ca)
        context.verify_mode = ssl.CERT_REQUIRED
        context.check_hostname = target.ssl_mode is SslMode.VERIFY_IDENTITY
    _show_certificate(context, target)
    return context


def optional_context(target: ServerTarget) -> ssl.SSLContext:
    """Return the context for a server that may offer TLS. Raises OSError."""
    if target.ssl_cert is None:
        return unverified_context()
    context = _new_context()
    _show_certificate(context, target)
    return context


@lru_cache(maxsize=1)
def unverified_context() -> ssl.SSLContext:
    """Return a context, shared by all connections, that accepts any certificate."""
    return _new_context()


def is_too_old(error: Exception) -> bool:
    """Return whether a connection failed because both sides accept no common version of TLS."""
    causes = (error, error.__cause__, error.__context__)
    reasons = {each.reason for each in causes if isinstance(each, ssl.SSLError)}
    return bool(reasons & {"UNSUPPORTED_PROTOCOL", "TLSV1_ALERT_PROTOCOL_VERSION"})


def trust(context: ssl.SSLContext, ca: str) -> None:
    """Load the authorities of a file into a context. Raises OSError."""
    context.load_verify_locations(cafile=ca)


def show_certificate(context: ssl.SSLContext, *, cert: str, key: str) -> None:
    """Load a client certificate and its key into a context. Raises OSError."""

    def refuse() -> NoReturn:
        raise EncryptedKey(key)

    context.load_cert_chain(cert, key, password=refuse)


def _new_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def _show_certificate(context: ssl.SSLContext, target: ServerTarget) -> None:
    if target.ssl_cert is not None:
        show_certificate(context, cert=target.ssl_cert, key=target.ssl_key or target.ssl_cert)
