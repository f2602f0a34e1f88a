"""What a source's own settings keep from its replicas, or require of their channels: as text."""

from collections.abc import Iterator

from topology.readings.dialect import BINARY_LOG_FILTERS
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ReadServer, ServerSnapshot


def offline_text(source: ServerSnapshot) -> str | None:
    """Return that a server accepts few accounts (offline_mode), or None.

    Accounts with CONNECTION_ADMIN, or SUPER, still connect. That of a channel seldom has it.
    """
    if "offline_mode" not in notable_values(source.notable_settings):
        return None
    return (
        f"offline_mode is ON on {source.name}: it refuses accounts without CONNECTION_ADMIN (or"
        " SUPER) with error 3032"
    )


def requires_tls(source: ServerSnapshot) -> bool:
    """Return whether a server refuses connections without TLS (5.7.8 and later)."""
    return dict(source.settings or ()).get("require_secure_transport") in ("ON", "1")


def log_filters_of(server: ServerSnapshot) -> Iterator[tuple[str, str]]:
    """Yield the options by which a server does not log all of its changes, with their values."""
    for option, value in server.settings or ():
        if option in BINARY_LOG_FILTERS.values() and value:
            yield option, value


def leaves_out(source: ReadServer) -> Iterator[str]:
    """Yield which filters keep changes from what a server sends, or from its own rows."""
    for option, value in log_filters_of(source):
        yield (
            f"{source.name} does not log all of its changes ({option} = {value}): what it"
            " leaves out reaches no replica, and no error shows it"
        )
    for channel in source.channels or ():
        if channel.filters:
            yield (
                f"{source.name} does not apply all that it receives ({', '.join(channel.filters)}):"
                " it may not have the rows that others have"
            )
