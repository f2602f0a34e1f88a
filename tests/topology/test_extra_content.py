"""What extra transactions would change: read from logs, shown in E1, E3, H7 and J3."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from gtid import GtidSet
from tests.snapshots import A, B, a_channel, a_cluster, a_server
from topology.audit_cluster import audit_cluster
from topology.documents.records import snapshot_from_record, snapshot_to_record
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.content_class import ContentClass
from topology.readings.history_evidence import (
    GAP_SEARCHED_MAX,
    ChangedRows,
    ExtraTransaction,
    HistoryEvidence,
)
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.rules.extra_content import content_text

DATA, DDL, EMPTY = ContentClass.DATA, ContentClass.DDL, ContentClass.EMPTY
AT = datetime.fromisoformat("2026-11-30T23:59:58+00:00")


def extra(
    number: int, content: ContentClass = DATA, seconds: float = 0, **rows: int
) -> ExtraTransaction:
    return ExtraTransaction(
        gtid=GtidSet.parse(f"{B}:{number}"),
        content=content,
        committed_at=AT + timedelta(seconds=seconds),
        rows=tuple(ChangedRows(f"shop.{name}", count) for name, count in rows.items()),
    )


def holder(*extras: ExtraTransaction, unread: str = "", purged: str = "") -> ServerSnapshot:
    evidence = HistoryEvidence(None, (), extras=extras, extras_unread=unread)
    return a_server(
        "b",
        B,
        f"{A}:1-9,{B}:1-200",
        gtid_purged=GtidSet.parse(purged),
        history_evidence=evidence,
        channels=(a_channel("a", A),),
    )


@pytest.mark.parametrize(
    ("extras", "gtids", "text"),
    [
        ((), "1", ""),
        ((extra(2, t=1),), "1", ""),  # of another set
        (
            (extra(1, t=1),),
            "1",
            "Content: data (shop.t: 1 row), committed 2026-11-30 23:59:58 UTC.",
        ),
        (
            (extra(1, t=1, u=1_200), extra(2, t=2, seconds=1)),
            "1-2",
            (
                "Content: data (shop.u: 1,200 rows; shop.t: 3 rows),"
                " committed 2026-11-30 23:59:58 to 23:59:59 UTC."
            ),
        ),
        (
            (extra(1, DDL), extra(2, t=2, seconds=2), extra(3, EMPTY)),
            "1-3",
            (
                "Content: 1 data, 1 DDL, 1 empty (shop.t: 2 rows),"
                " committed 2026-11-30 23:59:58 to 2026-12-01 00:00:00 UTC."
            ),
        ),
        # A part of a large set: the rest is not described.
        (
            (extra(1, EMPTY), extra(200, EMPTY, seconds=0.5)),
            "1-200",
            "Content of 2 transactions of these: empty, committed 2026-11-30 23:59:58 UTC.",
        ),
        (
            (extra(1, ContentClass.UNREAD), extra(2, ContentClass.HARMLESS)),
            "1-2",
            "Content: 1 upkeep or heartbeats, 1 not known, committed 2026-11-30 23:59:58 UTC.",
        ),
        # Many tables; of a transaction with more than eight the rest was not kept.
        (
            (extra(1, a=5, b=4, c=3, d=2, e=1),),
            "1",
            (
                "Content: data (shop.a: 5 rows; shop.b: 4 rows; shop.c: 3 rows; shop.d: 2 rows; 1 other"
                " table), committed 2026-11-30 23:59:58 UTC."
            ),
        ),
        (
            (extra(1, a=1, b=1, c=1, d=1, e=1, f=1, g=1, h=1),),
            "1",
            (
                "Content: data (shop.a: 1 row; shop.b: 1 row; shop.c: 1 row; shop.d: 1 row; at least 4"
                " other tables), committed 2026-11-30 23:59:58 UTC."
            ),
        ),
    ],
)
def test_the_text_says_what_was_read(
    extras: tuple[ExtraTransaction, ...], gtids: str, text: str
) -> None:
    assert content_text(holder(*extras), GtidSet.parse(f"{B}:{gtids}")).strip() == text


def test_what_was_not_read_is_said() -> None:
    one = GtidSet.parse(f"{B}:1")
    assert content_text(a_server("b", B, str(one)), one) == ""
    unread = holder(unread="no answer in 5 s")
    assert content_text(unread, one) == " Their content was not read from b: no answer in 5 s."
    partly = holder(extra(1, t=1), unread="no answer in 5 s")
    assert "Content of 1 transaction of these: data" in content_text(
        partly, GtidSet.parse(f"{B}:1-2")
    )


def pair(server: ServerSnapshot) -> ClusterSnapshot:
    return a_cluster("pair", a_server("a", A, f"{A}:1-9"), server)


def test_it_is_asked_of_the_server_that_has_them_and_did_not_purge_them() -> None:
    def asked(purged: str) -> GtidSet:
        facts = gather_facts(pair(holder(purged=purged)), Policy())
        return questions_of(facts)["b"].extras

    assert asked(f"{B}:1-150") == GtidSet.parse(f"{B}:151-200")
    assert GAP_SEARCHED_MAX < 200
    assert asked("") == GtidSet.parse(f"{B}:1:200"), "of a large set both ends"
    assert "b" not in questions_of(gather_facts(pair(holder(purged=f"{B}:1-200")), Policy()))


def test_the_finding_shows_it_and_a_stored_run_keeps_it() -> None:
    server = holder(*(extra(each, orders=2) for each in (1, 200)))
    [found] = [each for each in audit_cluster(pair(server)).findings if each.code == "E1"]
    assert "Content of 2 transactions of these: data (shop.orders: 4 rows)" in found.explanation
    assert snapshot_from_record(snapshot_to_record(server)) == server
    silent = replace(server, history_evidence=None)
    [before] = [each for each in audit_cluster(pair(silent)).findings if each.code == "E1"]
    assert (before.grade, before.strategies) == (found.grade, found.strategies)
