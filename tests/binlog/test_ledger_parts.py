"""A log that is read in parts gives what it gives when it is read in one go, wherever they start."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.generate.binlogs import LogShape, write_binlog
from binlog.adapters import ledger_files
from binlog.adapters.ledger_files import ledger_of_file
from binlog.events import ChecksumAlgorithm
from binlog.ledger import parallel_parts
from binlog.ledger.ledger_columns import FileLedger, LedgerRequest
from binlog.ledger.ledger_window import WindowPlace, ledger_of_window
from binlog.ledger.parallel_parts import joined, starts_of_parts
from binlog.scan import read_head
from tests.binlog.ledger_shapes import SHAPES
from tests.binlog.ledger_twin import rows_said
from tests.binlog.material import Written

HEADER_BYTES = 19


def said(ledger: FileLedger) -> tuple[object, ...]:
    error = ledger.error
    return rows_said(ledger.rows), ledger.head, ledger.end, type(error), str(error)


@pytest.fixture
def _tiny_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_parts, "PART_BYTES_MIN", 64)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "binlog.000001"
    write_binlog(path, LogShape(transactions=200, events=1, text_bytes=40))
    return path


def guesses(path: Path, parts_max: int) -> tuple[int, ...]:
    data = np.fromfile(path, np.uint8)
    head = read_head([data.tobytes()], file=path.name)
    return starts_of_parts(
        data, first=head.first_position, description=head.description, parts_max=parts_max
    )


@pytest.mark.usefixtures("_tiny_parts")
def test_parts_start_where_transactions_do(log: Path) -> None:
    starts = guesses(log, 4)
    assert len(starts) == 4
    assert set(starts[1:]) <= set(ledger_of_file(log, threads_max=1).rows["start"].to_pylist())


def test_what_is_small_is_read_in_one_go(log: Path) -> None:
    assert guesses(log, 4) == (0,)


@pytest.mark.usefixtures("_tiny_parts")
@pytest.mark.parametrize("asked", [{}, {"verify": True}, {"digests": True, "details": True}])
def test_logs_of_servers(written: Written, asked: dict[str, bool]) -> None:
    for path in written.files:
        whole = said(ledger_of_file(path, LedgerRequest(**asked), threads_max=1))
        for threads in (2, 3, 7):
            assert said(ledger_of_file(path, LedgerRequest(**asked), threads_max=threads)) == whole


@pytest.mark.usefixtures("_tiny_parts")
@pytest.mark.parametrize("name", SHAPES)
def test_logs_made_by_hand(name: str, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(SHAPES[name]())
    for verify in (False, True):
        whole = said(ledger_of_file(path, LedgerRequest(verify=verify), threads_max=1))
        for threads in (2, 3, 7):
            assert (
                said(ledger_of_file(path, LedgerRequest(verify=verify), threads_max=threads))
                == whole
            )


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Guess these starts, whatever stands there."""
    starts: list[int] = []

    def guessed(*_data: object, **_asked: object) -> Sequence[int]:
        return (0, *starts)

    monkeypatch.setattr(ledger_files, "starts_of_parts", guessed)
    return starts


@pytest.mark.long
def test_a_wrong_guess_changes_nothing(log: Path, wrong: list[int]) -> None:
    whole = said(ledger_of_file(log, threads_max=1))
    size = log.stat().st_size
    random_ = random.Random(7)
    for _ in range(150):
        wrong[:] = sorted(random_.sample(range(1, size), 3))
        assert said(ledger_of_file(log, threads_max=4)) == whole


@pytest.mark.usefixtures("_tiny_parts")
@pytest.mark.parametrize("another", [None, b"something else"])
def test_a_log_that_is_renamed_meanwhile_is_read_on(
    log: Path, another: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = said(ledger_of_file(log, threads_max=1))

    def guessed(*data: Any, **asked: Any) -> Sequence[int]:
        log.rename(log.with_name("elsewhere"))
        if another is not None:
            log.write_bytes(another)
        return starts_of_parts(*data, **asked)

    monkeypatch.setattr(ledger_files, "starts_of_parts", guessed)
    assert said(ledger_of_file(log, threads_max=3)) == whole


def test_damage_ends_the_ledger_in_whichever_part_it_is(log: Path, wrong: list[int]) -> None:
    sound = log.read_bytes()
    starts = ledger_of_file(log, threads_max=1).rows["start"].to_pylist()
    wrong[:] = [starts[70], starts[140]]
    for row in (10, 69, 70, 100, 139, 140, 199):
        damaged = bytearray(sound)
        damaged[starts[row] + HEADER_BYTES + 40] ^= 0xFF
        damaged[starts[row] + 9 : starts[row] + 13] = b"\1\0\0\0"
        log.write_bytes(damaged)
        for verify in (False, True):
            whole = ledger_of_file(log, LedgerRequest(verify=verify), threads_max=1)
            assert whole.error is not None
            assert whole.rows.num_rows == row
            assert said(ledger_of_file(log, LedgerRequest(verify=verify), threads_max=4)) == said(
                whole
            )


def test_far_places_are_looked_at_in_memory_if_the_file_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    write_binlog(path, LogShape(transactions=20, events=3, text_bytes=30_000))
    data = np.fromfile(path, np.uint8)
    plain = ledger_of_window(data, WindowPlace("log"))
    assert plain.error is None
    assert plain.rows.num_rows == 20
    for name, mode in ((os.devnull, os.O_RDONLY), (path, os.O_WRONLY), (path, os.O_RDONLY)):
        descriptor = os.open(name, mode)
        found = ledger_of_window(data, WindowPlace("log", mapped_from=descriptor))
        os.close(descriptor)
        assert found.rows.equals(plain.rows)
        assert (found.end, found.error) == (plain.end, None)


@pytest.mark.long
def test_what_is_read_from_afar_is_what_is_mapped(tmp_path: Path) -> None:
    """Damage that a hop may land on, or pass over, is told of in the same words."""
    path = tmp_path / "binlog.000001"
    write_binlog(path, LogShape(transactions=20, events=3, text_bytes=30_000))
    sound = path.read_bytes()
    starts = ledger_of_file(path).rows["start"].to_pylist()
    random_ = random.Random(11)
    ended = set()
    for _ in range(300):
        damaged = bytearray(sound)
        for _ in range(random_.randrange(1, 4)):
            damaged[random_.choice(starts) + random_.randrange(-40, 200)] = random_.randrange(256)
        del damaged[random_.choice((len(damaged), random_.choice(starts) + 90)) :]
        path.write_bytes(damaged)
        data = np.frombuffer(bytes(damaged), np.uint8)
        mapped = ledger_of_window(data, WindowPlace("log"))
        with path.open("rb") as file:
            read = ledger_of_window(data, WindowPlace("log", mapped_from=file.fileno()))
        assert read.rows.equals(mapped.rows)
        assert (read.end, str(read.error)) == (mapped.end, str(mapped.error))
        ended.add((read.rows.num_rows, read.error is None))
    assert len(ended) > 10


def test_what_was_read_under_another_description_is_not_joined(log: Path) -> None:
    """None of the bytes contradicts it: a file without checksums, then, may go on with some."""
    data = np.fromfile(log, np.uint8)
    first = ledger_of_window(data, WindowPlace(log.name))
    assert first.description is not None
    other = replace(first.description, checksum=ChecksumAlgorithm.NONE)
    assert first.description != other
    whole, alone = (
        joined((first, first), (0, first.end), each) for each in (first.description, other)
    )
    assert (whole.rows.num_rows, alone.rows.num_rows) == (400, 200)
    assert alone == first
