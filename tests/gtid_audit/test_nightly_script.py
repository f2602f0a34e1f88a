"""The script of docs/nightly.md does what the page says, in a shell."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "nightly.md"

# Stands for gtid-audit: writes down how it was called, and ends as the test says.
STAND_IN = """#!/bin/sh
echo "$@" >> "{told}"
echo '{{}}'
case "$1" in
    snapshot) exit {snapshot} ;;
    audit) exit {audit} ;;
esac
exit 99
"""


def nightly(folder: Path, *, snapshot: int, audit: int) -> tuple[int, list[str], str]:
    """Run the page's script with a stand-in for gtid-audit."""
    (script,) = re.findall(r"```bash\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for place, here in (
        ("/etc/gtid/fleet.yaml", "fleet.yaml"),
        ("/srv/gtid", "store"),
        ("/var/log/gtid", "log"),
    ):
        assert place in script
        script = script.replace(place, str(folder / here))
    (folder / "log").mkdir()
    (folder / "bin").mkdir()
    (folder / "nightly").write_text(script)
    program = folder / "bin" / "gtid-audit"
    program.write_text(STAND_IN.format(told=folder / "told", snapshot=snapshot, audit=audit))
    program.chmod(0o755)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", str(folder / "nightly")],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    told = (folder / "told").read_text().splitlines()
    return ran.returncode, [line.split()[0] for line in told], ran.stderr


@pytest.mark.parametrize("snapshot", [0, 3])
@pytest.mark.parametrize("audit", [0, 1, 2, 3, 64, 70])
def test_a_snapshot_is_audited_and_the_status_is_that_of_the_audit(
    tmp_path: Path, snapshot: int, audit: int
) -> None:
    status, called, said = nightly(tmp_path, snapshot=snapshot, audit=audit)
    assert (status, called) == (audit, ["snapshot", "audit"])
    assert ("the audit is not OK" in said) is (audit != 0)


@pytest.mark.parametrize("snapshot", [1, 64, 70, 130])
def test_a_snapshot_that_fails_ends_the_night_and_nothing_older_is_audited(
    tmp_path: Path, snapshot: int
) -> None:
    status, called, said = nightly(tmp_path, snapshot=snapshot, audit=0)
    assert (status, called) == (snapshot, ["snapshot"])
    assert "no snapshot was taken" in said


@pytest.mark.long
def test_the_options_of_the_script_are_options_of_the_program(tmp_path: Path) -> None:
    nightly(tmp_path, snapshot=0, audit=0)
    program = Path(sys.executable).parent / "gtid-audit"
    for line in (tmp_path / "told").read_text().splitlines():
        words = line.split()
        ran = subprocess.run(
            [program, *words], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        # There is no fleet file and no run here: that is all it complains of.
        assert ran.returncode == 64
        assert re.search(r"fleet.yaml: No such file|no stored snapshots", ran.stderr), ran.stderr
