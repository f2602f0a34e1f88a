"""requirements/setup.sh on a machine that has almost nothing: all that is missing, in one command.

The programs of the machine are scripts of the test, so that any of them can be absent.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "requirements/setup.sh"
TOOLS = ("bash", "sed", "head", "grep", "dirname", "mkdir", "touch")  # of every Debian
# `python3 -c` succeeds unless a word of MISSING is in its name and program, where spaces are `_`.
# `python3 -m venv` leaves a mark.
PYTHON = """\
#!/bin/bash
if [ "$1" = -c ]; then
    for word in $MISSING; do [[ "${0##*/}_${2// /_}" != *"$word"* ]] || exit 1; done
    exit 0
fi
mkdir -p .venv/bin
touch .venv/made
"""
LDCONFIG = """\
#!/bin/bash
printf 'libstdc++.so.6 (libc6,x86-64) => /lib/x86_64-linux-gnu/libstdc++.so.6\\n'
"""
JAVA = """\
#!/bin/bash
printf 'openjdk version "%s" 2025-01-01\\n' "$RELEASE" >&2
"""
STUBS = {"python3": PYTHON, "java": JAVA, "npm": "#!/bin/bash\n", "ldconfig": LDCONFIG}


# What the suites have, of the packages that can be named, and Java and Python of other versions.
# Debian's were read from its lists; Ubuntu's were not reached.
JAVAS = ("openjdk-11-jre-headless 11", "openjdk-17-jre-headless 17", "openjdk-21-jre-headless 21")
SUITES = {
    "Debian 12": ("python3-venv 3.11.2-1+b1", "python3.11-venv 3.11.2-6", JAVAS[1]),
    "Debian 13": ("python3-venv 3.13.5-1", "python3.13-venv 3.13.5-2", JAVAS[2]),
    "Ubuntu 22.04": ("python3-venv 3.10.6-1~22.04", "python3.11-venv 3.11.0~rc1-1", *JAVAS),
    "Ubuntu 24.04": ("python3-venv 3.12.3-0ubuntu2", "python3.12-venv 3.12.3-1", *JAVAS),
}


def setup(
    folder: Path,
    *absent: str,
    missing: str = "",
    release: str = "17.0.1",
    stubs: dict[str, str] = STUBS,
) -> tuple[str, str]:
    """Run the script where these programs are absent; return its first and its last lines."""
    (folder / "requirements").mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "requirements")
    programs = folder / "bin"
    programs.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found is not None
        (programs / tool).symlink_to(found)
    for name, text in stubs.items():
        if name not in absent:
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
    done = subprocess.run(
        ["bash", "requirements/setup.sh", "create"],
        cwd=folder,
        env={"PATH": str(programs), "MISSING": missing, "RELEASE": release},
        capture_output=True,
        text=True,
        check=False,
    )
    is_made = (folder / ".venv/made").exists()
    assert (done.returncode == 0) == is_made, done.stderr
    *reasons, command = done.stderr.splitlines() or [""]
    return "\n".join(reasons), command


def test_nothing_is_missing(tmp_path: Path) -> None:
    assert setup(tmp_path) == ("", "")


def test_all_that_a_minimal_debian_misses_is_in_one_command(tmp_path: Path) -> None:
    reasons, command = setup(tmp_path, "java", "npm", missing="ensurepip")
    assert reasons.splitlines() == [
        "missing: Python's venv module",
        "missing: Java 17 or newer, for Spark",
        "missing: npm, for MySQL 5.6",
    ]
    assert command == (
        "try: apt-get satisfy --yes --no-install-recommends"
        " 'python3-venv, openjdk-17-jre-headless | openjdk-21-jre-headless, npm'"
    )


@pytest.mark.parametrize(
    ("missing", "release", "package"),
    [
        ("version_info", "17.0.1", "python3-venv (>= 3.11) | python3.11-venv"),
        ("", "11.0.2", "openjdk-17-jre-headless | openjdk-21-jre-headless"),
        ("", "1.8.0_392", "openjdk-17-jre-headless | openjdk-21-jre-headless"),
    ],
)
def test_what_is_too_old_is_missing(
    tmp_path: Path, missing: str, release: str, package: str
) -> None:
    _, command = setup(tmp_path, missing=missing, release=release)
    assert command.endswith(f"--no-install-recommends '{package}'")


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_newer_python_beside_python3_is_used(tmp_path: Path, is_complete: bool) -> None:
    """Ubuntu 22.04: python3 is 3.10, and python3.11 another package."""
    missing = "python3_import_sys" if is_complete else "python3_import_sys ensurepip"
    stubs = {**STUBS, "python3.11": PYTHON}
    reasons, command = setup(tmp_path, missing=missing, stubs=stubs)
    if is_complete:
        assert (reasons, command) == ("", "")
    else:
        assert reasons == "missing: Python's venv module"
        assert command.endswith("'python3.11-venv | python3-venv'")


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="this machine has no apt-get")
@pytest.mark.parametrize("suite", SUITES)
def test_apt_finds_every_package_of_the_command(tmp_path: Path, suite: str) -> None:
    """apt itself chooses among the alternatives, from a repository with what the suite has."""
    (tmp_path / "machine").mkdir()
    _, command = setup(
        tmp_path / "machine", "python3", "java", "npm", missing="version_info", release="1"
    )
    packages = [*SUITES[suite], "npm 9", "libstdc++6 12"]
    (tmp_path / "Packages").write_text(
        "\n".join(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: none\n"
            f"Filename: ./{name}.deb\nSize: 1\nMD5sum: {0:032}\nDescription: none\n"
            for name, version in map(str.split, packages)
        )
    )
    for folder in ("state/lists/partial", "cache/archives/partial", "sources"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "sources/here.list").write_text(f"deb [trusted=yes] file:{tmp_path} ./\n")
    (tmp_path / "apt.conf").write_text(
        f'#clear APT::Update;\n#clear APT::Default-Release;\nDir::State "{tmp_path}/state";\n'
        f'Dir::State::status "/dev/null";\nDir::Cache "{tmp_path}/cache";\n'
        f'Dir::Etc::sourcelist "/dev/null";\nDir::Etc::sourceparts "{tmp_path}/sources";\n'
        'Dir::Etc::preferencesparts "/dev/null";\nAPT::Sandbox::User "root";\n'
    )
    words = shlex.split(command.removeprefix("try: "))
    apt = [words[0], "--config-file", str(tmp_path / "apt.conf")]
    subprocess.run([*apt, "update"], check=True, capture_output=True)
    done = subprocess.run(
        [*apt, "--simulate", *words[1:]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = dict(re.findall(r"^Inst (\S+) \(([^ )]+)", done.stdout, re.MULTILINE))
    [python] = [version for name, version in found.items() if name.endswith("-venv")]
    assert tuple(map(int, python.split(".")[:2])) >= (3, 11)
    [java] = [int(version) for name, version in found.items() if name.endswith("-headless")]
    assert java >= 17
    assert "npm" in found


@pytest.mark.skipif(not Path("/sbin/ldconfig").exists(), reason="this machine has no ldconfig")
def test_a_user_whose_path_has_no_sbin_is_not_asked_for_what_is_there(tmp_path: Path) -> None:
    """The machine has the library: it runs NumPy. Only a search in PATH would miss ldconfig."""
    assert setup(tmp_path, "ldconfig") == ("", "")
