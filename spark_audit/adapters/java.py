"""Finds the Java for Spark, and the location of its class archive.

This module neither imports PySpark nor starts Spark.
"""

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

JAVA_MAJOR_MIN: Final = 17  # Spark 4 runs on Java 17 and newer
_ADVICE: Final = (
    "on Debian or Ubuntu: apt-get satisfy 'openjdk-17-jre-headless | openjdk-21-jre-headless'"
)
_VERSION = re.compile(r'version "(?P<major>\d+)(?:\.(?P<minor>\d+))?')
_ANSWER_SECONDS_MAX: Final = 30


class JavaMissing(Exception):
    """There is no Java, or it is too old for Spark."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on."""

    program: Path
    version_text: str  # the whole output of `java -version`


def require_java(environment: Mapping[str, str]) -> Java:
    """Return the Java that Spark will use: that of JAVA_HOME, or the first in PATH.

    Raises JavaMissing.
    """
    home = environment.get("JAVA_HOME")
    if home:
        found = shutil.which(str(Path(home) / "bin" / "java"))
        where = f"JAVA_HOME={home}"
    else:
        found = shutil.which("java", path=environment.get("PATH", ""))
        where = "PATH"
    needed = f"Spark needs Java {JAVA_MAJOR_MIN} or newer"
    if found is None:
        raise JavaMissing(f"{needed}, but there is none in {where}; {_ADVICE}")
    answer = subprocess.run(  # noqa: S603 - the Java that was found
        [found, "-version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=_ANSWER_SECONDS_MAX,
    )
    said = _VERSION.search(answer.stderr)
    if answer.returncode != 0 or said is None:
        raise JavaMissing(f"{needed}, but {found} does not report its version; {_ADVICE}")
    # Java 8 reports its version as 1.8.
    major = int(said["minor"] or 0) if said["major"] == "1" else int(said["major"])
    if major < JAVA_MAJOR_MIN:
        raise JavaMissing(f"{needed}, but {found} is Java {major}; {_ADVICE}")
    return Java(Path(found), answer.stderr)


def class_archive(java: Java, environment: Mapping[str, str]) -> Path:
    """Return the path of the class archive for this Java and this Spark; it may not exist.

    It is under GTID_AUDIT_CACHE, or in the user's cache directory. The JVM checks whether an
    archive fits, and ignores one that does not.
    """
    named = environment.get("GTID_AUDIT_CACHE")
    users = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(named) if named else Path(users) / "gtid-audit"
    spark = find_spec("pyspark")
    assert spark is not None, "the caller has PySpark"
    key = "\0".join((java.version_text, version("pyspark"), str(spark.origin)))
    digest = hashlib.sha256(key.encode()).hexdigest()[:16]
    return root.resolve() / f"spark-{version('pyspark')}-{digest}.jsa"
