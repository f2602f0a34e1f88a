"""What the section of a server, or of the defaults, says about encryption and accounts.

This module decides nothing: tls_choice.py and accounts.py do.
"""

from dataclasses import replace

from topology.adapters.inventory.dsn import Dsn
from topology.adapters.inventory.fleet_model import Account, PasswordSource
from topology.adapters.inventory.tls_choice import TlsChoice, choice_of
from topology.readings.target import SslMode


def tls_of(section: Account) -> TlsChoice:
    """Return what a section says about encryption."""
    mode = SslMode(section.ssl) if section.ssl is not None else None
    return choice_of(mode, section.ssl_ca, section.ssl_cert, section.ssl_key)


def source_of(dsn: Dsn) -> PasswordSource | None:
    """Return the file that a DSN names for its account, None if it names none."""
    files = (dsn.option_file, dsn.group, dsn.login_path, dsn.password_file)
    if all(each is None for each in files):
        return None
    return PasswordSource(
        option_file=dsn.option_file,
        group=dsn.group,
        login_path=dsn.login_path,
        password_file=dsn.password_file,
    )


def with_defaults(dsn: Dsn, defaults: Account) -> Dsn:
    """Return a DSN completed from the defaults, except for the account."""
    tls = dsn.tls.over_defaults(tls_of(defaults))
    cleartext = dsn.enable_cleartext_plugin or defaults.enable_cleartext_plugin is not None
    public_key = dsn.get_server_public_key or defaults.get_server_public_key is not None
    complete = (tls, cleartext, public_key)
    if complete == (dsn.tls, dsn.enable_cleartext_plugin, dsn.get_server_public_key):
        return dsn
    return replace(
        dsn, tls=tls, enable_cleartext_plugin=cleartext, get_server_public_key=public_key
    )
