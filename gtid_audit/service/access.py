"""Who may read what: the optional token, and what is shown without one beyond this machine.

1. Liveness and readiness never need a token: what restarts services has none. With a token, only
   who presents it is shown the reasons. The runbook has no fact of a fleet.
2. Without a token, and at an address that other machines reach, only metrics, liveness and
   readiness are answered. Findings quote error texts of servers, and those quote rows.
3. Tokens are compared by digest and in constant time. A token is never logged, and shown nowhere.
4. Browsers cannot send a bearer token when a page is opened: the token is accepted as the password
   of basic authentication, too, for any user.
"""

import base64
import binascii
import hashlib
import hmac
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final

from gtid_audit.exits import UsageProblem

TOKEN_VARIABLE: Final = "GTID_AUDIT_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_CHARACTERS_MIN: Final = 16
_TOKEN_BYTES_MAX: Final = 64 * 1024
OPEN_PATHS: Final = frozenset({"/healthz", "/readyz", "/runbook"})
NUMBERS_PATHS: Final = OPEN_PATHS | {"/metrics"}


class Permission(Enum):
    """What a request may see."""

    ALL = "everything"
    OPEN = "this path, without reasons"
    NEEDS_TOKEN = "nothing without the token"  # noqa: S105 - a word of ours
    NEEDS_CONFIGURED_TOKEN = "nothing, because no token is configured"  # noqa: S105 - the same


@dataclass(frozen=True, slots=True, repr=False)
class Tokens:
    """The digests of the tokens that are accepted. Several, so that one can be replaced."""

    digests: tuple[bytes, ...]

    @classmethod
    def of(cls, texts: Sequence[str], *, where: str) -> "Tokens":
        """Return the tokens of a file or a variable. Raises UsageProblem."""
        if not texts:
            raise UsageProblem(f"{where}: no token")
        for text in texts:
            if len(text) < TOKEN_CHARACTERS_MIN:
                raise UsageProblem(
                    f"{where}: a token has at least {TOKEN_CHARACTERS_MIN} characters; make one"
                    " with `openssl rand -hex 32`"
                )
            if not (text.isascii() and text.isprintable()) or " " in text:
                raise UsageProblem(f"{where}: a token has printable ASCII without spaces")
        return cls(tuple(_digest(text) for text in texts))

    def accept(self, text: str) -> bool:
        """Return whether a text is one of the tokens. Takes the same time for each."""
        given, is_known = _digest(text), False
        for each in self.digests:  # all of them, also behind an equal one
            is_known |= hmac.compare_digest(given, each)
        return is_known


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogateescape")).digest()


def read_tokens(file: Path | None, environment: Mapping[str, str]) -> Tokens | None:
    """Return the tokens of the file, or of the environment; None if there is neither.

    A file has one token on each line. Raises UsageProblem: also if every user of the machine can
    read or change the file.
    """
    if file is None:
        text = environment.get(TOKEN_VARIABLE)
        return None if text is None else Tokens.of([text], where=TOKEN_VARIABLE)
    try:
        with file.open("rb") as opened:
            mode = stat.S_IMODE(file.stat().st_mode)
            content = opened.read(_TOKEN_BYTES_MAX)
    except OSError as error:
        raise UsageProblem(f"{file}: {error.strerror or error}") from error
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        raise UsageProblem(
            f"{file}: every user of this machine can read or change it; run `chmod o-rw` on it"
        )
    try:
        lines = content.decode("ascii").split()
    except UnicodeDecodeError:
        raise UsageProblem(f"{file}: a token has printable ASCII without spaces") from None
    return Tokens.of(lines, where=str(file))


@dataclass(frozen=True, slots=True)
class Access:
    """The rule for all requests of one server."""

    tokens: Tokens | None
    is_loopback: bool

    def permission(self, path: str, authorization: str | None) -> Permission:
        """Decide about a request by its path and its header Authorization."""
        if self.tokens is None:
            if self.is_loopback or path in NUMBERS_PATHS:
                return Permission.ALL
            return Permission.NEEDS_CONFIGURED_TOKEN
        given = _token_of(authorization)
        if given is not None and self.tokens.accept(given):
            return Permission.ALL
        return Permission.OPEN if path in OPEN_PATHS else Permission.NEEDS_TOKEN


def _token_of(authorization: str | None) -> str | None:
    """Return the token of a header: of the scheme Bearer, or the password of the scheme Basic."""
    scheme, _, value = (authorization or "").partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value
    if scheme.lower() != "basic":
        return None
    try:
        _, colon, password = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None
    return password if colon else None
