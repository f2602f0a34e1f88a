"""The command that adds an extra to this installation, by the program that installed it.

pipx and uv keep each program in an environment of its own and leave a record in its folder: `pip`
of the shell would install elsewhere. An installed gtid-audit satisfies its own name, so the command
needs no index that has it. Tried with pipx 1.18, uv 0.13 and pip 23.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Final

_OF_PIPX: Final = "pipx_metadata.json"
_OF_UV: Final = "uv-receipt.toml"


def install_command(extra: str) -> str:
    """Return the command for the environment of this process."""
    return _command_in(Path(sys.prefix), extra)


@cache
def _command_in(prefix: Path, extra: str) -> str:
    if (prefix / _OF_PIPX).is_file():
        return f"pipx inject gtid-audit 'gtid-audit[{extra}]'"
    if (prefix / _OF_UV).is_file():
        extras = ",".join(sorted({extra, *_extras_of(prefix / _OF_UV)}))
        return f"uv tool install 'gtid-audit[{extras}]'"
    return f"pip install 'gtid-audit[{extra}]'"


def _extras_of(receipt: Path) -> list[str]:
    """Return the extras that uv has installed: it removes those that a command leaves out."""
    import tomllib

    try:
        document = tomllib.loads(receipt.read_text())
        return [
            extra
            for requirement in document["tool"]["requirements"]
            if requirement["name"] == "gtid-audit"
            for extra in requirement.get("extras", ())
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []  # of another version of uv
