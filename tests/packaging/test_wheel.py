"""The wheel: what is in it, and that it is enough, alone in an empty environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from compose.native.server import Server
from compose.native.shapes import Pair
from gtid_audit.finding_examples import EXAMPLES_FILE
from tests.tidy.test_tidy import ROOT

UV = Path(sys.executable).parent / "uv"
# Each is a layer of ARCHITECTURE.md, which has the reason for its name.
PACKAGES = {"binlog", "gtid", "gtid_audit", "repair", "spark_audit", "topology"}


def uv(*words: str | Path, cwd: Path, **environment: str) -> str:
    """Run uv from its cache; with the network if the cache does not have what it needs."""
    # A test imports the packages of the source tree; an installation must not.
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for offline in (["--offline"], []):
        done = subprocess.run(
            [UV, *words, *offline],
            cwd=cwd,
            env={**inherited, **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            return done.stdout + done.stderr
    raise AssertionError(done.stderr)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the tracked files: what an earlier build left in the tree is not in it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    copy = tmp_path_factory.mktemp("source")
    for name in listed:
        if not name.startswith(("tests/", "docs/", "benchmarks/")) and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="session")
def wheel(source: Path) -> Path:
    out = source.parent / "wheel"
    uv("build", "--wheel", "-o", out, ".", cwd=source)
    [built] = out.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def installed(wheel: Path) -> Path:
    """The programs of an empty environment in which only the wheel was installed."""
    place = wheel.parent / "empty"
    uv("venv", "--python", sys.executable, place, cwd=wheel.parent)
    uv("pip", "install", "--python", place / "bin/python", wheel, cwd=wheel.parent)
    return place / "bin"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(word) for word in words],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_wheel_has_the_layers_and_nothing_else(wheel: Path) -> None:
    names = ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == PACKAGES
    code = [name for name in names if ".dist-info" not in name and not name.endswith(".py")]
    assert all(name.endswith("/py.typed") or name.startswith("gtid_audit/") for name in code), code
    assert {"gtid_audit/api/__init__.py", "gtid_audit/finding_examples.json"} <= {*names}
    architecture = (ROOT / "ARCHITECTURE.md").read_text()
    assert "### Why six names in the wheel" in architecture


def test_the_packages_of_the_wheel_are_those_of_the_project() -> None:
    """The quick form of the test above: what setuptools is asked to find."""
    import tomllib
    from fnmatch import fnmatch

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["packages"]["find"]["include"]
    folders = {file.parent.name for file in ROOT.glob("*/__init__.py")}
    assert "compose" in folders
    found = {name for name in folders if any(fnmatch(name, each) for each in patterns)}
    assert found == PACKAGES
    assert EXAMPLES_FILE.name in project["tool"]["setuptools"]["package-data"]["gtid_audit"]


@pytest.mark.slow
def test_an_empty_environment_audits_a_pair(installed: Path, pair97: Pair) -> None:
    done = run(installed / "gtid-audit", "pair", pair97.a.dsn, pair97.b.dsn, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["verdict"] == "OK"
    code = "import gtid_audit.api as api, sys; print(api.audit(*sys.argv[1:]).verdict.value)"
    done = run(installed / "python", "-c", code, pair97.a.dsn, pair97.b.dsn)
    assert (done.stdout, done.stderr) == ("OK\n", "")
    assert run(installed / "python", "-c", "import compose").returncode == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("binlog", "scan", "{log}"), "columns"),
        (("audit", "--snapshots", "/nowhere"), "columns"),
        (("snapshot", "--fleet", "{fleet}", "--out", "/nowhere"), "columns"),
        (("audit", "--fleet", "{fleet}", "--out", "/nowhere"), "spark"),
    ],
)
def test_a_message_names_the_smallest_extra(
    words: tuple[str, ...], extra: str, installed: Path, mysql97: Server, tmp_path: Path
) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(
        "defaults: {user: root}\nclusters: [{name: c, servers:"
        f" [{{name: s, host: 127.0.0.1, port: {mysql97.port}}}]}}]\n"
    )
    log = mysql97.value("@@log_bin_index")
    done = run(installed / "gtid-audit", *(word.format(log=log, fleet=fleet) for word in words))
    assert done.returncode == 64
    assert done.stderr.rstrip().endswith(f"pip install 'gtid-audit[{extra}]'"), done.stderr
    assert done.stdout == ""


@pytest.mark.slow
@pytest.mark.parametrize("which", ["wheel", "source"])
def test_uv_installs_it_as_a_tool(
    which: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = request.getfixturevalue(which)
    tools = {"UV_TOOL_DIR": str(tmp_path / "tools"), "UV_TOOL_BIN_DIR": str(tmp_path / "bin")}
    uv("tool", "install", "--python", sys.executable, place, cwd=tmp_path, **tools)
    done = run(
        tmp_path / "bin/gtid-audit", "sets", "count", "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    )
    assert (done.returncode, done.stdout) == (0, "5\n")
    done = run(tmp_path / "bin/gtid-audit", "explain", "H1", "--json")
    assert json.loads(done.stdout)["example"]["set"] == "A:41-43", "its file is in the package"
