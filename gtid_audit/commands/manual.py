"""`man` and `completion`: what the command line says about itself, for man(1) and for shells."""

import io
import os
from contextlib import redirect_stdout
from enum import Enum
from typing import Annotated, Any

import typer

from gtid_audit import __version__, exits
from gtid_audit.commands.options import AsJson
from gtid_audit.output import write, write_json


class Shell(Enum):
    """The values of SHELL."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def man(context: typer.Context, *, as_json: AsJson = False) -> int:
    """Print the manual page: gtid-audit man > ~/.local/share/man/man1/gtid-audit.1."""
    from gtid_audit.commands.command_tree import described_commands, global_options
    from gtid_audit.views.manual_page import manual_page

    root = context.find_root()
    name = root.info_name or ""
    commands = tuple(described_commands(root.command, name))
    page = manual_page(commands, global_options(root.command, name), version=__version__)
    if as_json:
        write_json({"manual": page})
    else:
        write(page)
    return exits.OK


def completion(
    context: typer.Context,
    shell: Annotated[Shell, typer.Argument(help="bash, zsh or fish.", metavar="SHELL")],
    *,
    as_json: AsJson = False,
) -> int:
    """Print the completion script of a shell.

    For bash: source <(gtid-audit completion bash).
    """
    root = context.find_root()
    script = _script_of(root.command, root.info_name or "", shell)
    if as_json:
        write_json({"shell": shell.value, "script": script})
    else:
        write(script)
    return exits.OK


def _script_of(program: Any, name: str, shell: Shell) -> str:  # noqa: ANN401 - Typer's
    """Return the script. The program prints it when it finds the request in the environment."""
    variable = f"_{name}_COMPLETE".replace("-", "_").upper()
    os.environ[variable] = f"source_{shell.value}"
    text = io.StringIO()
    try:
        with redirect_stdout(text):
            program.main(args=[], prog_name=name, standalone_mode=False)
    except SystemExit:
        return text.getvalue()
    finally:
        del os.environ[variable]
    raise AssertionError("the program ends after it printed the script")
