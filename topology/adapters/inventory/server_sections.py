"""What the section of a server, or of the defaults, says about encryption and accounts.

This module decides nothing: tls_choice.py and accounts.py do.
"""

from dataclasses import replace

from topology.adapters.inventory.dsn import Dsn
from topology.adapters.inventory.fleet_model import Account, PasswordSource
from topology.adapters.inventory.tls_choice import TlsChoice
from topology.readings.target import SslMode


def tls_of(section: Account) -> TlsChoice:
    """Return what a section says about encryption."""
    mode = SslMode(section.ssl) if section.ssl is not None else None
    return TlsChoice(mode, section.ssl_ca, section.ssl_cert, section.ssl_key)


def source_of(dsn: Dsn) -> PasswordSource | None:
    """Return the file that a DSN names for its account, None if it names none."""
    source = PasswordSource(
        option_file=dsn.option_file,
        group=dsn.group,
        login_path=dsn.login_path,
        password_file=dsn.password_file,
    )
    return source if source != PasswordSource() else None


def with_defaults(dsn: Dsn, defaults: Account) -> Dsn:
    """Return a DSN completed from the defaults, except for the account."""
    return replace(
        dsn,
        tls=dsn.tls.over_defaults(tls_of(defaults)),
        enable_cleartext_plugin=(
            dsn.enable_cleartext_plugin or defaults.enable_cleartext_plugin is not None
        ),
        get_server_public_key=(
            dsn.get_server_public_key or defaults.get_server_public_key is not None
        ),
    )
