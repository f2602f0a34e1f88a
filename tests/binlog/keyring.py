"""A server that encrypts its logs, by the keyring of its own distribution.

1. mysqld looks for its manifest, and so for its keyring, beside its own program, and a component for
   its configuration in the plugin folder (the reference manual on keyring components). Both folders
   are this server's own here: no other server of the same installation sees a keyring.
2. The program is a hard link where that can be, and the plugin folder holds links.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from compose.native.command import Settings
from compose.native.installation import Installation
from compose.native.server import Server

_COMPONENT = "component_keyring_file"
_PLUGIN_DIR = "--plugin-dir="


@contextmanager
def encrypting_server(installation: Installation, *, name: str = "encrypting") -> Iterator[Server]:
    """Run a server with `binlog_encryption=ON`: its binary logs and relay logs are encrypted."""
    server = Server(installation, name, settings=Settings(extra=("--binlog-encryption=ON",)))
    server.installation = with_keyring(installation, server.folder)
    try:
        server.start()
        yield server
    finally:
        server.discard()


def with_keyring(installation: Installation, folder: Path) -> Installation:
    """Return the same server with a keyring in a file below `folder`."""
    if installation.image:
        pytest.skip("provider missing: a keyring needs a mysqld outside of containers")
    plugins = _plugins_of(installation)
    if not (plugins / f"{_COMPONENT}.so").exists():
        pytest.skip(f"provider missing: {plugins} has no {_COMPONENT}.so")
    programs, own_plugins = folder / "sbin", folder / "plugin"
    programs.mkdir()
    own_plugins.mkdir()
    program = programs / "mysqld"
    _link_or_copy(Path(installation.mysqld[-1]), program)
    for plugin in plugins.iterdir():
        (own_plugins / plugin.name).symlink_to(plugin)
    manifest = {"components": f"file://{_COMPONENT}"}
    (programs / "mysqld.my").write_text(json.dumps(manifest))
    keys = {"path": str(folder / "keyring"), "read_only": False}
    (own_plugins / f"{_COMPONENT}.cnf").write_text(json.dumps(keys))
    others = [each for each in installation.options if not each.startswith(_PLUGIN_DIR)]
    return replace(
        installation,
        mysqld=(*installation.mysqld[:-1], str(program)),
        options=(*others, f"{_PLUGIN_DIR}{own_plugins}"),
    )


def _plugins_of(installation: Installation) -> Path:
    """Return the plugin folder; a server that was found on the machine has it where it was built."""
    for option in installation.options:
        if option.startswith(_PLUGIN_DIR):
            return Path(option.removeprefix(_PLUGIN_DIR))
    return Path(installation.mysqld[-1]).resolve().parents[1] / "lib" / "mysql" / "plugin"


def _link_or_copy(program: Path, to: Path) -> None:
    try:
        os.link(program, to)
    except OSError:
        shutil.copy2(program, to)  # on another file system
