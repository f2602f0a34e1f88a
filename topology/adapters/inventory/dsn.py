"""Reads `mysql://user@host:port/?option=value`: a server's address, and the source of its password.

1. Every user who can list processes sees a DSN. A DSN with a password in it is refused.
2. No message repeats any part of a DSN: what looks like a port may be the end of a password with a
   slash in it.
3. This module reads no files and no environment; secrets.py does.
"""

import ipaddress
import posixpath
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote_to_bytes

from topology.adapters.inventory.problem import InventoryProblem

SCHEME: Final = "mysql://"
PORT_DEFAULT: Final = 3306
DSN_CHARACTERS_MAX: Final = 4096

OPTIONS: Final = (
    "enable_cleartext_plugin",
    "get_server_public_key",
    "group",
    "option_file",
    "ssl",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "unix_socket",
)
# Options that have only one meaningful value.
_ONLY_VALUES: Final = {
    "enable_cleartext_plugin": "1",
    "get_server_public_key": "1",
    "ssl": "required",
}
_PASSWORD_OPTIONS: Final = frozenset({"password", "passwd", "pwd", "pass"})
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
# `host:port/?option=` with a later @, in an option's value.
_HOST_AND_QUERY = re.compile(r"(\[[^\]]*\]|[^:/?]*):\d+/?\?.*", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

_INDISCREET: Final = (
    "the DSN contains a password, which others can read there. Use the environment"
    " (GTID_AUDIT_PASSWORD), an option file (?option_file=…&group=…) or --ask-password instead"
)


@dataclass(frozen=True, slots=True)
class Dsn:
    """An address as it was written, without any secret."""

    host: str
    port: int
    user: str | None
    unix_socket: str | None = None
    option_file: str | None = None
    group: str | None = None
    ssl_ca: str | None = None
    ssl_cert: str | None = None
    ssl_key: str | None = None
    ssl_required: bool = False
    enable_cleartext_plugin: bool = False
    get_server_public_key: bool = False

    @property
    def endpoint(self) -> str:
        """Return what distinguishes this server from others: socket, or host and port."""
        return endpoint_of(host=self.host, port=self.port, unix_socket=self.unix_socket)

    @property
    def identity(self) -> str:
        """Return the same text for all spellings of one address.

        Letter case, a final dot and the notation of an IP address make no difference. Two names of
        one host do: this method does not resolve names, and the reading detects that case
        (server_uuid).
        """
        if self.unix_socket is not None:
            return posixpath.normpath(self.unix_socket)
        host = self.host.rstrip(".").lower()
        if ":" not in host and not host.replace(".", "").isdigit():  # a name, as most are
            return endpoint_of(host=host, port=self.port, unix_socket=None)
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return endpoint_of(host=host, port=self.port, unix_socket=None)
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return endpoint_of(host=str(mapped or address), port=self.port, unix_socket=None)


def endpoint_of(*, host: str, port: int, unix_socket: str | None) -> str:
    """Return the canonical text of an address: the socket, or `host:port`, IPv6 in brackets."""
    if unix_socket is not None:
        return unix_socket
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_dsn(text: str) -> Dsn:
    """Read a DSN.

    Raises:
        InventoryProblem: the text is not a DSN, or contains a password. The message quotes nothing.
    """
    if len(text) > DSN_CHARACTERS_MAX:
        raise _problem(f"is longer than {DSN_CHARACTERS_MAX} characters")
    if not text.lower().startswith(SCHEME):
        raise _problem(f"does not begin with {SCHEME}")
    _refuse_password(text[len(SCHEME) :])
    if "#" in text:
        raise _problem("contains a '#'; write it as %23")
    before, has_query, query = text[len(SCHEME) :].partition("?")
    authority, _, path = before.partition("/")
    if path:
        raise _problem("has a path; only ?option=value may follow the host and port")
    user, _, address = authority.rpartition("@")
    if ":" in user:
        raise InventoryProblem(_INDISCREET)
    options = _options(query) if has_query else {}
    host, port = _address(address, may_be_empty="unix_socket" in options)
    for name, only in _ONLY_VALUES.items():
        if options.get(name, only) != only:
            raise _problem(f"has {name}=…, but only {name}={only} is supported")
    if ("ssl_cert" in options) != ("ssl_key" in options):
        raise _problem("has only one of ssl_cert and ssl_key; both are required")
    if "group" in options and "option_file" not in options:
        raise _problem("has a group without an option_file")
    return Dsn(
        host=host,
        port=port,
        user=_decoded(user, "the user") if user else None,
        unix_socket=options.get("unix_socket"),
        option_file=options.get("option_file"),
        group=options.get("group"),
        ssl_ca=options.get("ssl_ca"),
        ssl_cert=options.get("ssl_cert"),
        ssl_key=options.get("ssl_key"),
        ssl_required="ssl" in options,
        enable_cleartext_plugin="enable_cleartext_plugin" in options,
        get_server_public_key="get_server_public_key" in options,
    )


def _refuse_password(rest: str) -> None:
    """Refuse `user:anything@`. A password may itself contain @, /, ? and #."""
    before, at_sign, _ = rest.partition("@")
    if at_sign and ":" in before and not _HOST_AND_QUERY.fullmatch(before):
        raise InventoryProblem(_INDISCREET)


def _address(text: str, *, may_be_empty: bool) -> tuple[str, int]:
    if not text:
        if may_be_empty:
            return "localhost", PORT_DEFAULT
        raise _problem("has no host")
    if text.startswith("["):
        inside, bracket, after = text[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise _problem("has an opening bracket before an IPv6 address, but no closing bracket")
        host, port_text = inside, after[1:] if after else None
        try:
            host = str(ipaddress.IPv6Address(inside))
        except ValueError:
            raise _problem("has text in brackets that is no IPv6 address") from None
    else:
        if text.count(":") > 1:
            raise _problem("has more than one ':' in its address; put an IPv6 address in brackets")
        host, colon, after_colon = text.partition(":")
        port_text = after_colon if colon else None
        if not _HOST.fullmatch(host):
            raise _problem("has a host name with an invalid character")
    return host, _port(port_text)


def _port(text: str | None) -> int:
    if text is None:
        return PORT_DEFAULT
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 1 << 16):  # noqa: PLR2004 - digits of 65535
        raise _problem("has a port that is not a number from 1 to 65535")
    return int(text)


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for number, part in enumerate(query.split("&"), start=1):
        if not part:
            continue
        name, equals, value = part.partition("=")
        name = name.lower().replace("-", "_")
        if name in _PASSWORD_OPTIONS:
            raise InventoryProblem(_INDISCREET)
        if name not in OPTIONS:
            near = get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known options: {', '.join(OPTIONS)}"
            raise _problem(f"has an unknown option (number {number}); {hint}")
        if name in options:
            raise _problem(f"has the option {name} twice")
        if not equals or not value:
            raise _problem(f"has the option {name} without a value")
        options[name] = _decoded(value, f"the value of {name}")
    return options


def _decoded(text: str, what: str) -> str:
    if _PERCENT.search(text):
        raise _problem(f"has a '%' in {what} without two hexadecimal digits after it")
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise _problem(f"has percent-encoded bytes in {what} that are not UTF-8") from None
    if _CONTROL.search(decoded):
        raise _problem(f"has a control character in {what}")
    return decoded


def _problem(what: str) -> InventoryProblem:
    return InventoryProblem(f"the DSN {what}; expected mysql://user@host:port/?option=value")
