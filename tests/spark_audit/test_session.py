"""Java: missing, too old or broken is said in one sentence, with the command that brings it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_audit.adapters.java import JavaMissing, class_archive, require_java

AUDIT = (
    "import sys\n"
    "from spark_audit.adapters.job import audit_stored\n"
    "from spark_audit.adapters.session import local_session\n"
    "from topology.policy import Policy\n"
    "with local_session() as session:\n"
    "    audit_stored(session, snapshots=sys.argv[1], out=sys.argv[1], policy=Policy())\n"
)
ADVICE = "apt-get satisfy 'openjdk-17-jre-headless | openjdk-21-jre-headless'"


def a_java(home: Path, says: str) -> Path:
    """Make a JAVA_HOME whose java answers `-version` as real ones do: on stderr."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'.'\n{says}\n.\n")
    java.chmod(0o755)
    return java


@pytest.mark.parametrize(
    "says",
    [
        'openjdk version "17.0.15" 2025-04-15',
        'openjdk version "25" 2025-09-16',
        'Picked up _JAVA_OPTIONS: -Xmx1g\nopenjdk version "21.0.2" 2024-01-16',
    ],
)
def test_a_java_that_is_new_enough_is_taken(tmp_path: Path, says: str) -> None:
    java = a_java(tmp_path, says)
    assert require_java({"JAVA_HOME": str(tmp_path), "PATH": ""}).program == java
    assert require_java({"PATH": str(java.parent)}).program == java


@pytest.mark.parametrize(
    ("says", "message"),
    [
        ('java version "1.8.0_392"', "is Java 8"),
        ('openjdk version "11.0.22" 2024-01-16', "is Java 11"),
        ("Error: could not find libjava.so", "does not report its version"),
    ],
)
def test_a_java_that_will_not_do_is_named(tmp_path: Path, says: str, message: str) -> None:
    java = a_java(tmp_path, says)
    with pytest.raises(JavaMissing) as missing:
        require_java({"JAVA_HOME": str(tmp_path)})
    assert message in str(missing.value)
    assert str(java) in str(missing.value)
    assert ADVICE in str(missing.value)


def test_a_wrong_java_home_is_not_excused_by_a_java_in_path(tmp_path: Path) -> None:
    java = a_java(tmp_path / "good", 'openjdk version "17.0.15"')
    with pytest.raises(JavaMissing, match=f"none in JAVA_HOME={tmp_path}/gone"):
        require_java({"JAVA_HOME": f"{tmp_path}/gone", "PATH": str(java.parent)})


@pytest.mark.long
def test_a_machine_without_java_is_told_what_to_install(stored: Path, tmp_path: Path) -> None:
    without_java = {
        name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "PATH"}
    }
    ran = subprocess.run(
        [sys.executable, "-c", AUDIT, str(stored)],
        capture_output=True,
        text=True,
        env=without_java | {"PATH": str(tmp_path)},
        check=False,
    )
    assert ran.returncode == 1
    last = ran.stderr.strip().splitlines()[-1]
    assert "JavaMissing: Spark needs Java 17 or newer, but there is none in PATH" in last
    assert last.endswith(ADVICE)


def test_an_archive_belongs_to_one_java(tmp_path: Path) -> None:
    a_java(tmp_path / "a", 'openjdk version "17.0.15" 2025-04-15')
    a_java(tmp_path / "b", 'openjdk version "21.0.2" 2024-01-16')
    homes = [{"JAVA_HOME": str(tmp_path / name)} for name in ("a", "b")]
    places = [{"GTID_AUDIT_CACHE": str(tmp_path / "here")}, {"XDG_CACHE_HOME": str(tmp_path)}]
    archives = {class_archive(require_java(home), place) for home in homes for place in places}
    assert len(archives) == 4
    assert {archive.parent for archive in archives} == {
        tmp_path / "here",
        tmp_path / "gtid-audit",
    }


@pytest.mark.long
def test_what_a_jvm_says_when_it_does_not_start_is_shown(tmp_path: Path, stored: Path) -> None:
    java = a_java(tmp_path / "java", 'openjdk version "17.0.15" 2025-04-15')
    java.write_text(java.read_text() + '[ "$1" = -version ] || { echo no room >&2; exit 7; }\n')
    ran = subprocess.run(
        [sys.executable, "-c", AUDIT, str(stored)],
        capture_output=True,
        text=True,
        env=dict(os.environ) | {"JAVA_HOME": str(java.parent.parent)},
        check=False,
    )
    assert ran.returncode == 1
    assert "SparkNotStarted: Spark did not start" in ran.stderr
    assert "no room" in ran.stderr
