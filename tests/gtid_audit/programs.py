"""Prometheus, promtool and Alertmanager for tests: provided, or the test is skipped by name."""

import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from compose.native.installation import ProviderMissing
from compose.native.monitoring_programs import MonitoringPrograms, provision_monitoring

SOON = 30.0


def programs_or_skip() -> MonitoringPrograms:
    try:
        return provision_monitoring()
    except ProviderMissing as missing:
        pytest.skip(f"provider missing: {missing}")


def output_of(programs: MonitoringPrograms, name: str, *arguments: str, cwd: Path) -> str:
    """Run a tool that must succeed; return what it printed."""
    done = subprocess.run(
        [*programs.command(name), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=SOON,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str], *, ready: str, log: Path) -> Iterator[None]:
    """Run a service until the block ends; it answers `ready` first."""
    with (
        log.open("w") as file,
        subprocess.Popen(command, stdout=file, stderr=file, cwd=log.parent) as process,
    ):
        try:
            deadline = time.monotonic() + SOON
            while not _answers(ready):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(SOON)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=SOON):
            return True
    except OSError:
        return False


def with_share_of(programs: MonitoringPrograms) -> list[str]:
    """Return the beginning of a command that sees the packages' own /usr/share, or skip.

    Debian's Alertmanager reads its templates from there, whatever its configuration is. The mount
    is of a namespace of its own: no other process sees it.
    """
    share = programs.folder.parent / "share"
    inside = ["unshare", "--user", "--map-root-user", "--mount"]
    inside += ["sh", "-c", 'mount --bind "$0" /usr/share && exec "$@"', str(share)]
    try:
        done = subprocess.run([*inside, "true"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("provider missing: unshare (apt-get install util-linux)")
    if done.returncode != 0:
        pytest.skip(f"provider missing: mount namespaces ({done.stderr.strip()})")
    return inside
