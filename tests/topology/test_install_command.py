"""An extra is added by the program that has installed gtid-audit."""

import sys
from pathlib import Path

import pytest

from topology.adapters.install_command import install_command

RECEIPT = """\
[tool]
requirements = [{ name = "gtid-audit", extras = ["columns"] }, { name = "iniconfig" }]
"""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def test_pip(prefix: Path) -> None:
    assert prefix.is_dir()
    assert install_command("serve") == "pip install 'gtid-audit[serve]'"


def test_pipx(prefix: Path) -> None:
    (prefix / "pipx_metadata.json").write_text("{}")
    assert install_command("serve") == "pipx inject gtid-audit 'gtid-audit[serve]'"


def test_uv_keeps_what_it_has_installed(prefix: Path) -> None:
    (prefix / "uv-receipt.toml").write_text(RECEIPT)
    assert install_command("serve") == "uv tool install 'gtid-audit[columns,serve]'"
    assert install_command("columns") == "uv tool install 'gtid-audit[columns]'"


@pytest.mark.parametrize("text", ["", "[", "tool = 1", "[tool]\nrequirements = ['gtid-audit']"])
def test_a_receipt_of_another_version(prefix: Path, text: str) -> None:
    (prefix / "uv-receipt.toml").write_text(text)
    assert install_command("spark") == "uv tool install 'gtid-audit[spark]'"
