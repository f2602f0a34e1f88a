"""A Spark session on this machine: quiet, on loopback only, and removed afterwards.

1. It needs Java, and reports a missing Java before Spark fails with a less clear error.
2. The output of the JVM goes to a log file of the session, not to the terminal. If the start fails,
   the error shows the end of that file.
3. It stops what it started, including the JVM. A session that existed before keeps running.
4. It changes the environment of this process while the session exists, because Spark finds its
   Python and its addresses there. Afterwards it restores the environment.
"""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_audit.adapters.java import JavaMissing, class_archive, require_java

__all__ = ["JavaMissing", "SparkNotStarted", "local_session"]

_LOOPBACK: Final = "127.0.0.1"
_STOP_SECONDS_MAX: Final = 30
_ARCHIVE_SECONDS_MAX: Final = 300  # the JVM writes the archive when it stops
_LOG_TAIL_CHARS: Final = 2_000

# Variables that would lead Spark to another installation, Python or address.
_ENVIRONMENT: Final[Mapping[str, str | None]] = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": _LOOPBACK,
    "SPARK_HOME": None,
    "SPARK_CONF_DIR": None,
    "SPARK_REMOTE": None,
    "PYSPARK_SUBMIT_ARGS": None,
    "PYSPARK_GATEWAY_PORT": None,
    # Each batch needs the same memory. Returning it to the kernel, and faulting it in again, takes
    # a tenth of the workers' time.
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 30),
}

_CONFIGURATION: Final[Mapping[str, str]] = {
    "spark.app.name": "gtid-audit",
    "spark.driver.bindAddress": _LOOPBACK,
    "spark.driver.host": _LOOPBACK,
    "spark.log.level": "ERROR",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


# The JVM only moves Arrow batches; the expensive work runs in Python. Without the optimising
# compiler and a collector for large heaps, the JVM starts with half the processor time.
_JVM_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


class _Gateway(Protocol):
    """The parts of PySpark's gateway to a JVM that this module uses."""

    proc: subprocess.Popen[bytes]

    def shutdown(self) -> None: ...


class SparkNotStarted(Exception):
    """Java exists, but Spark did not start. Has the end of its output."""


@contextmanager
def local_session(
    *, cores: int | None = None, archive_to: Path | None = None
) -> Iterator[SparkSession]:
    """Provide a session on `cores` cores of this machine (default: all), and stop it afterwards.

    If this process has a session already, provide that one and leave it running. With `archive_to`
    the JVM writes its loaded classes to an archive when it stops (spark_audit/adapters/archive.py).
    Raises JavaMissing and SparkNotStarted.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    archive = class_archive(require_java(os.environ), os.environ)
    if archive_to is not None:
        sharing = [f'"-XX:ArchiveClassesAtExit={archive_to}"']
    else:
        sharing = [f'"-XX:SharedArchiveFile={archive}"'] if archive.exists() else []
    with (
        TemporaryDirectory(prefix="gtid-audit-spark-") as scratch,
        _changed_environment(_ENVIRONMENT),
        _started(
            _configuration(Path(scratch), cores or os.cpu_count() or 1, [*_JVM_OPTIONS, *sharing]),
            log=Path(scratch) / "spark.log",
            stop_seconds_max=_STOP_SECONDS_MAX if archive_to is None else _ARCHIVE_SECONDS_MAX,
        ) as session,
    ):
        yield session


def _configuration(scratch: Path, cores: int, jvm_options: Iterable[str]) -> SparkConf:
    configuration = SparkConf(loadDefaults=False).setMaster(f"local[{cores}]")
    for name, value in _CONFIGURATION.items():
        configuration.set(name, value)
    configuration.set("spark.driver.extraJavaOptions", " ".join(jvm_options))
    configuration.set("spark.local.dir", str(scratch))
    configuration.set("spark.sql.shuffle.partitions", str(cores))
    configuration.set("spark.sql.warehouse.dir", str(scratch / "warehouse"))
    return configuration


@contextmanager
def _started(
    configuration: SparkConf, *, log: Path, stop_seconds_max: float
) -> Iterator[SparkSession]:
    gateway: _Gateway | None = None
    try:
        if SparkContext._gateway is None:  # noqa: SLF001  (this process has no JVM yet)
            with log.open("wb") as output:
                gateway = launch_gateway(  # type: ignore[no-untyped-call]
                    configuration, popen_kwargs={"stdout": output, "stderr": output}
                )
        context = SparkContext(conf=configuration, gateway=gateway)
    except (PySparkException, Py4JError) as error:
        _end_jvm(gateway, stop_seconds_max)
        printed = log.read_text(errors="replace")[-_LOG_TAIL_CHARS:] if log.exists() else ""
        raise SparkNotStarted(f"Spark did not start: {error}\n{printed}".rstrip()) from error
    session = SparkSession(context)
    try:
        yield session
    finally:
        session.stop()
        _end_jvm(gateway, stop_seconds_max)


def _end_jvm(gateway: _Gateway | None, stop_seconds_max: float) -> None:
    """End the JVM that we started, and wait for its exit. PySpark would leave it running."""
    if gateway is None:
        return
    gateway.shutdown()
    process = gateway.proc
    if process.stdin is not None:
        process.stdin.close()  # the gateway server exits when its parent's pipe closes
    try:
        process.wait(stop_seconds_max)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    SparkContext._gateway = None  # noqa: SLF001  (or the next session would use the stopped JVM)
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
