"""Where the GTIDs of a server begin anew in an archive: which files, and which GTIDs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from binlog.locating.cover import ArchivedLog, cover_of
from binlog.locating.histories import LogOrigin, RepeatedGtids, number_in
from gtid import GtidSet
from gtid_audit.views.cover_text import cover_headline, document_of, show_cover, verdict_of
from topology.catalogue.findings import Verdict

UUID = "aaaaaaaa-0000-0000-0000-000000000000"
OTHER = "bbbbbbbb-0000-0000-0000-000000000000"


def gtids(text: str, uuid: str = UUID) -> GtidSet:
    return GtidSet.parse(f"{uuid}:{text}") if text else GtidSet()


def log(
    name: str,
    previous: str,
    inside: str,
    at: int,
    *,
    server_id: int = 1,
    is_relay_log: bool = False,
) -> ArchivedLog:
    origin = LogOrigin(server_id, at, is_relay_log)
    return ArchivedLog(name, gtids(previous), gtids(inside), origin=origin)


def repeat(first: int, second: int, same: str = "", different: str = "") -> RepeatedGtids:
    return RepeatedGtids((first, second), gtids(same), gtids(different))


OLD = (
    log("b.000001", "", "1-7", 10),
    log("b.000002", "1-7", "8-12", 20),
    log("b.000003", "1-12", "13-17", 30),
)
RESET = (log("b.000005", "", "1-30", 50), log("b.000006", "1-30", "31", 60))


def test_gtids_of_a_later_history_do_not_fill_a_hole() -> None:
    """The attack: b.000002 is missing, and after RESET the server used 8-12 again."""
    found = cover_of(gtids("1-7"), (OLD[0], OLD[2], *RESET), [repeat(0, 2, different="1-7")])
    assert (str(found.hole), verdict_of(found)) == (f"{UUID}:8-12", Verdict.CRITICAL)
    [new] = found.new_histories
    assert (new.file, new.before) == ("b.000005", "b.000003")
    assert (new.lost, new.reused) == (gtids("1-17"), gtids("1-7"))
    assert "no file of their history" in cover_headline(found)


def test_an_archive_of_two_histories_is_not_complete() -> None:
    files = (*OLD, *RESET)
    found = cover_of(gtids("1-7"), files, [repeat(0, 3, different="1-7")])
    assert (found.hole, verdict_of(found)) == (GtidSet(), Verdict.UNKNOWN)
    assert cover_headline(found) == (
        "5 files of more than one history: GTIDs begin anew in b.000005"
    )
    [new] = document_of(found)["new_histories"]
    assert (new["file"], new["reused"]) == ("b.000005", f"{UUID}:1-7")


def test_the_header_alone_shows_it() -> None:
    """No file has a GTID twice: the hole of the old history has all that the new one reused."""
    files = (OLD[2], log("b.000005", "", "1-12", 50))
    found = cover_of(gtids("1-7"), files)
    assert (found.hole, verdict_of(found)) == (gtids("8-12"), Verdict.CRITICAL)
    lost_end = (*OLD, log("b.000004", "1-14", "15-16", 40))
    assert verdict_of(cover_of(GtidSet(), lost_end)) is Verdict.UNKNOWN
    kept = (OLD[2], log("b.000007", "1-3", "", 50))
    assert verdict_of(cover_of(gtids("1-12"), kept)) is Verdict.UNKNOWN


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 3, 0, 1)])
def test_the_order_is_that_of_the_time_in_the_files(order: tuple[int, ...]) -> None:
    files = (OLD[0], OLD[2], *RESET)
    found = cover_of(gtids("1-7"), [files[at] for at in order])
    assert (found.hole, [each.file for each in found.new_histories]) == (
        gtids("8-12"),
        ["b.000005"],
    )


def test_files_of_one_second_are_in_the_order_of_their_numbers() -> None:
    files = [replace(each, origin=LogOrigin(1, 10)) for each in (RESET[1], *OLD, RESET[0])]
    assert [each.file for each in cover_of(GtidSet(), files).new_histories] == ["b.000005"]
    ninth = log("b.000009", "", "1-7", 10)
    tenth = log("b.000010", "1-7", "8", 10)
    assert not cover_of(GtidSet(), (tenth, ninth)).new_histories


@pytest.mark.parametrize(
    ("more", "repeated"),
    [
        # RESET, and SET gtid_purged: the header of the next file has all of them again.
        ([log("b.000005", "", "", 50), log("b.000006", "1-17", "18-20", 60)], []),
        # CLONE: no header lists what was copied.
        ([log("b.000001", "", "18-20", 50), log("b.000002", "18-20", "21", 60)], []),
        # A restored backup: what came after it was received again.
        (
            [log("b.000005", "1-14", "15-19", 50), log("b.000006", "1-19", "20", 60)],
            [repeat(2, 3, same="15-17")],
        ),
        # Copies of one file; one was made while the server still wrote it.
        ([replace(OLD[1], file="copy.000002")], [repeat(1, 3, same="8-12")]),
        (
            [replace(OLD[1], file="b.000002.part", gtids=gtids("8-10"))],
            [repeat(1, 3, same="8-10")],
        ),
        # Another server.
        ([log("c.000001", "", "1-4", 50, server_id=2)], [repeat(0, 3, same="1-4")]),
        ([log("c.000001", "1-3", "4", 50, server_id=2)], []),
        # A server that was made anew, with the same server_id and another UUID.
        (
            [ArchivedLog("b.000001", GtidSet(), gtids("1-3", OTHER), origin=LogOrigin(1, 50))],
            [],
        ),
        # RESET, and nothing since.
        ([log("b.000001", "", "", 50)], []),
        # A file without a readable header is reported as such.
        ([ArchivedLog("b.000005", None, GtidSet(), origin=LogOrigin(1, 50))], []),
    ],
)
def test_what_is_one_history(more: list[ArchivedLog], repeated: list[RepeatedGtids]) -> None:
    found = cover_of(GtidSet(), (*OLD, *more), repeated)
    assert found.new_histories == ()
    assert not found.hole


@pytest.mark.parametrize(
    ("more", "repeated", "file", "reused"),
    [
        # The history begins in the first of the files without transactions.
        (
            [log("b.5", "", "", 50), log("b.6", "", "", 60), log("b.7", "", "1-2", 70)],
            [],
            "b.5",
            "1-2",
        ),
        # A file without transactions that has lost nothing is not where it begins.
        ([log("b.4", "1-17", "", 40), log("b.5", "", "1-2", 50)], [], "b.5", "1-2"),
        # It is not proved: no file has them twice.
        ([log("b.4", "1-15", "16-17", 40)], [repeat(2, 3)], "b.4", "16-17"),
        # One GTID is the same in two files, and another transaction in a third.
        (
            [log("b.4", "1-14", "15-17", 40), log("b.5", "1-17", "18", 50)],
            [repeat(2, 3, same="15-17"), repeat(1, 3, different="15")],
            "b.4",
            "15",
        ),
        # After a restored backup, the end of the log is lost.
        (
            [log("b.4", "1-14", "15-19", 40), log("b.5", "1-18", "19", 50)],
            [repeat(2, 3, same="15-17")],
            "b.5",
            "19",
        ),
        # After a new history, another one.
        (
            [log("b.4", "1-14", "15-16", 40), log("b.5", "1-15", "16", 50)],
            [repeat(2, 3, different="15-16"), repeat(3, 4, different="16")],
            "b.5",
            "16",
        ),
    ],
)
def test_where_a_history_begins(
    more: list[ArchivedLog], repeated: list[RepeatedGtids], file: str, reused: str
) -> None:
    found = cover_of(GtidSet(), (*OLD, *more), repeated)
    last = found.new_histories[-1]
    assert (last.file, last.reused) == (file, gtids(reused))
    assert last.is_proved is any(each.different for each in repeated)


def test_a_receiver_forgets_what_it_received() -> None:
    """With relay_log_recovery the receiver fetches again what was not executed."""

    def relay(name: str, previous: str, inside: str, at: int) -> ArchivedLog:
        return log(name, previous, inside, at, is_relay_log=True)

    first = (relay("r.000001", "", "1-7", 10), relay("r.000002", "1-7", "8-9", 20))
    later = relay("r.000003", "", "9-12", 30)
    assert not cover_of(GtidSet(), (*first, later), [repeat(1, 2, same="9")]).new_histories
    assert not cover_of(GtidSet(), (*first, relay("r.000003", "", "10", 30))).new_histories
    listed = (relay("r.000003", "8", "10", 30), relay("r.000004", "8:10", "11", 40))
    assert not cover_of(GtidSet(), (*first, *listed)).new_histories
    new = cover_of(GtidSet(), (*first, later), [repeat(1, 2, different="9")]).new_histories
    assert [(each.file, each.reused) for each in new] == [("r.000003", gtids("9"))]


def test_a_relay_log_does_not_list_what_was_there_before(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for is_relay_log, said in ((True, "normal: they list only"), (False, "archive does not know")):
        file = log("r.000001", "", "8-9", 10, is_relay_log=is_relay_log)
        found = cover_of(gtids("1-7"), [file])
        show_cover(found)
        assert verdict_of(found) is Verdict.WARNING
        assert said in " ".join(capsys.readouterr().out.split())


def test_two_transactions_of_two_servers() -> None:
    files = (*OLD, log("c.000001", "", "1-4", 50, server_id=2))
    found = cover_of(gtids("1-7"), files, [repeat(0, 3, same="1-3", different="4")])
    assert verdict_of(found) is Verdict.UNKNOWN
    [new] = found.new_histories
    assert (new.file, new.before, new.reused) == ("c.000001", "b.000001", gtids("4"))


def test_a_new_history_inherits_what_its_first_header_lists() -> None:
    """The server lost 15-17, and b.000004 has others: 1-14 are in the files before."""
    files = (*OLD, log("b.000004", "1-14", "15-18", 40))
    found = cover_of(GtidSet(), files, [repeat(2, 3, different="15-17")])
    assert (found.hole, verdict_of(found)) == (GtidSet(), Verdict.UNKNOWN)
    without = (OLD[0], OLD[2], files[-1])
    found = cover_of(GtidSet(), without, [repeat(1, 2, different="15-17")])
    assert found.hole == gtids("8-12")


def test_a_copy_with_another_content_is_no_copy() -> None:
    files = (*OLD, replace(OLD[1], file="b.000002", gtids=gtids("8-12")))
    found = cover_of(GtidSet(), files, [repeat(1, 3, different="8-12")])
    assert verdict_of(found) is Verdict.UNKNOWN


def test_the_number_in_a_name_is_that_of_the_log() -> None:
    files = [replace(each, file=f"db.7.{each.file}", origin=LogOrigin(1, 10)) for each in OLD]
    assert not cover_of(GtidSet(), files[::-1]).new_histories
    names = ("db.7.b.000012", "b.000002.part", "b.000002.20261130", "b.3", "b")
    assert [number_in(name) for name in names] == [12, 2, 2, 3, 0]
