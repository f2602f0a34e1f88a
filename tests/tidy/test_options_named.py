"""An option that a message or a page names exists: here, or in the program that the text is about."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from gtid_audit.cli import app

ROOT = Path(__file__).parents[2]
PACKAGES = ("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z_-]*[a-z]")
# Options of other programs, which our texts name in their command lines.
OF_OTHERS = {
    "mysql": (
        *("--batch", "--binary-mode", "--comments", "--default-character-set"),
        *("--defaults-extra-file", "--force", "--host", "--login-path"),
        *("--port", "--protocol", "--skip-comments", "--socket", "--user", "--vertical"),
    ),
    "ansible-inventory": ("--list",),
    "docker": (
        *("--cap-drop", "--file", "--project-name", "--read-only", "--rm", "--tag", "--tmpfs"),
    ),
    "kubectl": ("--filename", "--from-literal"),
    "systemctl, journalctl": ("--now", "--unit"),
    "mysqld": ("--replicate-same-server-id", "--skip-log-bin", "--upgrade"),
    "mysqldump": (
        *("--all-databases", "--hex-blob", "--master-data", "--no-data"),
        *("--result-file", "--routines", "--set-gtid-purged", "--single-transaction"),
        *("--source-data", "--triggers"),
    ),
    "mysqlbinlog": ("--raw", "--read-from-remote-server"),
    "spark-submit": ("--archives", "--name", "--py-files"),
    "systemctl": ("--now",),
    "venv-pack": ("--output", "--prefix"),
    "our driver on the cluster": ("--exit",),
}


def options_of(command: TyperCommand | TyperGroup, name: str = "gtid-audit") -> Iterator[str]:
    """Yield the options of a command and of those below it."""
    context = command.make_context(name, [], resilient_parsing=True)
    for parameter in command.get_params(context):
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, TyperGroup):
        for each in command.list_commands(context):
            below = command.get_command(context, each)
            assert isinstance(below, TyperCommand | TyperGroup)
            yield from options_of(below, each)


def texts() -> Iterator[tuple[Path, str]]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield path, node.value
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        yield page, page.read_text()


@pytest.mark.long
def test_every_option_that_is_named_exists() -> None:
    command = get_command(app)
    assert isinstance(command, TyperGroup)
    known = {each for each in options_of(command) if each.startswith("--")}
    others = {each for names in OF_OTHERS.values() for each in names}
    named = {option: path for path, text in texts() for option in OPTION.findall(text)}
    unknown = {option: path for option, path in named.items() if option not in known | others}
    assert not unknown
    assert others - named.keys() == set(), "no text names these any more"
    assert not others & known
