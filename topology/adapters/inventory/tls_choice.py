"""Decides how a connection is encrypted, from what was written in several places.

How it works
------------
A `TlsChoice` is what one place says: the DSN, a server of the fleet file, its defaults, an option
file. What it leaves out comes from the next place. `settled` turns a choice into the mode of the
connection:

| written              | a DSN or the fleet file        | an option file (the mysql client) |
|----------------------|--------------------------------|-----------------------------------|
| nothing              | PREFERRED                      | PREFERRED                         |
| only a file of CAs   | VERIFY_IDENTITY                | VERIFY_CA                         |
| only a certificate   | REQUIRED                       | PREFERRED                         |
| REQUIRED and CAs     | VERIFY_IDENTITY                | REQUIRED, and a warning           |
| DISABLED or PREFERRED, and CAs | refused              | that mode, and a warning          |
| VERIFY_…, no CAs     | refused                        | refused                           |

A DSN is stricter where the client would not use the authorities that it was given. The right column
is client/include/sslopt-case.h and sslopt-vars.h of 9.7; option_meanings.py applies it, line by
line. A choice that comes from there has its mode already.

This module reads no files.
"""

from dataclasses import dataclass, replace
from typing import Final

from topology.adapters.inventory.problem import InventoryProblem
from topology.readings.target import SslMode

SSL_MODES = tuple(mode.value for mode in SslMode)
_WEAK = (SslMode.DISABLED, SslMode.PREFERRED)


@dataclass(frozen=True, slots=True)
class TlsChoice:
    """What one place says about encryption; None for what it does not say."""

    mode: SslMode | None = None
    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @property
    def is_empty(self) -> bool:
        """Return whether it says nothing."""
        return self is NO_CHOICE or self == NO_CHOICE

    @property
    def half_certificate(self) -> str:
        """Return why a certificate or a key alone is refused; empty for both or none."""
        is_half = (self.cert is None) != (self.key is None)
        return "has only one of ssl_cert and ssl_key; both are required" if is_half else ""

    @property
    def contradiction(self) -> str:
        """Return why one place cannot say both; empty if it can."""
        if self.ca is not None and self.mode in _WEAK:
            return f"has ssl_ca, which ssl={self.mode.value} does not use; use ssl=verify_ca"
        return ""

    def with_mode(self) -> "TlsChoice":
        """Return the choice of a DSN or fleet file with the mode that it implies."""
        if self.mode in (None, SslMode.REQUIRED) and self.ca is not None:
            return replace(self, mode=SslMode.VERIFY_IDENTITY)
        if self.mode is None and self.cert is not None:
            return replace(self, mode=SslMode.REQUIRED)
        return self

    def over(self, later: "TlsChoice") -> "TlsChoice":
        """Return this choice, completed by that of a place of lower rank.

        A certificate and its key come from one place.
        """
        if later is NO_CHOICE:
            return self
        if self is NO_CHOICE:
            return later
        certified = self if self.cert is not None or self.key is not None else later
        return TlsChoice(
            mode=self.mode if self.mode is not None else later.mode,
            ca=self.ca if self.ca is not None else later.ca,
            cert=certified.cert,
            key=certified.key,
        )

    def over_defaults(self, defaults: "TlsChoice") -> "TlsChoice":
        """Return the choice of a server of the fleet file, completed by the file's defaults.

        A server with authorities of its own is verified, even if the others are not encrypted.
        """
        if self.mode is None and self.ca is not None and defaults.mode in _WEAK:
            defaults = replace(defaults, mode=None)
        return self.over(defaults)

    def settled(self) -> "TlsChoice":
        """Return a choice with a mode, and with exactly the files that the mode uses.

        Raises InventoryProblem: the mode verifies, and no place has the authorities.
        """
        mode = self.mode or SslMode.PREFERRED
        if mode.verifies and self.ca is None:
            raise InventoryProblem(
                f"ssl={mode.value} needs the file of the authorities that sign the servers'"
                " certificates: ssl_ca=FILE"
            )
        if mode is SslMode.DISABLED:
            return choice_of(mode)
        ca = self.ca if mode.verifies else None
        return choice_of(mode, ca, self.cert or self.key, self.key or self.cert)


NO_CHOICE: Final = TlsChoice()
_WITHOUT_FILES: Final[dict[SslMode | None, TlsChoice]] = {
    None: NO_CHOICE,
    **{mode: TlsChoice(mode) for mode in SslMode},
}


def choice_of(
    mode: SslMode | None, ca: str | None = None, cert: str | None = None, key: str | None = None
) -> TlsChoice:
    """Return a choice. Those without files are shared: a fleet has them thousands of times."""
    if ca is None and cert is None and key is None:
        return _WITHOUT_FILES[mode]
    return TlsChoice(mode, ca, cert, key)
