"""The address of a server and the account to connect with: addresses and secrets as values.

1. A password is held in a `Secret`. Its value does not appear in repr, str, logging or an f-string,
   nor in pickle, whose bytes end in files and on other machines. Only two callers use `reveal`: the
   code that opens a connection, and the one pickler that sends accounts to an executor
   (spark_audit/adapters/pickled_accounts.py).
2. This module neither obtains passwords nor opens connections.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NoReturn


class Secret:
    """A text that does not appear in any output."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text itself, for the code that must send it."""
        return self._text

    def hidden_in(self, text: str) -> str:
        """Return a text with every occurrence of this secret removed."""
        return text.replace(self._text, "…") if self._text else text

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled together with an object that contains it")

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: object) -> "Secret":
        return self

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(("Secret", self._text))


NO_PASSWORD = Secret("")


class SslMode(Enum):
    """Whether a connection is encrypted and the server verified; the values of `ssl-mode`.

    The modes of the mysql client ("Command Options for Encrypted Connections"), weakest first:

    * DISABLED never encrypts. PREFERRED encrypts if the server offers it.
    * REQUIRED encrypts or fails. None of these three verifies the server.
    * VERIFY_CA also verifies that a given authority signed the server's certificate, and
      VERIFY_IDENTITY that the certificate has the name or address of the host.
    """

    DISABLED = "disabled"
    PREFERRED = "preferred"
    REQUIRED = "required"
    VERIFY_CA = "verify_ca"
    VERIFY_IDENTITY = "verify_identity"

    @property
    def verifies(self) -> bool:
        """Return whether the server's certificate is verified."""
        return self in (SslMode.VERIFY_CA, SslMode.VERIFY_IDENTITY)


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """One server to read: its name in the reports, its address, and the account."""

    name: str
    host: str
    port: int
    user: str
    password: Secret = NO_PASSWORD
    unix_socket: str | None = None
    ssl_mode: SslMode = SslMode.PREFERRED
    ssl_ca: str | None = None  # exactly if the mode verifies
    ssl_cert: str | None = None  # both or neither
    ssl_key: str | None = None
    # The mysql client's options of these names: what may be sent over TCP without TLS.
    enable_cleartext_plugin: bool = False
    get_server_public_key: bool = False

    def __post_init__(self) -> None:
        if not self.name:
            raise ValueError("a server needs a name")
        if not 0 < self.port < 1 << 16:
            raise ValueError(f"{self.name}: port {self.port} is not a TCP port")
        if self.ssl_mode.verifies != (self.ssl_ca is not None):
            raise ValueError(f"{self.name}: a file of authorities belongs to a mode that verifies")
