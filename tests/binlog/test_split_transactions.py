"""`cover` of relay logs: a transaction that begins in one file and ends in a later one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from binlog.event_types import EventType
from binlog.header import FLAG_RELAY_LOG
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit.cli import run
from tests.binlog.builders import NOON_SECONDS, UUID_A, Log, gtid_body

A = str(UUID_A)


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text and f"{A}:{text}")


def relay_log(previous: str, *events: str, flags: int = FLAG_RELAY_LOG) -> Log:
    """A number is a GTID; BEGIN and XID are these events; all else is a statement."""
    log = Log(flags=flags)
    log.add(EventType.PREVIOUS_GTIDS, encode(gtids(previous)))
    for each in events:
        if each.isdecimal():
            log.gtid(int(each))
        elif each == "XID":
            log.xid()
        else:
            log.query(each)
    return log


ONE = ("1", "BEGIN", "XID")
INSERT = "INSERT INTO t VALUES (1)"
BEGUN = relay_log("", *ONE, "2", "BEGIN")
# 5.6.24 lists :2 before its end is there; later versions do not.
SPLIT = (BEGUN, relay_log("1-2", INSERT, INSERT), relay_log("1-2"), relay_log("1-2", INSERT, "XID"))


def covered(
    folder: Path, logs: Sequence[Log | None], capsys: pytest.CaptureFixture[str], *, start: str = ""
) -> dict[str, Any]:
    """The document of `cover` of relay logs, numbered from 1; None is a missing file."""
    for number, log in enumerate(logs, start=1):
        if log is not None:
            (folder / f"relay.{number:06}").write_bytes(bytes(log))
    run(["binlog", "cover", "--from", start and f"{A}:{start}", str(folder), "--json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    "logs",
    [
        SPLIT,
        (BEGUN, relay_log("1", "XID", "3", "BEGIN", "XID")),  # no row of its own
        (relay_log("", *ONE, "2"), relay_log("1", "BEGIN", INSERT), relay_log("1", INSERT, "XID")),
        (*SPLIT, relay_log("1-2", "3", "BEGIN"), relay_log("1-2", "XID")),
    ],
)
def test_a_transaction_over_many_relay_logs_is_whole(
    logs: Sequence[Log], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = covered(tmp_path, logs, capsys)
    assert (found["verdict"], found["unread"], found["hole"]) == ("OK", [], "")
    assert gtids("1-2") <= GtidSet.parse(found["end"])


def test_its_files_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = covered(tmp_path, SPLIT, capsys, start="1")
    assert found["needed"] == ["relay.000001", "relay.000002", "relay.000004"]
    assert covered(tmp_path, SPLIT, capsys, start="1-2")["needed"] == []


@pytest.mark.parametrize(
    "logs",
    [
        (SPLIT[0], None, *SPLIT[2:]),  # a part may be missing
        (SPLIT[0], SPLIT[1], None, SPLIT[3]),
        SPLIT[:3],  # its end is not there
        (BEGUN, relay_log("1-2", INSERT), relay_log("1-2", "3", "BEGIN"), SPLIT[3]),
        (BEGUN, relay_log("1-2", "BEGIN", "XID")),  # another transaction, without a GTID
        (BEGUN, relay_log("", INSERT, "XID"), relay_log("1-2")),  # the receiver began anew
        [relay_log("", *ONE, "2", "BEGIN", flags=0), *SPLIT[1:]],  # a binary log
    ],
)
def test_without_all_its_parts_it_is_not_there(
    logs: Sequence[Log | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = covered(tmp_path, logs, capsys)
    assert (found["verdict"], found["hole"]) == ("UNKNOWN", f"{A}:2")
    assert found["unread"]


def test_what_stands_behind_it_has_no_gtid(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The transaction ends, and the next one in that file is in no set."""
    logs = (BEGUN, relay_log("1", INSERT, "XID", "BEGIN", INSERT, "XID"))
    found = covered(tmp_path, logs, capsys)
    assert (found["verdict"], found["hole"]) == ("UNKNOWN", "")
    [unread] = found["unread"]
    assert (unread["file"], unread["anonymous_count"]) == ("relay.000002", 1)


def test_a_damaged_part_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = relay_log("1-2", INSERT, INSERT)
    damaged.data[-10] ^= 1
    found = covered(tmp_path, (BEGUN, damaged, *SPLIT[2:]), capsys)
    assert (found["verdict"], found["hole"]) == ("UNKNOWN", f"{A}:2")


def test_copies_in_another_directory_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [tmp_path / "live", tmp_path / "archive"]
    for folder in folders:
        folder.mkdir()
        covered(folder, SPLIT, capsys)
    assert run(["binlog", "cover", "--from", "", *map(str, folders), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new_histories"] == []


def test_a_receiver_that_forgot_it_receives_it_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is one transaction, whole in a later file: no new history."""
    again = relay_log("", "2", "BEGIN", INSERT, "XID")
    found = covered(tmp_path, (*SPLIT, again), capsys)
    assert (found["verdict"], found["new_histories"]) == ("OK", [])
    # Another transaction under its GTID, from another second, is a new history.
    other = relay_log("")
    other.add(EventType.GTID, gtid_body(2), at_seconds=NOON_SECONDS + 5)
    other.query("BEGIN")
    other.xid()
    found = covered(tmp_path, (*SPLIT, other), capsys)
    assert (found["verdict"], len(found["new_histories"])) == ("UNKNOWN", 1)
