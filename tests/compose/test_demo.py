"""`make demo`, as a new user runs it: three broken pairs, found, repaired, and found well."""

import subprocess
import sys

import pytest


@pytest.mark.mysql
@pytest.mark.spark
@pytest.mark.timeout(900)  # a minute on two quiet cores
@pytest.mark.usefixtures("installation97", "installation56", "mysql_clients")
@pytest.mark.parametrize(
    "options",
    [
        ("--pause", "0.05"),
        pytest.param((), marks=pytest.mark.slow),  # full load: 100 s of processor time
    ],
)
def test_the_demonstration_finds_repairs_and_finds_nothing_more(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "compose.demo", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4_000:] + done.stderr
    assert "FAILED" not in done.stdout
    for code in ("H1", "E1", "A1"):
        assert code in done.stdout
