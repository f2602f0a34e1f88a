"""A Spark session on this machine: quiet, on loopback only, and gone afterwards.

1. It needs Java and says so before Spark can say it worse.
2. What the JVM prints goes to a file of the session, not to the terminal; its end is shown if the
   start fails.
3. What it started it stops, the JVM included; a session that was there before stays.
4. The environment of this process is changed while the session lives, because Spark looks there
   for its Python and its addresses, and is put back after it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

JAVA_MAJOR_MIN: Final = 17  # Spark 4 runs on Java 17 and newer
_JAVA_ADVICE: Final = "on Debian or Ubuntu: apt-get install openjdk-17-jre-headless"
_JAVA_VERSION = re.compile(r'version "(?P<major>\d+)(?:\.(?P<minor>\d+))?')
_LOOPBACK: Final = "127.0.0.1"
_STOP_SECONDS_MAX: Final = 30
_LOG_TAIL_CHARS: Final = 2_000

# What would lead Spark to another installation, another Python or another address than ours.
_ENVIRONMENT: Final[Mapping[str, str | None]] = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": _LOOPBACK,
    "SPARK_HOME": None,
    "SPARK_CONF_DIR": None,
    "SPARK_REMOTE": None,
    "PYSPARK_SUBMIT_ARGS": None,
    "PYSPARK_GATEWAY_PORT": None,
}

_CONFIGURATION: Final[Mapping[str, str]] = {
    "spark.app.name": "gtid-audit",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class _Gateway(Protocol):
    """What we need to know of the way PySpark talks to a JVM."""

    proc: subprocess.Popen[bytes]

    def shutdown(self) -> None: ...


class JavaMissing(Exception):
    """No Java, or one too old for Spark."""


class SparkNotStarted(Exception):
    """Java is there, and Spark did not start: with what it printed."""


def require_java(environment: Mapping[str, str]) -> Path:
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
        raise JavaMissing(f"{needed}, and there is none in {where}; {_JAVA_ADVICE}")
    answer = subprocess.run(  # noqa: S603
        [found, "-version"], capture_output=True, text=True, check=False
    )
    version = _JAVA_VERSION.search(answer.stderr)
    if answer.returncode != 0 or version is None:
        raise JavaMissing(f"{needed}, and {found} does not tell its version; {_JAVA_ADVICE}")
    # Java 8 calls itself 1.8.
    major = int(version["minor"] or 0) if version["major"] == "1" else int(version["major"])
    if major < JAVA_MAJOR_MIN:
        raise JavaMissing(f"{needed}, and {found} is Java {major}; {_JAVA_ADVICE}")
    return Path(found)


@contextmanager
def local_session(*, cores: int | None = None) -> Iterator[SparkSession]:
    """Give a session on `cores` cores of this machine (default: all), and stop it afterwards.

    If this process has a session already, give that one and leave it running. Raises JavaMissing
    and SparkNotStarted.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    require_java(os.environ)
    with (
        TemporaryDirectory(prefix="gtid-audit-spark-") as scratch,
        _changed_environment(_ENVIRONMENT),
        _started(Path(scratch), cores=cores or os.cpu_count() or 1) as session,
    ):
        yield session


@contextmanager
def _started(scratch: Path, *, cores: int) -> Iterator[SparkSession]:
    configuration = SparkConf(loadDefaults=False).setMaster(f"local[{cores}]")
    for name, value in _CONFIGURATION.items():
        configuration.set(name, value)
    configuration.set("spark.local.dir", str(scratch))
    configuration.set("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    configuration.set("spark.sql.shuffle.partitions", str(cores))
    log = scratch / "spark.log"
    gateway: _Gateway | None = None
    try:
        if SparkContext._gateway is None:  # noqa: SLF001  (nobody's JVM is there to be used)
            with log.open("wb") as output:
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    configuration, popen_kwargs={"stdout": output, "stderr": output}
                )
        context = SparkContext(conf=configuration, gateway=gateway)
    except (PySparkException, Py4JError) as error:
        _end_jvm(gateway)
        printed = log.read_text(errors="replace")[-_LOG_TAIL_CHARS:] if log.exists() else ""
        raise SparkNotStarted(f"Spark did not start: {error}\n{printed}".rstrip()) from error
    try:
        yield SparkSession(context)
    finally:
        context.stop()
        _end_jvm(gateway)


def _end_jvm(gateway: _Gateway | None) -> None:
    """End the JVM we started and wait until it is gone; PySpark itself would leave it running."""
    if gateway is None:
        return
    gateway.shutdown()
    process = gateway.proc
    if process.stdin is not None:
        process.stdin.close()  # the gateway server takes this for its parent's death
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = None  # noqa: SLF001  (or the next session would talk to the dead)
    SparkContext._jvm = None  # noqa: SLF001


@contextmanager
def _changed_environment(changes: Mapping[str, str | None]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in changes}
    _set_environment(changes)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
