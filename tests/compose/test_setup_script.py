"""requirements/setup.sh on a machine that has almost nothing: all that is missing, in one command.

The programs of the machine are scripts of the test, so that any of them can be absent.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "requirements/setup.sh"
TOOLS = ("bash", "sed", "head", "grep", "dirname", "mkdir", "touch")  # of every Debian
# `python3 -c` succeeds unless a word of the program is in MISSING; `python3 -m venv` leaves a mark.
PYTHON = """\
#!/bin/bash
if [ "$1" = -c ]; then
    for word in $MISSING; do [[ "$2" != *"$word"* ]] || exit 1; done
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


def setup(
    folder: Path, *absent: str, missing: str = "", release: str = "17.0.1"
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
    for name, text in STUBS.items():
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
        "try: apt-get install --yes --no-install-recommends"
        " python3-venv openjdk-17-jre-headless npm"
    )


@pytest.mark.parametrize(
    ("missing", "release", "package"),
    [
        ("version_info", "17.0.1", "python3"),
        ("", "11.0.2", "openjdk-17-jre-headless"),
        ("", "1.8.0_392", "openjdk-17-jre-headless"),
    ],
)
def test_what_is_too_old_is_missing(
    tmp_path: Path, missing: str, release: str, package: str
) -> None:
    _, command = setup(tmp_path, missing=missing, release=release)
    assert command.endswith(f"--no-install-recommends {package}")


@pytest.mark.skipif(not Path("/sbin/ldconfig").exists(), reason="this machine has no ldconfig")
def test_a_user_whose_path_has_no_sbin_is_not_asked_for_what_is_there(tmp_path: Path) -> None:
    """The machine has the library: it runs NumPy. Only a search in PATH would miss ldconfig."""
    assert setup(tmp_path, "ldconfig") == ("", "")
