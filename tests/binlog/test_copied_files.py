"""Copies of files in an archive, under any name: they are no new history and make no hole."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from binlog.errors import CorruptBinlog, TruncatedBinlog
from binlog.event_types import EventType
from binlog.locating.cover import ArchiveCover, ArchivedLog, cover_of
from binlog.locating.histories import LogOrigin, RepeatedGtids
from gtid import GtidSet
from gtid.binary import encode
from gtid_audit.cli import run
from gtid_audit.views.cover_text import document_of, show_cover, verdict_of
from tests.binlog.builders import UUID_A, Log
from topology.catalogue.findings import Verdict


def gtids(text: str) -> GtidSet:
    return GtidSet.parse(text and f"{UUID_A}:{text}")


def log(name: str, previous: str, inside: str, at: int = 10) -> ArchivedLog:
    return ArchivedLog(name, gtids(previous), gtids(inside), origin=LogOrigin(1, at))


def repeats(files: Sequence[ArchivedLog]) -> list[RepeatedGtids]:
    """What is in two files, each as one transaction."""
    pairs = itertools.combinations(enumerate(files), 2)
    return [
        RepeatedGtids((at, number), one.gtids & other.gtids, GtidSet())
        for (at, one), (number, other) in pairs
        if one.gtids & other.gtids
    ]


def covered(start: str, *files: ArchivedLog) -> ArchiveCover:
    return cover_of(gtids(start), files, repeats(files))


# All of one second: their names alone give the order.
FILES = (
    log("b.000001", "", "1-7"),
    log("b.000002", "1-7", "8-12"),
    log("b.000003", "1-12", "13-17"),
    log("b.000004", "1-17", "18"),
)


@pytest.mark.parametrize("name", ["b.000000", "b.000002", "b.000003", "b.000090", "b.000002.old"])
@pytest.mark.parametrize("of", range(4))
@pytest.mark.parametrize("missing", [None, 0, 1, 2, 3])
def test_a_copy_changes_nothing(of: int, name: str, missing: int | None) -> None:
    """The attack: binlog.000002 as binlog.000090, and :13-17 of binlog.000003 as a false hole."""
    files = [each for at, each in enumerate(FILES) if at != missing or at == of]
    alone = covered("1-3", *files)
    for order in itertools.permutations((*files, replace(FILES[of], file=name)), len(files) + 1):
        found = covered("1-3", *order)
        assert (found.hole, found.new_histories) == (alone.hole, ())
        assert verdict_of(found) is verdict_of(alone)
        [copy] = found.copies
        assert {copy.file, copy.of} == {name, FILES[of].file}
        assert len(found.needed) == len(alone.needed)


def test_the_whole_archive_under_other_numbers() -> None:
    again = [replace(each, file=f"b.{100 + at:06}") for at, each in enumerate(FILES)]
    found = covered("", *FILES, *again)
    assert (verdict_of(found), len(found.copies)) == (Verdict.OK, 4)


def test_a_copy_that_was_made_while_the_server_wrote() -> None:
    error = TruncatedBinlog(file="b.000090", position=9, what="an event", in_use=True)
    part = replace(log("b.000090", "1-7", "8-10"), error=error)
    found = covered("", *FILES, part)
    assert (verdict_of(found), [each.of for each in found.copies]) == (Verdict.OK, ["b.000002"])
    open_part = replace(log("b.000090", "1-7", "8-10"), ends_in_transaction=True)
    assert verdict_of(covered("", *FILES, open_part)) is Verdict.OK


@pytest.mark.parametrize("error", [CorruptBinlog, TruncatedBinlog])
def test_a_damaged_copy_is_still_reported(error: type[CorruptBinlog]) -> None:
    more = {"in_use": False} if error is TruncatedBinlog else {}
    found = replace(
        log("b.000090", "1-7", "8-10"), error=error(file="b", position=9, what="x", **more)
    )
    assert verdict_of(covered("", *FILES, found)) is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "other",
    [
        log("b.000090", "1-7", "8-12", at=90),  # made at another time
        log("b.000090", "1-6", "8-12"),
        replace(FILES[1], file="b.000090", origin=LogOrigin(2, 10)),
    ],
)
def test_what_is_no_copy(other: ArchivedLog) -> None:
    assert covered("", *FILES, other).copies == ()


def test_the_right_name_may_be_that_of_the_shorter_copy() -> None:
    files = (FILES[0], log("b.000002", "1-7", "8-10"), *FILES[2:])
    found = covered("", *files, replace(FILES[1], file="b.000090"))
    assert (found.hole, verdict_of(found)) == (GtidSet(), Verdict.OK)
    assert document_of(found)["copies"] == [{"file": "b.000002", "of": "b.000090"}]


def test_another_transaction_under_one_gtid_is_no_copy() -> None:
    other = replace(FILES[1], file="b.000090")
    found = cover_of(GtidSet(), (*FILES, other), [RepeatedGtids((1, 4), GtidSet(), gtids("9"))])
    assert (verdict_of(found), found.copies) == (Verdict.UNKNOWN, ())
    [new] = found.new_histories
    assert (new.file, new.is_proved) == ("b.000090", True)


def test_files_without_transactions_are_not_reported_as_copies() -> None:
    """Two restarts within a second look as a copy does; neither is a new history."""
    empty = log("b.000004", "1-17", "")
    files = (*FILES[:3], empty, log("b.000005", "1-17", "18"), replace(empty, file="b.000090"))
    found = covered("", *files)
    assert (verdict_of(found), found.copies) == (Verdict.OK, ())


def test_copies_of_a_file_without_a_whole_transaction() -> None:
    """The newest file, copied at its beginning: alone, twice, and beside the whole one."""
    error = TruncatedBinlog(file="b.000005", position=9, what="an event", in_use=True)
    empty = replace(log("b.000005", "1-18", "", at=20), error=error)
    whole = log("b.000005", "1-18", "19", at=20)
    later = log("b.000006", "1-19", "20", at=20)
    for files in ((empty,), (empty, empty), (empty, whole), (empty, whole, later)):
        found = covered("", *FILES, *files)
        assert (verdict_of(found), found.hole) == (Verdict.OK, GtidSet())
    cut_and_later = covered("", *FILES, empty, log("b.000006", "1-18", "19", at=20))
    assert [each.file for each in cut_and_later.unread] == ["b.000005"]
    cut_and_empty = covered("", *FILES, empty, log("b.000006", "1-18", "", at=20))
    assert [each.file for each in cut_and_empty.unread] == ["b.000005"]


def test_the_remark(capsys: pytest.CaptureFixture[str]) -> None:
    found = covered("", *FILES, replace(FILES[1], file="b.000090"))
    show_cover(found)
    shown = " ".join(capsys.readouterr().out.split())
    assert "copy b.000090 has the transactions of b.000002: it is left out" in shown
    assert document_of(found)["copies"] == [{"file": "b.000090", "of": "b.000002"}]
    show_cover(covered("", *FILES, FILES[1]))
    shown = " ".join(capsys.readouterr().out.split())
    assert "b.000002 has the transactions of another file of this name" in shown
    again = [replace(each, file=f"{each.file}.old") for each in FILES]
    show_cover(covered("", *FILES, *again))
    assert "and 3 more files" in " ".join(capsys.readouterr().out.split())


def test_copies_of_real_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, (previous, gnos) in enumerate(
        [("", range(1, 4)), ("1-3", range(4, 6)), ("1-5", range(6, 9))], start=1
    ):
        made = Log()
        made.add(EventType.PREVIOUS_GTIDS, encode(gtids(previous)))
        for gno in gnos:
            made.gtid(gno)
            made.query("BEGIN")
            if gno == 5:  # each member of a group logs it for itself: other files may have another
                made.add(EventType.VIEW_CHANGE, bytes(52))
            made.xid()
        (tmp_path / f"b.{number:06}").write_bytes(bytes(made))
    for copy in ("b.000000", "b.000090"):
        target = tmp_path / copy
        target.write_bytes((tmp_path / "b.000002").read_bytes())
        assert run(["binlog", "cover", "--from", "", str(tmp_path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["copies"] == [{"file": copy, "of": "b.000002"}]
        target.unlink()
