"""Reads a DSN: a server's address, and the source of its account.

    mysql://user@host:port/?option=value        user@host        host:port        user@/run/my.sock

1. Every user who can list processes sees a DSN. A DSN with a password in it is refused.
2. No message repeats any part of a DSN: what looks like a port may be the end of a password with a
   slash in it. It states the place as the number of a character.
3. Without `mysql://`, a user, a port, brackets, options or the slash of a socket must show that the
   word is an address. A bare word may be a file, a command or a cluster.
4. This module reads no files and no environment; targets.py completes what a DSN leaves out.
"""

import ipaddress
import posixpath
import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final
from urllib.parse import unquote_to_bytes

from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.tls_choice import NO_CHOICE, SSL_MODES, TlsChoice, choice_of
from topology.readings.target import SslMode

SCHEME: Final = "mysql://"
EXPECTED: Final = "expected user@host:port or mysql://user@host:port/?option=value"
PORT_DEFAULT: Final = 3306
DSN_CHARACTERS_MAX: Final = 4096

OPTIONS: Final = (
    "enable_cleartext_plugin",
    "get_server_public_key",
    "group",
    "login_path",
    "option_file",
    "password_file",
    "ssl",
    "ssl_ca",
    "ssl_cert",
    "ssl_key",
    "unix_socket",
)
# Options that have only one meaningful value.
_ONLY_VALUES: Final = {"enable_cleartext_plugin": "1", "get_server_public_key": "1"}
# An account comes from one of them.
_ACCOUNT_SOURCES: Final = ("login_path", "option_file", "password_file")
_PASSWORD_OPTIONS: Final = frozenset({"password", "passwd", "pwd", "pass"})
_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?")
# `host:port/?option=` with a later @, in an option's value.
_HOST_AND_QUERY = re.compile(r"(\[[^\]]*\]|[^:/?]*):\d+/?\?.*", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_SOCKET = re.compile(r"(?:(?P<user>[^@/]*)@)?(?P<path>/.+)", re.DOTALL)
# A GTID: a UUID, perhaps a tag, and numbers.
_GTID = re.compile(r"\s*[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\s*:.*", re.DOTALL | re.IGNORECASE)
# A word that is a DSN without its scheme, among words that may be files.
_SHORT = re.compile(
    r"""(?: [^@:/?\s]+@ (?: /.+ | \[[^\]]*\](?::\d+)? | [A-Za-z0-9_.-]+(?::\d+)? )
          | \[[^\]]*\](?::\d+)?
          | (?P<host>[A-Za-z0-9_.-]+):\d+ )
        /? (?:\?.*)?""",
    re.VERBOSE | re.DOTALL,
)
_LOG_NAME = re.compile(r".*\.[0-9]{6,}")

_INDISCREET: Final = (
    "the DSN contains a password, which others can read there. Use the environment"
    " (GTID_AUDIT_PASSWORD), a file (?option_file=…&group=… or ?password_file=…), a login path"
    " (?login_path=…) or --ask-password instead"
)


@dataclass(frozen=True, slots=True)
class Dsn:
    """A complete address and the source of its account, without any secret."""

    host: str
    port: int
    user: str | None
    unix_socket: str | None = None
    option_file: str | None = None
    group: str | None = None
    login_path: str | None = None
    password_file: str | None = None
    tls: TlsChoice = NO_CHOICE
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


@dataclass(frozen=True, slots=True)
class WrittenDsn:
    """A DSN as it was written. Option files may give the host and the port that it leaves out."""

    host: str | None
    port: int | None
    user: str | None
    options: dict[str, str]
    tls: TlsChoice  # that of the options

    def completed(
        self, *, host: str | None = None, port: int | None = None, unix_socket: str | None = None
    ) -> Dsn:
        """Return the address, with these values for what the DSN leaves out.

        A socket is for `localhost`, as for the mysql client, unless the DSN has a port. Raises
        InventoryProblem: neither has a host.
        """
        host = self.host or host
        socket = self.options.get("unix_socket")
        if socket is None and self.port is None and host in (None, "localhost"):
            socket = unix_socket
        if host is None and socket is None:
            raise _problem("has no host")
        return Dsn(
            host=host or "localhost",
            port=self.port or port or PORT_DEFAULT,
            user=self.user,
            unix_socket=socket,
            option_file=self.options.get("option_file"),
            group=self.options.get("group"),
            login_path=self.options.get("login_path"),
            password_file=self.options.get("password_file"),
            tls=self.tls,
            enable_cleartext_plugin="enable_cleartext_plugin" in self.options,
            get_server_public_key="get_server_public_key" in self.options,
        )


def endpoint_of(*, host: str, port: int, unix_socket: str | None) -> str:
    """Return the canonical text of an address: the socket, or `host:port`, IPv6 in brackets."""
    if unix_socket is not None:
        return unix_socket
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_dsn(word: str) -> bool:
    """Return whether a word that may be a file or a GTID is a DSN.

    `binlog.000001:4` is a place in a log, and a UUID with a number is a GTID.
    """
    if word.lower().startswith("mysql:/"):
        return True
    short = _SHORT.fullmatch(word)
    if short is None or _GTID.fullmatch(word):
        return False
    return short["host"] is None or not _LOG_NAME.fullmatch(short["host"])


def parse_dsn(text: str) -> Dsn:
    """Read a DSN that has a host or a socket.

    Raises:
        InventoryProblem: the text is not a DSN, or contains a password. The message quotes nothing.
    """
    return read_dsn(text).completed()


def read_dsn(text: str) -> WrittenDsn:
    """Read a DSN, which may leave its host to an option file. Raises InventoryProblem."""
    if len(text) > DSN_CHARACTERS_MAX:
        raise _problem(f"is longer than {DSN_CHARACTERS_MAX} characters")
    start = len(SCHEME) if text.lower().startswith(SCHEME) else 0
    _refuse_password(text[start:])
    if not start:
        _refuse_other_words(text)
    if (at := text.find("#")) >= 0:
        raise _problem("contains a '#'; write it as %23", at)
    before, has_query, query = text[start:].partition("?")
    options = _options(query, start + len(before) + 1) if has_query else {}
    host: str | None = None
    port: int | None = None
    socket = None if start else _SOCKET.fullmatch(before)
    if socket is not None:
        user = socket["user"] or ""
        if "unix_socket" in options:
            raise _problem("has two unix sockets", socket.start("path"))
        options["unix_socket"] = _decoded(socket["path"], "the unix socket", socket.start("path"))
    else:
        authority, _, path = before.partition("/")
        if path:
            raise _problem(
                "has a path; only ?option=value may follow the host and port",
                start + len(authority) + 1,
            )
        user, has_user, address = authority.rpartition("@")
        host, port = _address(address, start + len(user) + len(has_user))
    if ":" in user:
        raise InventoryProblem(_INDISCREET)
    tls = _checked(options) if options else NO_CHOICE
    user_decoded = _decoded(user, "the user", start) if user else None
    return WrittenDsn(host, port, user_decoded, options, tls)


def _refuse_password(rest: str) -> None:
    """Refuse `user:anything@`. A password may itself contain @, /, ? and #."""
    before, at_sign, _ = rest.partition("@")
    if at_sign and ":" in before and not _HOST_AND_QUERY.fullmatch(before):
        raise InventoryProblem(_INDISCREET)


def _refuse_other_words(text: str) -> None:
    """Refuse a text without scheme that is none of the short forms."""
    if _SCHEME.match(text):
        raise _problem(f"does not begin with {SCHEME}", 0)
    if _GTID.fullmatch(text):
        raise _problem("is a GTID, not an address", 0)
    if not any(mark in text for mark in "@:[?") and not text.startswith("/"):
        raise _problem("is a single word; for a host of this name write host:port, or user@host")


def _address(text: str, begin: int) -> tuple[str | None, int | None]:
    if not text:
        return None, None
    if text.startswith("["):
        inside, bracket, after = text[1:].partition("]")
        if not bracket or (after and not after.startswith(":")):
            raise _problem(
                "has an opening bracket before an IPv6 address, but no closing bracket", begin
            )
        host, port_text = inside, after[1:] if after else None
        try:
            host = str(ipaddress.IPv6Address(inside))
        except ValueError:
            raise _problem("has text in brackets that is no IPv6 address", begin + 1) from None
    else:
        if text.count(":") > 1:
            raise _problem(
                "has more than one ':' in its address; put an IPv6 address in brackets", begin
            )
        host, colon, after_colon = text.partition(":")
        port_text = after_colon if colon else None
        if not _HOST.fullmatch(host):
            raise _problem("has a host name with an invalid character", begin)
    return host, _port(port_text, begin + len(text) - len(port_text or ""))


def _port(text: str | None, begin: int) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 1 << 16):  # noqa: PLR2004 - digits of 65535
        raise _problem("has a port that is not a number from 1 to 65535", begin)
    return int(text)


def _options(query: str, begin: int) -> dict[str, str]:
    options: dict[str, str] = {}
    for part in query.split("&"):
        at, begin = begin, begin + len(part) + 1
        if not part:
            continue
        name, equals, value = part.partition("=")
        name = name.lower().replace("-", "_")
        if name in _PASSWORD_OPTIONS:
            raise InventoryProblem(_INDISCREET)
        if name not in OPTIONS:
            near = get_close_matches(name, OPTIONS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known options: {', '.join(OPTIONS)}"
            raise _problem(f"has an unknown option; {hint}", at)
        if name in options:
            raise _problem(f"has the option {name} twice", at)
        if not equals or not value:
            raise _problem(f"has the option {name} without a value", at)
        options[name] = _decoded(value, f"the value of {name}", at)
    return options


def _checked(options: dict[str, str]) -> TlsChoice:
    """Return what options say about encryption.

    Raises InventoryProblem: they contradict each other, or the value of one has no meaning.
    """
    for name, only in _ONLY_VALUES.items():
        if options.get(name, only) != only:
            raise _problem(f"has {name}=…, but only {name}={only} is supported")
    sources = [name for name in _ACCOUNT_SOURCES if name in options]
    if len(sources) > 1:
        raise _problem(f"has both {sources[0]} and {sources[1]}; use only one of the two")
    if "group" in options and "option_file" not in options:
        raise _problem("has a group without an option_file")
    tls = _tls(options)
    if problem := tls.half_certificate or tls.contradiction:
        raise _problem(problem)
    return tls


def _tls(options: dict[str, str]) -> TlsChoice:
    mode: SslMode | None = None
    if "ssl" in options:
        value = options["ssl"].lower().replace("-", "_")
        if value not in SSL_MODES:
            raise _problem(f"has ssl=…, but not one of {', '.join(SSL_MODES)}")
        mode = SslMode(value)
    return choice_of(mode, options.get("ssl_ca"), options.get("ssl_cert"), options.get("ssl_key"))


def _decoded(text: str, what: str, at: int) -> str:
    if _PERCENT.search(text):
        raise _problem(f"has a '%' in {what} without two hexadecimal digits after it", at)
    try:
        decoded = unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise _problem(f"has percent-encoded bytes in {what} that are not UTF-8", at) from None
    if _CONTROL.search(decoded):
        raise _problem(f"has a control character in {what}", at)
    return decoded


def _problem(what: str, at: int | None = None) -> InventoryProblem:
    place = "" if at is None else f" at character {at + 1}"
    return InventoryProblem(f"the DSN {what}{place}; {EXPECTED}")
