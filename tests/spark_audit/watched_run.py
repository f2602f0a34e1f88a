"""Reads a pair with `mysql_snapshot` in a Spark that shows all it can, and looks where a text shows.

Run as a process of its own: python watched_run.py SCRATCH MASTER FLEET WRONG. The passwords are in
the environment. It writes to SCRATCH, for the test to search: `before/` all that was seen while and
after servers were read; `after/` the same once the password had been planted in each of the places,
to show that a search there would find it. The event log and standard error are in order of time and
hold MARK between the two.
"""

import json
import os
import re
import shutil
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from html import unescape
from io import StringIO
from pathlib import Path
from typing import Self
from urllib.parse import quote, urljoin, urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_audit.adapters.sources import register_sources
from tests.spark_audit.cluster import JAVA_OPTIONS

MARK = "from-here-on-the-password-is-planted"
PAGES_MAX = 400
EXPLAIN_MODES = ("simple", "extended", "codegen", "cost", "formatted")
_SAME_AGAIN = re.compile(r"/static/|/kill|\.(?:sort|desc|page)")  # pictures, orders of one table
_LINK = re.compile(r"""(?:href|src)=["']([^"'#]+)""")


def session_in(scratch: Path, master: str) -> SparkSession:
    for name in ("local", "events"):
        (scratch / name).mkdir()
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{scratch / 'events'}",
        "spark.eventLog.compress": "false",
        "spark.eventLog.logStageExecutorMetrics": "true",
        "spark.ui.enabled": "true",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        # What is written to disk must be readable for whoever searches it.
        "spark.broadcast.compress": "false",
        "spark.rdd.compress": "false",
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    }
    builder = SparkSession.builder.master(master).appName("watched")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def fetched(address: str) -> bytes:
    """Return a page, of whatever status: an error page shows things too."""
    try:
        with urllib.request.urlopen(address, timeout=60) as answer:
            body: bytes = answer.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    return body


def pages_of(base: str) -> Iterator[tuple[str, bytes]]:
    """Yield every page that can be reached by links from the front page."""
    queued, seen = [f"{base}/jobs/", f"{base}/SQL/"], set[str]()
    queued.append(f"{base}/executors/threadDump/?executorId=driver")
    while queued and len(seen) < PAGES_MAX:
        address = queued.pop(0)
        if address in seen:
            continue
        seen.add(address)
        body = fetched(address)
        yield address, body
        for link in _LINK.findall(body.decode(errors="replace")):
            found = urljoin(address, unescape(link))
            if urlsplit(found).netloc == urlsplit(base).netloc and not _SAME_AGAIN.search(found):
                queued.append(quote(found, safe=":/?&=%+"))


def answers_of(base: str, application: str) -> Iterator[tuple[str, bytes]]:
    """Yield everything the REST interface says of this application."""
    root = f"{base}/api/v1/applications"
    yield root, fetched(root)
    for path in (
        "jobs", "stages?details=true&withSummaries=true", "executors", "allexecutors",
        "allmiscellaneousprocess", "environment", "storage/rdd", "executors/driver/threads", "logs",
        "sql?details=true&planDescription=true&length=1000",
    ):  # fmt: skip
        address = f"{root}/{application}/{path}"
        yield address, fetched(address)
    for stage in json.loads(fetched(f"{root}/{application}/stages")):
        address = f"{root}/{application}/stages/{stage['stageId']}/{stage['attemptId']}"
        yield address, fetched(address)
        yield f"{address}/taskList", fetched(f"{address}/taskList?length=1000")


def keep(pages: Iterator[tuple[str, bytes]], directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for number, (address, body) in enumerate(pages):
        (directory / f"{number:04}").write_bytes(address.encode() + b"\n" + body)


def keep_files(directory: Path, kept: Path) -> None:
    """Copy what is in a directory tree now. What goes away meanwhile was copied before, or not."""
    for path in directory.rglob("*"):
        copy = kept / path.relative_to(directory)
        with suppress(OSError):
            if path.is_file() and (not copy.exists() or copy.stat().st_size < path.stat().st_size):
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, copy)


class Watcher:
    """Copies the local directory again and again while something runs, and the pages at its end.

    With `looks_meanwhile` it copies the pages once before that, as soon as there are files.
    """

    def __init__(
        self, session: SparkSession, scratch: Path, kept: Path, *, looks_meanwhile: bool
    ) -> None:
        self._local, self._kept = scratch / "local", kept
        self._work = scratch / "spark" / "work"  # what executors of their own processes write
        base, application = session.sparkContext.uiWebUrl, session.sparkContext.applicationId
        assert base is not None, "the user interface is on"
        self._base, self._application = base, application
        self._looks_meanwhile = looks_meanwhile
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self.rounds = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._is_over.set()
        self._thread.join()
        self.look()

    def look(self) -> None:
        keep(pages_of(self._base), self._kept / "pages" / str(self.rounds))
        keep(answers_of(self._base, self._application), self._kept / "rest" / str(self.rounds))
        keep_files(self._local, self._kept / "local")
        keep_files(self._work, self._kept / "work")
        self.rounds += 1

    def _watch(self) -> None:
        while not self._is_over.wait(0.02):
            keep_files(self._local, self._kept / "local")
            is_due = self._looks_meanwhile and self.rounds == 0
            if is_due and list((self._kept / "local").rglob("*")):
                self.look()


def explained(frame: DataFrame) -> str:
    said = StringIO()
    with redirect_stdout(said):
        for mode in EXPLAIN_MODES:
            frame.explain(mode=mode)
    return said.getvalue()


def error_of(action: Callable[[], object]) -> str:
    try:
        action()
    except PySparkException as error:
        return f"{error!r}\n{error}\n{error.getMessageParameters()}\n"
    raise AssertionError("it was meant to fail")


def load(session: SparkSession, fleet: str, **options: str) -> DataFrame:
    return session.read.format("mysql_snapshot").option("fleet", fleet).options(**options).load()


def read_everything(session: SparkSession, scratch: Path, fleet: str, wrong: str) -> None:
    """Read in every way there is: shipped accounts, the executors' own, wrong ones; and fail."""
    kept = scratch / "before"
    shipped, own = load(session, fleet), load(session, fleet, credentials="executor")
    refused = load(session, wrong)
    rows = {}
    for name, frame in {"shipped": shipped, "own": own, "refused": refused}.items():
        grouped = frame.groupBy("cluster").agg(sf.collect_list(sf.struct("*")).alias("rows"))
        grouped.write.json(str(scratch / "rows" / name))  # with a shuffle, so that files appear
        written = session.read.text(str(scratch / "rows" / name)).collect()
        rows[name] = [row for line in written for row in json.loads(line["value"])["rows"]]
    (kept / "explain").write_text(explained(shipped) + explained(own) + explained(refused))
    failing = shipped.select(sf.raise_error(sf.col("cluster")))
    (kept / "errors").write_text(
        error_of(failing.collect)
        + error_of(lambda: load(session, fleet, partitions="none"))
        + error_of(lambda: load(session, str(scratch / "nowhere.yaml")))
    )
    (scratch / "rows.json").write_text(json.dumps(rows))


def plant(session: SparkSession, scratch: Path, password: str) -> None:
    """Put the password where it must not be, in each of the places."""
    kept, context = scratch / "after", session.sparkContext
    context.setJobDescription(password)
    planted = session.range(1).select(sf.lit(password).alias("planted"))
    planted.collect()
    (kept / "explain").write_text(explained(planted))
    (kept / "errors").write_text(
        error_of(planted.select(sf.raise_error(sf.col("planted"))).collect)
    )
    broadcast = context.broadcast(password)
    assert context.parallelize([1], 1).map(lambda _one: len(broadcast.value)).collect()
    sys.stderr.write(f"{password}\n")


def main(scratch: Path, master: str, fleet: str, wrong: str) -> None:
    for name in ("before", "after"):
        (scratch / name).mkdir()
    session = session_in(scratch, master)
    session.sparkContext.setLogLevel("DEBUG")
    register_sources(session)
    with Watcher(session, scratch, scratch / "before", looks_meanwhile=True) as before:
        read_everything(session, scratch, fleet, wrong)
    session.sparkContext.setJobDescription(MARK)
    session.range(1).count()
    sys.stderr.write(f"{MARK}\n")
    with Watcher(session, scratch, scratch / "after", looks_meanwhile=False):
        plant(session, scratch, os.environ["FLEET_PASSWORD"])
    session.stop()
    (scratch / "rounds").write_text(str(before.rounds))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
