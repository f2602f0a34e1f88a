"""No password in anything Spark shows, writes or says, looked for in all of it, and found if there."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

from compose.native.shapes import Pair
from tests.spark_audit import watched_run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PASSWORD = "Zx9-recognisable-4b1d7c-€uro"
WRONG = "Qy8-also-recognisable-77aa01"
SECONDS_MAX = 540


def forms_of(password: str) -> Iterator[bytes]:
    """Yield the password as it is, and as it looks in the usual disguises."""
    # Beyond Latin-1 every writer has an escape of its own; the part before is the same in all.
    text = password.encode("ascii", "ignore").decode().removesuffix("uro").rstrip("-")
    yield text.encode()
    yield text.encode("utf-16-le")
    yield text.encode().hex().encode()
    for shift in range(3):  # base64 depends on where in its three bytes a text begins
        yield base64.b64encode(b"x" * shift + text.encode())[4:-4]
    yield repr(list(text.encode()))[1:-1].encode()  # bytes as Java shows them
    yield repr(list(text.encode()))[1:-1].replace(" ", "").encode()


def found_in(place: Path | bytes, *passwords: str) -> list[str]:
    """Return what holds a password, in any form: names of files, first lines of texts."""
    forms = [form for password in passwords for form in forms_of(password)]
    if isinstance(place, bytes):
        return ["text" for form in forms if form in place]
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.is_file()]
    assert files, f"{place} is empty: the search would search nothing"
    return [
        f"{file.relative_to(place.parent)}: {file.read_bytes().splitlines()[:1]}"
        for file in files
        if any(form in file.read_bytes() for form in forms)
    ]


def fleet_file(path: Path, pair: Pair, variable: str) -> Path:
    servers = "\n".join(
        f"      - {{name: {name}, host: {server.host}, port: {server.port}}}"
        for name, server in pair.servers.items()
    )
    path.write_text(
        f"defaults: {{user: watched, password: {{env: {variable}}}}}\n"
        f"clusters:\n  - name: pair\n    servers:\n{servers}\n"
    )
    return path


def make_account(pair: Pair) -> None:
    pair.a.execute(
        f"CREATE USER watched@'%' IDENTIFIED BY '{PASSWORD}'",
        "GRANT REPLICATION CLIENT ON *.* TO watched@'%'",
        "GRANT SELECT ON performance_schema.* TO watched@'%'",
    )
    pair.settle()


def spark_home(home: Path) -> Path:
    """Make a Spark whose executors' working directories are under `home`, and not in ours."""
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    return home


@pytest.fixture(params=["local[2]", "local-cluster[2,1,1024]"])
def scratch(
    request: pytest.FixtureRequest, pair97: Pair, tmp_path: Path, spark: SparkSession
) -> tuple[Path, subprocess.CompletedProcess[bytes]]:
    """Run Spark once with everything on, and return where it left what was seen."""
    assert spark.version, "Java is there"
    make_account(pair97)
    done = subprocess.run(
        [
            sys.executable,
            watched_run.__file__,
            str(tmp_path),
            request.param,
            str(fleet_file(tmp_path / "fleet.yaml", pair97, "FLEET_PASSWORD")),
            str(fleet_file(tmp_path / "wrong.yaml", pair97, "WRONG_PASSWORD")),
        ],
        env={
            **{name: value for name, value in os.environ.items() if "SPARK" not in name},
            "FLEET_PASSWORD": PASSWORD,
            "WRONG_PASSWORD": WRONG,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_HOME": str(spark_home(tmp_path / "spark")),
            "PYTHONPATH": os.pathsep.join(("", str(Path(__file__).parents[2]))),
        },
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-4000:]
    return tmp_path, done


@pytest.mark.parametrize("before", [b"", b"a", b"ab"])
def test_the_search_sees_through_the_usual_disguises(before: bytes) -> None:
    held = before + PASSWORD.encode() + b" and more"
    listed = [byte - 256 if byte > 127 else byte for byte in held]  # bytes of Java have a sign
    for text in (
        held,
        base64.b64encode(held),
        held.hex().encode(),
        held.decode().encode("utf-16-le"),
        json.dumps(held.decode()).encode(),
        repr(listed).encode(),
        ",".join(map(str, listed)).encode(),
    ):
        assert found_in(text, PASSWORD), text
        assert not found_in(text, WRONG)


def rows_of(scratch: Path) -> dict[str, list[dict[str, Any]]]:
    rows: dict[str, list[dict[str, Any]]] = json.loads((scratch / "rows.json").read_text())
    return rows


@pytest.mark.slow
def test_no_password_in_anything_that_can_be_seen(
    scratch: tuple[Path, subprocess.CompletedProcess[bytes]],
) -> None:
    directory, done = scratch
    mark = watched_run.MARK.encode()

    rows = rows_of(directory)
    for name in ("shipped", "own"):
        assert [row["gtid_executed"] is not None for row in rows[name]] == [True] * 4, rows[name]
        assert [row.get("unread", []) for row in rows[name]] == [[]] * 4
    for row in rows["refused"]:
        (unread,) = row["unread"]
        assert unread["reason"] == "refused"
        assert unread["detail"].startswith("Access denied for user 'watched'")
    assert int((directory / "rounds").read_text()) >= 2, "looked at while it ran, and afterwards"

    executors = ["work"] if (directory / "spark" / "work").exists() else []
    for place in ("pages", "rest", "local", "explain", "errors", *executors):
        assert found_in(directory / "before" / place, PASSWORD, WRONG) == [], place
        assert found_in(directory / "after" / place, PASSWORD), f"{place}: not even if it is there"
    assert found_in(directory / "rows", PASSWORD, WRONG) == []
    assert found_in(directory / "rows.json", PASSWORD, WRONG) == []

    events = b"".join(
        path.read_bytes() for path in sorted((directory / "events").rglob("events_*"))
    )
    for text in (events, done.stderr):
        before, marked, after = text.partition(mark)
        assert marked, "the two halves are told apart"
        assert len(before) > 10_000
        assert found_in(before, PASSWORD, WRONG) == []
        assert found_in(after, PASSWORD)
    assert found_in(done.stdout, PASSWORD, WRONG) == []
