"""The record of a data check: a line of JSON for each part, so that the next run can go on.

1. The first line has the `server_uuid` of both servers and a version. A record of other servers is
   refused.
2. A line is written and synchronised before the next part is read. A process that is killed leaves
   at most one incomplete line, the last one, which is dropped.
3. Keys of rows are in it, so only its owner may read it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from uuid import UUID

from repair.data_check.checked_data import CheckedPart, PartState, UnlikeRow
from repair.data_check.part_comparison import RowDifference

_VERSION: Final = 1


class UnreadableRecord(Exception):
    """The file is no record of a data check of these servers. The text has file and line."""


@dataclass(frozen=True, slots=True)
class DataCheckRecord:
    """An open record."""

    done: Sequence[CheckedPart]
    file: IO[str]

    def add(self, part: CheckedPart) -> None:
        """Write one part, and wait until it is stored. Raises OSError."""
        self.file.write(json.dumps(_document(part), ensure_ascii=False) + "\n")
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def open_record(path: Path, servers: tuple[UUID, UUID]) -> Iterator[DataCheckRecord]:
    """Open a record, or begin one.

    Raises:
        UnreadableRecord: it is of other servers, or damaged.
        OSError: it cannot be read or written.
    """
    head = {"data_check": _VERSION, "servers": [str(each) for each in servers]}
    done: list[CheckedPart] = []
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        text = file.read()
        whole = text[: text.rfind("\n") + 1]
        lines = whole.splitlines()
        if lines:
            _require(path, lines[0], head)
            done = [_part(path, number, line) for number, line in enumerate(lines[1:], start=2)]
        file.seek(len(whole.encode()))
        file.truncate()
        if not lines:
            file.write(json.dumps(head) + "\n")
        yield DataCheckRecord(done, file)


def _require(path: Path, line: str, head: dict[str, Any]) -> None:
    try:
        found = json.loads(line)
    except json.JSONDecodeError:
        raise UnreadableRecord(f"{path}:1: not a record of a data check") from None
    if found != head:
        is_record = isinstance(found, dict) and found.get("data_check") == _VERSION
        of = "a data check of other servers" if is_record else "something else"
        raise UnreadableRecord(f"{path}:1: it is the record of {of}; use another file")


def _document(part: CheckedPart) -> dict[str, Any]:
    return {
        "schema": part.schema,
        "table": part.table,
        "key": part.key,
        "upper": part.upper,
        "definition": part.definition,
        "rows": part.rows,
        "state": part.state.value,
        "different": part.different,
        "listed": [{"key": each.key, "state": each.state.name} for each in part.listed],
        "why": part.why,
    }


def _part(path: Path, number: int, line: str) -> CheckedPart:
    try:
        found = json.loads(line)
        return CheckedPart(
            schema=str(found["schema"]),
            table=str(found["table"]),
            key=str(found["key"]),
            upper=None if found["upper"] is None else tuple(map(str, found["upper"])),
            definition=str(found["definition"]),
            rows=int(found["rows"]),
            state=PartState(found["state"]),
            different=int(found["different"]),
            listed=tuple(
                UnlikeRow(tuple(map(str, each["key"])), RowDifference[each["state"]])
                for each in found["listed"]
            ),
            why=str(found["why"]),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise UnreadableRecord(f"{path}:{number}: not a part of a data check ({error})") from None
