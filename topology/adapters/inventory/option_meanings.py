"""What the lines of option files mean for a connection, as the mysql client takes them.

1. Lines are taken in their order; the last one of a name takes precedence. The options of TLS
   depend on each other and on that order: client/include/sslopt-case.h, of 9.7 for `ssl-mode`,
   `ssl-ca`, `ssl-cert` and `ssl-key`, of 5.7 for `ssl` and `ssl-verify-server-cert`.
2. `ssl=1` means REQUIRED, as since 5.7.3. For older clients it was a wish. A client that encrypts
   when it need not does no harm.
3. Options that have no meaning here are ignored, as the mysql client ignores those of other groups.
   Options that restrict TLS further, and that gtid-audit does not know, are reported.
4. What sends a password unprotected (`get-server-public-key`, `enable-cleartext-plugin`) is not
   taken from a file: the DSN or the fleet file must say it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final

from topology.adapters.inventory.option_file import OptionFileProblem, OptionLine, text_of
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.tls_choice import NO_CHOICE, SSL_MODES, TlsChoice
from topology.readings.target import Secret, SslMode

PORT_MAX: Final = 65_535

_ON: Final = ("1", "on", "true")
_OFF: Final = ("0", "off", "false")
# They restrict TLS further. Without them a connection works, but is less strict than asked for.
_UNSUPPORTED: Final = (
    "ssl-cipher", "ssl-crl", "ssl-crlpath", "ssl-fips-mode", "tls-ciphersuites", "tls-version",
)  # fmt: skip
_PREFIXES: Final = {"skip-": "0", "disable-": "0", "enable-": "1"}
_ADDRESS: Final = ("host", "user", "socket", "port")
_SWITCHES: Final = ("ssl", "ssl-verify-server-cert")


@dataclass(frozen=True, slots=True)
class ClientOptions:
    """What option files say about a connection; None for what they do not say."""

    host: str | None = None
    port: int | None = None
    unix_socket: str | None = None
    user: str | None = None
    password: Secret | None = None
    asks_password_at: str = ""  # `password` without a value: the client would prompt
    tls: TlsChoice = NO_CHOICE

    def over(self, later: "ClientOptions") -> "ClientOptions":
        """Return these options, completed by those of lower rank."""
        has_password = self.password is not None or bool(self.asks_password_at)
        return ClientOptions(
            host=self.host or later.host,
            port=self.port or later.port,
            unix_socket=self.unix_socket or later.unix_socket,
            user=self.user or later.user,
            password=self.password if has_password else later.password,
            asks_password_at=self.asks_password_at if has_password else later.asks_password_at,
            tls=self.tls.over(later.tls),
        )

    def password_or_problem(self) -> Secret | None:
        """Return the password, None without one. Raises InventoryProblem: it would be typed."""
        if self.asks_password_at:
            raise InventoryProblem(
                f"{self.asks_password_at}: 'password' without a value would ask for it"
                " interactively; use --ask-password"
            )
        return self.password


NO_OPTIONS: Final = ClientOptions()


def options_of(lines: Iterable[OptionLine], *, warn: Callable[[str], None]) -> ClientOptions:
    """Return what the lines of the requested groups mean. Raises OptionFileProblem."""
    found = _Meaning(warn)
    for line in lines:
        found.take(line)
    return found.options()


class _Meaning:
    """The options so far, and the state that the client keeps for those of TLS."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._found = ClientOptions()
        self._tls = TlsChoice()
        self._is_tcp = False
        self._is_explicit = False  # ssl_mode_set_explicitly there
        self._ca_place = ""

    def take(self, line: OptionLine) -> None:
        """Apply one line."""
        name, value = _switch(line)
        if name in _SWITCHES:
            self._take_switch(name, is_on=value != "0")
        elif name in ("ssl-mode", "ssl-ca", "ssl-capath", "ssl-cert", "ssl-key"):
            self._take_tls(line)
        elif name in _UNSUPPORTED:
            self._warn(f"{line.place}: {name} is not supported, and has no effect here")
        elif name == "password":
            self._take_password(line)
        elif name in _ADDRESS and (text := text_of(line)):
            self._take_address(line, text)
        elif name == "protocol":
            self._is_tcp = text_of(line).lower() == "tcp"

    def options(self) -> ClientOptions:
        """Return the options, after the last line."""
        if self._tls.ca is not None and self._is_explicit and not _verifies(self._tls.mode):
            self._warn(
                f"{self._ca_place}: ssl-ca is not used, because ssl-mode does not verify the"
                " server's certificate; use ssl-mode=VERIFY_CA or VERIFY_IDENTITY"
            )
        socket = None if self._is_tcp else self._found.unix_socket
        return replace(self._found, unix_socket=socket, tls=self._tls)

    def _take_address(self, line: OptionLine, text: str) -> None:
        if line.name == "host":
            self._found = replace(self._found, host=text)
        elif line.name == "user":
            self._found = replace(self._found, user=text)
        elif line.name == "socket":
            self._found = replace(self._found, unix_socket=text)
        else:
            self._found = replace(self._found, port=_port(line, text))

    def _take_password(self, line: OptionLine) -> None:
        if line.value is None:
            self._found = replace(self._found, password=None, asks_password_at=line.place)
        else:
            self._found = replace(self._found, password=Secret(text_of(line)), asks_password_at="")

    def _take_switch(self, name: str, *, is_on: bool) -> None:
        """Apply an option of 5.7."""
        mode = self._tls.mode or SslMode.PREFERRED
        if name == "ssl":
            if not is_on:
                mode = SslMode.DISABLED
            elif mode in (SslMode.DISABLED, SslMode.PREFERRED):
                mode = SslMode.REQUIRED
        elif is_on:
            mode = SslMode.VERIFY_IDENTITY
        elif mode is SslMode.VERIFY_IDENTITY:
            mode = SslMode.VERIFY_CA
        else:
            return
        # A later line with ssl-ca must not weaken VERIFY_IDENTITY, as it does in 5.7.
        self._is_explicit = self._is_explicit or mode is SslMode.VERIFY_IDENTITY
        self._tls = replace(self._tls, mode=mode)

    def _take_tls(self, line: OptionLine) -> None:
        text = text_of(line)
        if line.name == "ssl-mode":
            if text.lower() not in SSL_MODES:
                known = ", ".join(each.upper() for each in SSL_MODES)
                raise OptionFileProblem(f"{line.place}: expected ssl-mode as one of {known}")
            self._is_explicit = True
            self._tls = replace(self._tls, mode=SslMode(text.lower()))
        elif line.name == "ssl-capath":
            raise OptionFileProblem(
                f"{line.place}: ssl-capath is not supported; use ssl-ca with one file of all"
                " authorities"
            )
        elif text and line.name == "ssl-ca":
            self._ca_place = line.place
            mode = self._tls.mode if self._is_explicit else SslMode.VERIFY_CA
            self._tls = replace(self._tls, mode=mode, ca=text)
        elif text and line.name == "ssl-cert":
            self._tls = replace(self._tls, cert=text)
        elif text:
            self._tls = replace(self._tls, key=text)


def _switch(line: OptionLine) -> tuple[str, str | None]:
    """Return name and value; `skip-ssl` is `ssl=0` (my_getopt). Raises OptionFileProblem."""
    for prefix, value in _PREFIXES.items():
        if (name := line.name.removeprefix(prefix)) in _SWITCHES and name != line.name:
            return name, value
    if line.name not in _SWITCHES:
        return line.name, line.value
    text = "1" if line.value is None else text_of(line).lower()
    if text not in _ON + _OFF:
        raise OptionFileProblem(f"{line.place}: expected {line.name} as 0 or 1")
    return line.name, "1" if text in _ON else "0"


def _port(line: OptionLine, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= PORT_MAX):  # noqa: PLR2004 - digits of 65535
        raise OptionFileProblem(f"{line.place}: expected a port from 1 to 65535")
    return int(text)


def _verifies(mode: SslMode | None) -> bool:
    return mode is not None and mode.verifies
