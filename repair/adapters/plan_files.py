"""Writes a plan into a directory, completely or not at all, and reads it again to apply it.

1. A directory that contains anything else is refused. A directory that contains this plan, possibly
   made from another reading, is not changed: same id, same files, same SQL.
2. The files appear together: a finished directory is renamed to its final name.
3. A script that was edited since is noticed by its digest. What it does now was not simulated.
4. Only the operating system account that made a plan may read its files. They contain rows of
   tables, and statements such as CREATE USER with the hash of a password.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Container, Iterable
from datetime import datetime
from pathlib import Path

from repair.applying.written_plan import UnusablePlan, WrittenPlan, read_plan
from repair.model.strategy_case import StreamedContent
from repair.render import PLAN, RUNBOOK, render_files
from repair.repair_plan import Plan
from repair.sql.guard import without_measured
from topology.facts.accepted import APPLIED_FILE, applied_by_from_text

_FILE_MODE = 0o600


class DirectoryTaken(Exception):
    """The directory contains something that is not this plan."""


def _nothing_streamed(saved: StreamedContent) -> Iterable[bytes]:
    raise AssertionError(f"{saved.file_name} is announced, and the caller does not write it")


def write_plan(
    plan: Plan,
    directory: Path,
    *,
    streamed: Callable[[StreamedContent], Iterable[bytes]] = _nothing_streamed,
) -> tuple[Path, ...]:
    """Write a plan's files and return their paths, scripts first, in order.

    `streamed` returns the content of a file that is not part of the plan's text.

    Raises:
        DirectoryTaken: the directory, or a file of that name, exists and contains something else.
        OSError: it cannot be written.
    """
    files = render_files(plan)
    streams = {each.file_name: each for each in plan.saved if isinstance(each, StreamedContent)}
    paths = tuple(directory / name for name in (*files, *streams))
    if directory.exists() and _is_same(_content(directory, streams), files, streams):
        return paths
    _refuse_taken(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    # Next to its final location, because a rename is atomic only within one file system. Its mode
    # is 0700.
    made = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        for name, text in files.items():
            _write(made / name, (text.encode(),))
        for name, each in streams.items():
            _write(made / name, streamed(each))
        _sync(made)
        made.rename(directory)  # replaces an empty directory, and only an empty one (rename(2))
    except BaseException:
        shutil.rmtree(made)
        raise
    _sync(directory.parent)
    return paths


def read_directory(directory: Path) -> tuple[WrittenPlan, dict[str, str]]:
    """Return the plan of a directory, and its scripts by file name.

    Raises:
        UnusablePlan: a file cannot be read, is not a plan's, or was edited. The message has it.
    """
    path = directory / PLAN
    try:
        plan = read_plan(path.read_text(encoding="utf-8"))
        scripts: dict[str, str] = {}
        for script in plan.scripts:
            path = directory / script.file_name
            scripts[script.file_name] = _unchanged(path.read_bytes(), script.sha256)
    except OSError as error:
        raise UnusablePlan(f"{path}: {error.strerror or error}") from error
    except UnusablePlan as problem:
        raise UnusablePlan(f"{path}: {problem}") from problem
    except UnicodeDecodeError as error:
        raise UnusablePlan(f"{path}: not UTF-8: {error}") from error
    return plan, scripts


def record_applied(
    directory: Path, *, plan_id: str, procedure: str, operator: str, at: datetime
) -> None:
    """Record beside a plan who applied it. An audit that accepts the plan shows it.

    The record is replaced as a whole, so that it is never read in part.

    Raises:
        NotAPlan: the record that is there is damaged. It is not changed.
        OSError: it cannot be written.
    """
    path = directory / APPLIED_FILE
    earlier = []
    if path.exists():
        there = path.read_bytes().decode(errors="replace")
        applied_by_from_text(there, plan_id)
        earlier = json.loads(there)["applied"]
    now = {
        "plan_id": plan_id,
        "procedure": procedure,
        "operator": operator,
        "at": at.isoformat(timespec="seconds"),
    }
    text = json.dumps({"applied": [*earlier, now]}, indent=2) + "\n"
    made = directory / f".{APPLIED_FILE}.{procedure}"
    made.unlink(missing_ok=True)
    _write(made, (text.encode(),))
    made.replace(path)
    _sync(directory)


def _unchanged(script: bytes, sha256: str) -> str:
    if hashlib.sha256(script).hexdigest() != sha256:
        raise UnusablePlan(
            "it was edited after the plan was made, and is not what was simulated: plan again, or"
            " run it yourself with the mysql client"
        )
    return script.decode("utf-8")


def _refuse_taken(directory: Path) -> None:
    if not directory.exists():
        return
    if not directory.is_dir():
        raise DirectoryTaken(f"{directory} exists, and is not a directory")
    found = sorted(path.name for path in directory.iterdir())
    if found:
        shown = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")  # noqa: PLR2004 - as shown
        raise DirectoryTaken(
            f"{directory} holds something else ({shown}): choose another directory"
        )


def _content(directory: Path, streams: Container[str]) -> dict[str, str] | None:
    """Return the files of a directory; of a streamed one, which may be large, only its name."""
    if not directory.is_dir():
        return None
    found: dict[str, str] = {}
    for path in directory.iterdir():
        if not path.is_file():
            return None
        if APPLIED_FILE in path.name:  # written later: the plan is the same
            continue
        if path.name in streams:
            found[path.name] = ""
            continue
        found[path.name] = path.read_bytes().decode("utf-8", errors="replace")
    return found


def _is_same(there: dict[str, str] | None, files: dict[str, str], streams: Collection[str]) -> bool:
    """Return whether a directory contains this plan; reading times may differ, SQL may not.

    A streamed file is written before the plan is there, and its transactions are part of the id.
    """
    if there is None or there.keys() != {*files, *streams}:
        return False
    if _id(there[PLAN]) is None or _id(there[PLAN]) != _id(files[PLAN]):
        return False
    scripts = [name for name in files if name not in (PLAN, RUNBOOK)]
    return all(_statements(there[name]) == _statements(files[name]) for name in scripts)


def _id(text: str) -> str | None:
    """Return the id in a plan's JSON; None if it is not one."""
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError):
        return None
    found = plan.get("id") if isinstance(plan, dict) else None
    return found if isinstance(found, str) else None


def _statements(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.startswith("--")]
    return [without_measured(line) for line in lines]


def _write(path: Path, parts: Iterable[bytes]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    with os.fdopen(descriptor, "wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
