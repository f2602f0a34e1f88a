"""Streams a server's transactions into Parquet, until it is killed, or told to stop.

Run as a process of its own: python streamed_run.py SCRATCH DSN TRANSACTIONS_MAX. The password is in the environment.
It makes SCRATCH/runs when the query runs, and ends when SCRATCH/stop is there and
everything that the server had then is in SCRATCH/out. What Spark writes down is in SCRATCH/events,
what it shows in SCRATCH/shown.
"""

import sys
import time
import urllib.request
from contextlib import redirect_stdout
from pathlib import Path

from pyspark.sql import SparkSession

from spark_audit.adapters.sources import register_sources

PAGES = ("jobs/", "stages/", "SQL/", "StreamingQuery/", "environment/", "executors/")


def session_in(scratch: Path) -> SparkSession:
    (scratch / "events").mkdir(exist_ok=True)
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch / "local"),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{scratch / 'events'}",
        "spark.eventLog.compress": "false",
        "spark.ui.port": "0",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2]").appName("streamed")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def shown_by(session: SparkSession) -> bytes:
    base = session.sparkContext.uiWebUrl
    assert base is not None, "the user interface is on"
    application = f"{base}/api/v1/applications/{session.sparkContext.applicationId}"
    addresses = [f"{base}/{page}" for page in PAGES]
    addresses += [f"{application}/{name}" for name in ("environment", "sql?details=true", "stages")]
    texts = []
    for address in addresses:
        with urllib.request.urlopen(address, timeout=60) as answer:
            texts.append(address.encode() + b"\n" + answer.read())
    return b"\n".join(texts)


def main(scratch: Path, dsn: str, transactions_max: str) -> None:
    session = session_in(scratch)
    register_sources(session)
    stream = (
        session.readStream.format("mysql_binlog")
        .options(server=dsn, transactions_max=transactions_max, columns="file,uuid,tag,gno")
        .load()
    )
    query = (
        stream.writeStream.format("parquet")
        .option("path", str(scratch / "out"))
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    (scratch / "runs").touch()
    while not (scratch / "stop").exists():
        assert query.isActive, query.exception()
        time.sleep(0.05)
    query.processAllAvailable()
    (scratch / "shown").write_bytes(shown_by(session))
    with (scratch / "plan").open("w") as file, redirect_stdout(file):
        query.explain(extended=True)
    query.stop()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
