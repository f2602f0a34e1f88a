"""A Spark standalone cluster on this machine, and a Python that knows nothing of this project."""

import os
import re
import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

OURS = ("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit", "compose")
START_SECONDS_MAX = 120
JOB_SECONDS_MAX = 280
STOP_SECONDS_MAX = 30
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
_MASTER_AT = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile(r"Successfully registered with master")


def spark_home() -> Path:
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def bare_python(folder: Path) -> Path:
    """Make a Python with all that is installed here, except this project."""
    venv.create(folder, symlinks=True, with_pip=False)
    ours = re.compile(rf"(?:{'|'.join(OURS)}|gtid_audit-.*|__editable__.*)")
    (there,) = folder.glob("lib/python*/site-packages")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not ours.fullmatch(entry.name) and entry.suffix != ".pth":
            (there / entry.name).symlink_to(entry)
    return folder / "bin" / "python"


def environment(**more: str) -> dict[str, str]:
    """Return what a Spark process is started with: nothing that leads to this project."""
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "PATH", "HOME") if name in os.environ}
    return kept | {"SPARK_HOME": str(spark_home()), "SPARK_LOCAL_IP": "127.0.0.1"} | more


@dataclass(frozen=True)
class Ran:
    """How a job ended."""

    status: int
    output: str
    log: str


@dataclass(frozen=True)
class Job:
    """A job that was started."""

    process: subprocess.Popen[bytes]
    output: Path
    log: Path

    def ended(self) -> Ran:
        """Wait for its end."""
        status = self.process.wait(JOB_SECONDS_MAX)
        return Ran(status, self.output.read_text(), self.log.read_text())


@dataclass(frozen=True)
class Cluster:
    """A master, workers, and the Python of their executors."""

    url: str
    python: Path
    scratch: Path
    workers: tuple[subprocess.Popen[bytes], ...]

    def executors(self) -> list[int]:
        """Return the processes of executors: children of our workers."""
        parents = {worker.pid for worker in self.workers}
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                command = (folder / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended meanwhile
            if parent in parents and b"CoarseGrainedExecutorBackend" in command:
                found.append(int(folder.name))
        return sorted(found)

    @contextmanager
    def job(
        self,
        program: Path,
        *arguments: str | Path,
        package: Path | str,
        archive: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Iterator["Job"]:
        """Run spark-submit in a folder where this project is not; end it if it is still there."""
        line = [str(spark_home() / "bin" / "spark-submit"), "--master", self.url]
        line += ["--py-files", str(package)]
        line += ["--archives", archive] if archive else []
        for name, value in (self._settings() | dict(settings or {})).items():
            line += ["--conf", f"{name}={value}"]
        line += [str(program), *map(str, arguments)]
        with TemporaryDirectory(prefix="job-", dir=self.scratch) as folder:
            output, log = Path(folder) / "output", Path(folder) / "log"
            with output.open("wb") as out, log.open("wb") as err:
                process = subprocess.Popen(
                    line, env=environment(), cwd=folder, stdout=out, stderr=err
                )
            with process:
                try:
                    yield Job(process, output, log)
                finally:
                    process.kill()  # nothing happens if it has ended

    def run(
        self,
        program: Path,
        *arguments: str | Path,
        package: Path | str,
        archive: str | None = None,
        settings: Mapping[str, str] | None = None,
    ) -> Ran:
        with self.job(
            program, *arguments, package=package, archive=archive, settings=settings
        ) as job:
            return job.ended()

    def _settings(self) -> dict[str, str]:
        local = self.scratch / "local"
        local.mkdir(exist_ok=True)
        return {
            "spark.pyspark.python": str(self.python),
            # No task before both executors are there.
            "spark.cores.max": "2",
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.extraJavaOptions": JAVA_OPTIONS,
            "spark.executor.extraJavaOptions": JAVA_OPTIONS,
            "spark.local.dir": str(local),
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.warehouse.dir": str(self.scratch / "warehouse"),
            "spark.sql.shuffle.partitions": "4",
        }


@contextmanager
def standalone(scratch: Path, *, python: Path, worker_count: int = 2) -> Iterator[Cluster]:
    """Start a master and workers on loopback, and end them and all they started."""
    scratch.mkdir()
    with ExitStack() as stack:
        log = scratch / "master.log"
        master = ["org.apache.spark.deploy.master.Master"]
        process = stack.enter_context(_daemon([*master, *_AT], log))
        url = _said(_MASTER_AT, log, process)
        workers = []
        for number in range(worker_count):
            log = scratch / f"worker-{number}.log"
            worker = ["org.apache.spark.deploy.worker.Worker", url, "--cores", "1"]
            worker += ["--memory", "1g", "--work-dir", str(scratch / f"work-{number}")]
            workers.append((stack.enter_context(_daemon([*worker, *_AT], log)), log))
        for process, log in workers:
            _said(_REGISTERED, log, process)
        yield Cluster(url, python, scratch, tuple(process for process, _ in workers))


_AT = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")


@contextmanager
def _daemon(arguments: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    settings = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}
    settings["SPARK_LOCAL_DIRS"] = str(log.parent)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(spark_home() / "bin" / "spark-class"), *arguments],
            env=environment(**settings),
            cwd=log.parent,
            stdout=output,
            stderr=output,
        )
    with process:
        try:
            yield process
        finally:
            process.terminate()  # a worker ends its executors first
            try:
                process.wait(STOP_SECONDS_MAX)
            except subprocess.TimeoutExpired:
                process.kill()


def _said(wanted: re.Pattern[str], log: Path, process: subprocess.Popen[bytes]) -> str:
    """Wait until a process has written what is wanted, and return its first group, or all of it."""
    until = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < until:
        found = wanted.search(log.read_text(errors="replace"))
        if found is not None:
            return found.group(wanted.groups)
        if process.poll() is not None:
            break
        time.sleep(0.05)
    raise AssertionError(f"Spark did not start:\n{log.read_text(errors='replace')[-4000:]}")
