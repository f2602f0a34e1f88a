"""Shells and mandoc that this machine may not have."""

from collections.abc import Mapping

from tests.unpacked_programs import command_in, unpacked_or_skip

_PACKAGES = ("fish", "mandoc", "zsh")
_PLACES: Mapping[str, str] = {"fish": "usr/bin/fish", "mandoc": "usr/bin/mandoc", "zsh": "bin/zsh"}


def unpacked_program(name: str) -> list[str]:
    """Return the command of a program, with the C library that was unpacked with it."""
    return command_in(unpacked_or_skip("shells", *_PACKAGES), _PLACES[name])
