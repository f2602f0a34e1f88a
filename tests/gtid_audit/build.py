"""Three small clusters as they would be read, and a way to run the command line as a process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from gtid import GtidSet
from tests.documents import VERDICT_STATUS, check_printed
from tests.gtid_audit.warm_commands import run_warm
from tests.snapshots import A, B, a_channel, a_cluster, a_server, an_unread, commits_of
from topology.readings.snapshot import ClusterSnapshot

GTID_AUDIT = str(Path(sys.executable).parent / "gtid-audit")


def healthy(name: str = "pair") -> ClusterSnapshot:
    """A dual-primary pair that agrees."""
    both = f"{A}:1-100,{B}:1-50"
    return a_cluster(
        name,
        a_server("a", A, both, channels=(a_channel("b", B),)),
        a_server("b", B, both, channels=(a_channel("a", A),)),
    )


def holed(name: str = "pair") -> ClusterSnapshot:
    """b was pointed past a:51-53 by file position."""
    received = GtidSet.parse(f"{A}:54-100")
    by_position = a_channel("a", A, auto_position=False, gtid_retrieved=received)
    return a_cluster(
        name,
        a_server(
            "a",
            A,
            f"{A}:1-100",
            channels=(a_channel("b", B),),
            history_evidence=commits_of(f"{A}:1", f"{A}:51", f"{A}:53"),
        ),
        a_server("b", B, f"{A}:1-50:54-100", channels=(by_position,)),
    )


def half_read(name: str = "pair") -> ClusterSnapshot:
    """b did not answer."""
    a = a_server("a", A, f"{A}:1-100", channels=(a_channel("b", B),))
    return a_cluster(name, a, an_unread("b"))


def run_cli(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    stdin: str | bytes = "",
    seconds_max: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a command of `gtid-audit` in a process of its own that has imported it already."""
    done = run_warm(
        arguments,
        environment=_environment(environment or {}),
        stdin=stdin if isinstance(stdin, bytes) else stdin.encode(),
        seconds_max=seconds_max,
    )
    return _decoded(done, arguments)


def run_program(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    stdin: str | bytes = "",
    seconds_max: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run `gtid-audit` as a person does: another process, pipes for a terminal."""
    done = subprocess.run(
        [GTID_AUDIT, *arguments],
        input=stdin if isinstance(stdin, bytes) else stdin.encode(),
        capture_output=True,
        env=_environment(environment or {}),
        check=False,
        timeout=seconds_max,
    )
    return _decoded(done, arguments)


def _environment(changes: Mapping[str, str]) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GTID_AUDIT")}
    kept.pop("MYSQL_PWD", None)
    if "HOME" not in changes:
        kept["GTID_AUDIT_DEFAULTS_FILE"] = ""  # no test depends on the files of its user
    return {**kept, **changes}


def _decoded(
    done: "subprocess.CompletedProcess[bytes]", arguments: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    text = done.stdout.decode()
    if done.returncode in VERDICT_STATUS:
        check_printed(arguments, text)
    return subprocess.CompletedProcess(done.args, done.returncode, text, done.stderr.decode())
