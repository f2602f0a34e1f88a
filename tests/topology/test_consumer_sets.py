"""P4: what is said of a consumer, how sure it is, and that `handshake` says the same.

The stories of scenarios.txt have the cases themselves.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gtid import GtidSet
from tests.consumers import AFTER, BEFORE, a_consumer, an_unread_consumer
from tests.snapshots import HERE, NOON, A, B, C, a_channel, a_cluster, a_server, an_unread
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding, Grade, Severity, Verdict
from topology.facts.cluster_facts import gather_facts
from topology.facts.source_answer import Outcome
from topology.handshake.offered_sets import answers_to_set
from topology.policy import Policy
from topology.questions.log_questions import questions_of
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.history_evidence import HistoryEvidence, LogReach
from topology.readings.snapshot import (
    BinaryLog,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
)

DAY = timedelta(days=1)
WEEK = ("binlog_expire_logs_seconds", "604800")
TAGGED = "A:1-9:dba:1-4"
CLOCK = NOON + timedelta(seconds=1, milliseconds=40)  # when the last readings end


def gtids(text: str) -> GtidSet:
    for letter, uuid in (("A", A), ("B", B), ("C", C)):
        text = text.replace(f"{letter}:", f"{uuid}:")
    return GtidSet.parse(text)


def source(executed: str = "A:1-9", purged: str = "", **facts: Any) -> ServerSnapshot:
    return a_server("a", A, gtids(executed), gtid_purged=gtids(purged), **facts)


def replica(executed: str = "A:1-9", purged: str = "", **facts: Any) -> ServerSnapshot:
    channel = a_channel("a", A, gtid_retrieved=gtids(executed))
    made = a_server("b", B, gtids(executed), gtid_purged=gtids(purged), channels=(channel,))
    return replace(made, **facts)


def cluster(*servers: ServerSnapshot, consumers: tuple[ConsumerReading, ...]) -> ClusterSnapshot:
    return replace(a_cluster("pair", *servers), consumers=consumers)


def audited(
    *servers: ServerSnapshot, consumer: ConsumerReading, policy: Policy | None = None
) -> ClusterAudit:
    return audit_cluster(cluster(*servers, consumers=(consumer,)), policy)


def only(audit: ClusterAudit) -> Finding:
    [finding] = [each for each in audit.findings if each.code == "P4"]
    return finding


def facts_of(finding: Finding) -> dict[tuple[str, str], str]:
    return {(each.read_from, each.fact): each.value for each in finding.evidence}


# -- what is said ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("applier", "missing"), [("RUNNING", None), ("STOPPED", "A:8-9")])
def test_a_stopped_applier_executes_nothing_that_its_receiver_will_fetch(
    applier: str, missing: str | None
) -> None:
    """b has received A:8 and waits for A:9 (T3): with a running applier both are on their way."""
    assert HERE is not None, "a file with a number"
    behind = LogPosition.of(file=HERE.file, position=HERE.position - 1)
    channel = a_channel("a", A, gtid_retrieved=gtids("A:1-8"), received_to=behind)
    channel = replace(channel, applier=ThreadState[applier], applied_to=behind)
    consumer = a_consumer("cdc", gtids("A:1-9"), server="b", is_fixed=True)
    audit = audited(source(), replica("A:1-7", channels=(channel,)), consumer=consumer)
    assert ("T3", gtids("A:9")) in {(each.code, each.gtid_set) for each in audit.findings}
    found = [each.gtid_set for each in audit.findings if each.code == "P4"]
    assert found == ([] if missing is None else [gtids(missing)])


def test_a_source_that_was_not_read_may_still_deliver() -> None:
    """The consumer read from a, which does not answer now, and was moved to b."""
    consumer = a_consumer("cdc", gtids("A:1-9"), server="b", is_fixed=True)
    found = only(audited(an_unread("a"), replica("A:1-8"), consumer=consumer))
    assert (found.grade, found.gtid_set) == (Grade.LIKELY, gtids("A:9"))
    assert "They may still arrive from a (not read, or not evaluated)." in found.explanation


def test_a_source_whose_channels_were_not_read_may_still_deliver() -> None:
    consumer = a_consumer("cdc", gtids("C:1,A:1-9"), server="b", is_fixed=True)
    found = only(audited(source(channels=None), replica(), consumer=consumer))
    assert (found.grade, found.gtid_set) == (Grade.LIKELY, gtids("C:1"))
    assert "They may still arrive from a (not read, or not evaluated)." in found.explanation
    certain = only(audited(source(), replica(), consumer=consumer))
    assert (certain.grade, certain.gtid_set) == (Grade.PROVED, gtids("C:1"))
    assert "may still arrive" not in certain.explanation


def test_a_relay_log_may_have_what_its_source_lost() -> None:
    channel = a_channel("a", A, gtid_retrieved=gtids("C:1,A:1-9"))
    below = replace(replica(), channels=(channel,))
    consumer = a_consumer("cdc", gtids("C:1,A:1-9"), server="b", is_fixed=True)
    found = only(audited(source(), below, consumer=consumer))
    assert (found.grade, found.gtid_set) == (Grade.LIKELY, gtids("C:1"))
    assert "They may still arrive from the relay log of b." in found.explanation


def test_a_consumer_may_have_read_what_a_source_is_committing() -> None:
    """A source sends a transaction before it executes it; b gets it then."""
    consumer = a_consumer("cdc", gtids("A:1-10"), server="b", is_fixed=True)
    found = audited(source(gtid_owned=gtids("A:10")), replica(), consumer=consumer)
    assert [each for each in found.findings if each.code == "P4"] == []
    assert found.verdict is Verdict.OK
    lost = only(audited(source(), replica(), consumer=consumer))
    assert (lost.grade, lost.gtid_set) == (Grade.PROVED, gtids("A:10"))


@pytest.mark.parametrize(("received", "is_found"), [("A:1-9", True), ("A:1-10", False)])
def test_a_receiver_that_failed_brings_nothing_new(received: str, *, is_found: bool) -> None:
    channel = a_channel(
        "a",
        A,
        gtid_retrieved=gtids(received),
        receiver=ThreadState.STOPPED,
        receiver_errno=13114,
        receiver_error="Got fatal error 1236",
    )
    below = replace(replica(), channels=(channel,))
    consumer = a_consumer("cdc", gtids("A:1-10"), server="b", is_fixed=True)
    found = audited(source(gtid_owned=gtids("A:10")), below, consumer=consumer)
    assert ["P4" in {each.code for each in found.findings}] == [is_found]


@pytest.mark.parametrize("receiver", [ThreadState.RUNNING, ThreadState.STOPPED])
def test_what_is_on_its_way_to_a_source_does_not_pass_a_receiver_that_failed(
    receiver: ThreadState,
) -> None:
    """b still has to apply A:9 (T2), and the receiver of c was refused."""
    waits = a_channel("a", A, gtid_retrieved=gtids("A:1-9"))
    refused = {"receiver_errno": 13114, "receiver_error": "Got fatal error 1236"}
    failed = refused if receiver is ThreadState.STOPPED else {}
    below = a_channel("b", B, gtid_retrieved=gtids("A:1-8"), receiver=receiver, **failed)
    middle = replica("A:1-8", channels=(waits,))
    end = a_server("c", C, gtids("A:1-8"), channels=(below,))
    consumer = a_consumer("cdc", gtids("A:1-9"), server="c", is_fixed=True)
    audit = audited(source(), middle, end, consumer=consumer)
    assert ("T2", "b") in {(each.code, each.replica) for each in audit.findings}
    found = ["P4" for each in audit.findings if each.code == "P4"]
    assert found == (["P4"] if receiver is ThreadState.STOPPED else [])


@pytest.mark.parametrize(
    ("applier", "is_open"), [(ThreadState.RUNNING, True), (ThreadState.STOPPED, False)]
)
def test_a_relay_log_of_a_replaced_source_may_deliver(
    applier: ThreadState, *, is_open: bool
) -> None:
    """a has replaced a server with the UUID of C; b still has C:1 of that one, and feeds c."""
    former = a_channel(
        "a", C, gtid_retrieved=gtids("C:1"), receiver=ThreadState.CONNECTING, applier=applier
    )
    middle = replica("A:1-8", channels=(former,))
    end = a_server("c", UUID(int=4), gtids("A:1-8"), channels=(a_channel("b", B),))
    consumer = a_consumer("cdc", gtids("A:1-8,C:1"), is_fixed=True)
    snapshot = cluster(source("A:1-8"), middle, end, consumers=(consumer,))
    audit = audit_cluster(snapshot)
    answers = answers_to_set(snapshot, audit, Policy(), gtids("A:1-8,C:1"))
    found = {each.source: each.outcome for each in answers.answers}
    assert (found["c"] is not Outcome.DIVERGED) is is_open


@pytest.mark.parametrize("applier", [ThreadState.RUNNING, ThreadState.STOPPED])
def test_an_applier_that_failed_executes_nothing_new(applier: ThreadState) -> None:
    """a was committing A:10 at first; b has received it, and c has read it."""
    stopped = {"applier_errno": 1062, "applier_error": "Duplicate entry"}
    failed = stopped if applier is ThreadState.STOPPED else {}
    channel = a_channel("a", A, gtid_retrieved=gtids("A:1-10"), applier=applier, **failed)
    below = replace(replica(), channels=(channel,))
    consumer = a_consumer("cdc", gtids("A:1-10"), server="b", is_fixed=True)
    found = audited(source(gtid_owned=gtids("A:10")), below, consumer=consumer)
    codes = {each.code for each in found.findings}
    assert ("P4" in codes) is (applier is ThreadState.STOPPED)


def test_the_refusal_of_the_server_is_in_the_finding_with_its_text() -> None:
    found = only(audited(source(purged="A:1-5"), consumer=a_consumer("cdc", gtids("A:1-3"))))
    assert found.explanation.startswith(
        "No server serves the set of cdc. a has purged 2 transactions that the set does not have."
    )
    shown = facts_of(found)
    assert shown["cdc", "GTID set, from /var/lib/offset.json"] == str(gtids("A:1-3"))
    assert shown["a", "gtid_purged"] == str(gtids("A:1-5"))
    assert shown["a", "purged, and not in the set"] == str(gtids("A:4-5"))
    assert shown["a", "a replica with this set would report"].startswith(
        "13114: Got fatal error 1236 from source when reading data from binary log"
    )


def test_who_serves_it_instead_is_said_and_until_when() -> None:
    reach = LogReach(gtids("A:4-9"), "binlog.000002", NOON - DAY)
    evidence = HistoryEvidence(None, (), reaches=(reach,))
    serving = replica(settings=(WEEK,), history_evidence=evidence, server_clock=CLOCK)
    found = only(
        audited(
            source(purged="A:1-5"), serving, consumer=a_consumer("cdc", gtids("A:1-3"), server="a")
        )
    )
    assert (found.source, found.replica) == ("a", "cdc")
    assert found.explanation.startswith("a, from which cdc reads, does not serve its set.")
    assert "b serves it, until 2026-01-08 12:00:00 UTC at least." in found.explanation
    assert found.deadline == NOON + 6 * DAY
    unlimited = only(
        audited(
            source(purged="A:1-5"),
            replica(),
            consumer=a_consumer("cdc", gtids("A:1-3"), server="a"),
        )
    )
    assert "b serves it." in unlimited.explanation
    assert unlimited.deadline is None


@pytest.mark.parametrize("is_fixed", [True, False])
def test_only_a_set_that_cannot_change_proves_that_it_is_refused(is_fixed: bool) -> None:
    consumer = a_consumer("cdc", gtids("A:1-3"), is_fixed=is_fixed)
    found = only(audited(source(purged="A:1-5"), consumer=consumer))
    assert found.grade is (Grade.PROVED if is_fixed else Grade.LIKELY)
    assert ("may have read on" in found.explanation) is not is_fixed
    failing_over = only(audited(source(), replica(purged="A:1-5"), consumer=consumer))
    assert failing_over.severity is Severity.WARNING
    assert failing_over.grade is found.grade
    assert ("let it read on" in failing_over.explanation) is not is_fixed
    assert ("Replace cdc by a newer one" in failing_over.explanation) is is_fixed
    assert ("may have read on" in failing_over.explanation) is not is_fixed


def test_a_server_that_lost_what_the_consumer_read_refuses_it() -> None:
    found = only(
        audited(source(), replica(), consumer=a_consumer("c", gtids("A:1-11"), server="a"))
    )
    assert (found.severity, found.grade) == (Severity.CRITICAL, Grade.PROVED)
    assert "a does not have 2 transactions of its own that the set has" in found.explanation
    assert "b accepts it, and does not have 2 transactions of the set." in found.explanation
    assert "policy.allowed_uuids" in found.explanation
    assert [each.name for each in found.strategies] == ["new_snapshot"]


def test_a_server_without_a_log_serves_no_consumer() -> None:
    settings = (("log_bin", "OFF"),)
    found = only(
        audited(source(settings=settings), consumer=a_consumer("cdc", gtids("A:1-3"), server="a"))
    )
    assert found.severity is Severity.CRITICAL
    assert "a has no binary log." in found.explanation
    assert "policy.allowed_uuids" not in found.explanation, "no transaction is extra"


def test_tags_are_part_of_a_set() -> None:
    consumer = a_consumer("cdc", gtids("A:1-9"))
    found = only(audited(source(TAGGED, purged="A:dba:1-3"), consumer=consumer))
    assert found.gtid_set == gtids("A:dba:1-3")
    behind = a_consumer("cdc", gtids("A:1-9:dba:1-3"))
    assert audited(source(TAGGED, purged="A:dba:1-3"), consumer=behind).verdict is Verdict.OK


def test_what_a_server_purged_is_proved_whatever_others_may_deliver() -> None:
    """An unread source leaves open what a server does not have, not what it has purged."""
    outside = a_channel("elsewhere", C, gtid_retrieved=gtids("A:1-2"))
    policy = Policy(external_sources=frozenset({"elsewhere.example:3306"}))

    def graded(offered: str, **facts: Any) -> Grade:
        server = source(channels=(outside,), **facts)
        consumer = a_consumer("cdc", gtids(offered), server="a", is_fixed=True)
        return only(audited(server, consumer=consumer, policy=policy)).grade

    assert graded("A:1-3", purged="A:1-5") is Grade.PROVED
    assert graded("A:1-11") is Grade.LIKELY
    assert graded("A:1-9,B:1") is Grade.LIKELY


def test_a_server_that_serves_it_with_a_doubt_is_no_way_out() -> None:
    gone = replica(binary_logs=(BinaryLog("binlog.000001", 0),))
    consumer = a_consumer("cdc", gtids("A:1-3"), server="a")
    found = only(audited(source(purged="A:1-5"), gone, consumer=consumer))
    assert "b serves it, but b cannot open its binary log binlog.000001" in found.explanation
    assert [each.name for each in found.strategies] == ["new_snapshot"]


def test_a_doubt_counts_although_another_server_only_accepts_the_set() -> None:
    """a has lost what b has, and b may not be able to send it."""
    gone = replica("A:1-9,B:1-2", binary_logs=(BinaryLog("binlog.000001", 0),))
    without_b = source(channels=())
    audit = audited(without_b, gone, consumer=a_consumer("cdc", gtids("A:1-3,B:1-2")))
    assert [each.fact for each in audit.unknown if each.server == "cdc"] == [
        "whether b serves its set"
    ]


# -- the order of the readings --------------------------------------------------------------------


def test_the_first_reading_decides_what_is_extra_and_the_last_one_what_is_missing() -> None:
    """Both ends of a busy consumer: it read on, past what its server had and past what it purged."""
    busy = a_consumer("cdc", gtids("A:1-3"), later=gtids("A:1-20"), server="a")
    assert audited(source(purged="A:1-9"), consumer=busy).verdict is Verdict.OK
    ahead = a_consumer("cdc", gtids("A:1-20"), server="a")
    assert only(audited(source(), consumer=ahead)).gtid_set == gtids("A:10-20")
    behind = a_consumer("cdc", gtids("A:1-3"), later=gtids("A:1-4"), server="a")
    assert only(audited(source(purged="A:1-9"), consumer=behind)).gtid_set == gtids("A:5-9")


def test_what_a_server_is_committing_is_not_lost() -> None:
    """AFTER_SYNC: a consumer receives what its source does not list yet."""
    committing = source(gtid_owned=gtids("A:10"))
    consumer = a_consumer("cdc", gtids("A:1-10"), server="a")
    assert audited(committing, consumer=consumer).verdict is Verdict.OK


def test_what_is_likely_to_arrive_is_left_to_the_finding_about_it() -> None:
    """A replica that is behind, and shows too little of its applier: T2 says that, and not P4."""
    server = replica("A:1-5")
    channel = a_channel("a", A, gtid_retrieved=gtids("A:1-9"), lag_seconds=1)
    behind = replace(server, channels=(channel,))
    audit = audited(source(), behind, consumer=a_consumer("cdc", gtids("A:1-9"), server="b"))
    assert [(each.code, each.grade) for each in audit.findings] == [("T2", Grade.LIKELY)]
    assert (audit.verdict, audit.unknown) == (Verdict.OK, ())


def moved(consumer: ConsumerReading, **at: datetime) -> ConsumerReading:
    first, last = (
        OfferedReading(at.get(name, each.read_at), each.gtid_set)
        for name, each in (("first", consumer.first), ("last", consumer.last))
    )
    return replace(consumer, first=first, last=last)


@pytest.mark.parametrize(
    ("consumers", "problem"),
    [
        ((moved(a_consumer("c", GtidSet()), first=NOON + DAY / 86400 / 100),), "not read around"),
        ((moved(a_consumer("c", GtidSet()), last=BEFORE),), "not read around"),
        ((a_consumer("a", GtidSet()),), "a name of a consumer appears twice"),
        ((a_consumer("c", GtidSet()),) * 2, "a name of a consumer appears twice"),
        ((a_consumer("d", GtidSet()), a_consumer("c", GtidSet())), "not in order of name"),
        ((a_consumer("c", GtidSet(), server="z"),), "a server that the cluster does not have"),
    ],
)
def test_a_snapshot_refuses_consumers_that_prove_nothing(
    consumers: tuple[ConsumerReading, ...], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        cluster(source(), consumers=consumers)


def test_a_reading_is_either_a_set_or_a_reason() -> None:
    for gtid_set, unread in ((None, ""), (GtidSet(), "why")):
        with pytest.raises(ValueError, match="either read, or unread"):
            OfferedReading(NOON, gtid_set, unread)
    with pytest.raises(ValueError, match="before the first"):
        moved(a_consumer("c", GtidSet()), first=AFTER, last=BEFORE)


# -- until when -----------------------------------------------------------------------------------


def kept(closed_ago: timedelta, retention: timedelta, **facts: Any) -> ServerSnapshot:
    reach = LogReach(gtids("A:4-9"), "binlog.000002", NOON - closed_ago)
    settings = (("binlog_expire_logs_seconds", str(int(retention.total_seconds()))),)
    evidence = HistoryEvidence(None, (), reaches=(reach,))
    return source(settings=settings, history_evidence=evidence, server_clock=CLOCK, **facts)


@pytest.mark.parametrize(
    ("closed_ago", "retention", "policy", "is_short"),
    [
        (6.5 * DAY, 7 * DAY, Policy(), True),
        (5.5 * DAY, 7 * DAY, Policy(), False),
        (5.5 * DAY, 7 * DAY, Policy(runway_seconds_min=2 * 86_400), True),
        # Half of the time is enough where logs are kept for less than twice the policy.
        (DAY / 4, DAY, Policy(), False),
        (DAY * 0.51, DAY, Policy(), True),
        (7.5 * DAY, 7 * DAY, Policy(), True),
    ],
)
def test_a_log_that_goes_soon_is_a_warning_with_its_time(
    closed_ago: timedelta,
    retention: timedelta,
    policy: Policy,
    is_short: bool,
) -> None:
    audit = audited(
        kept(closed_ago, retention), consumer=a_consumer("cdc", gtids("A:1-3")), policy=policy
    )
    assert any(each.code == "P4" for each in audit.findings) is is_short
    if not is_short:
        return
    found = only(audit)
    assert (found.severity, found.grade) == (Severity.WARNING, Grade.LIKELY)
    assert (found.source, found.replica) == ("a", "cdc")
    assert found.deadline == NOON - closed_ago + retention
    assert "cdc needs 6 transactions from the binary logs of a, from binlog.000002" in (
        found.explanation
    )
    assert facts_of(found)["a", "first binary log with any of them"] == "binlog.000002"


def two_kept(ago_a: float, ago_b: float) -> tuple[ServerSnapshot, ServerSnapshot]:
    """Return two servers that keep their logs for a week, and closed the needed ones so long ago."""
    first = kept(ago_a * DAY, 7 * DAY)
    shown = kept(ago_b * DAY, 7 * DAY)
    return first, replica(
        settings=shown.settings, history_evidence=shown.history_evidence, server_clock=CLOCK
    )


def test_the_server_that_keeps_its_logs_longest_decides_for_a_consumer_of_any() -> None:
    anywhere = a_consumer("cdc", gtids("A:1-3"))
    for ago, name in (((6.9, 6.5), "b"), ((6.5, 6.9), "a"), ((6.5, 6.5), "a")):
        found = only(audited(*two_kept(*ago), consumer=anywhere))
        assert found.source == name
        assert found.deadline == NOON + DAY / 2
    assert audited(*two_kept(6.9, 3), consumer=anywhere).verdict is Verdict.OK
    of_a = a_consumer("cdc", gtids("A:1-3"), server="a")
    assert only(audited(*two_kept(6.9, 3), consumer=of_a)).source == "a"


def test_a_server_that_does_not_serve_it_does_not_decide_until_when() -> None:
    """a keeps its logs for ever, and has not what the set and b have."""
    _, serving = two_kept(0, 6.5)
    serving = replace(serving, gtid_executed=gtids("A:1-9,B:1-2"))
    audit = audited(source(), serving, consumer=a_consumer("cdc", gtids("A:1-3,B:1-2")))
    assert only(audit).source == "b"


def test_a_time_that_could_not_be_read_leaves_it_open_if_the_other_is_short() -> None:
    short, serving = two_kept(6.5, 0)
    unread = replace(serving, history_evidence=HistoryEvidence(None, (), "no privilege"))
    audit = audited(short, unread, consumer=a_consumer("cdc", gtids("A:1-3")))
    assert [each.code for each in audit.findings] == []
    assert [(each.server, each.reason) for each in audit.unknown] == [("cdc", "no privilege")]
    nothing_found = replace(short, history_evidence=HistoryEvidence(None, ()))
    assert audited(nothing_found, consumer=a_consumer("cdc", gtids("A:1-3"))).unknown == ()


def test_a_server_without_a_limit_gives_no_time() -> None:
    """b could be deleted from, c keeps its logs for ever: then there is no deadline."""
    _, limited = two_kept(0, 1)
    channel = a_channel("a", A, gtid_retrieved=gtids("A:1-9"))
    unlimited = a_server("c", C, gtids("A:1-9"), channels=(channel,))
    consumer = a_consumer("cdc", gtids("A:1-3"), server="a")
    found = only(audited(source(purged="A:1-5"), limited, unlimited, consumer=consumer))
    assert found.deadline is None
    assert "c serves it." in found.explanation


def test_a_consumer_that_has_everything_needs_no_log() -> None:
    audit = audited(kept(7 * DAY, 7 * DAY), consumer=a_consumer("cdc", gtids("A:1-9")))
    assert audit.verdict is Verdict.OK


def test_logs_that_could_not_be_read_leave_the_time_open() -> None:
    unread = source(settings=(WEEK,), history_evidence=HistoryEvidence(None, (), "no privilege"))
    audit = audited(unread, consumer=a_consumer("cdc", gtids("A:1-3")))
    assert audit.verdict is Verdict.UNKNOWN
    [gap] = audit.unknown
    assert (gap.server, gap.reason) == ("cdc", "no privilege")
    assert gap.fact == "until when a can send what its set does not have"


def test_logs_that_no_answer_needs_may_be_unread() -> None:
    """A consumer that has everything, and a server that keeps its logs for ever."""
    unread = HistoryEvidence(None, (), "no privilege")
    limited = source(settings=(WEEK,), history_evidence=unread)
    assert audited(limited, consumer=a_consumer("cdc", gtids("A:1-9"))).verdict is Verdict.OK
    forever = source(history_evidence=unread)
    assert audited(forever, consumer=a_consumer("cdc", gtids("A:1-3"))).verdict is Verdict.OK
    unasked = source(settings=(WEEK,))
    assert audited(unasked, consumer=a_consumer("cdc", gtids("A:1-3"))).verdict is Verdict.OK


def test_an_empty_set_is_shown_as_one() -> None:
    found = only(audited(source(purged="A:1-5"), consumer=a_consumer("cdc", GtidSet())))
    assert facts_of(found)["cdc", "GTID set, from /var/lib/offset.json"] == "(empty)"


def test_a_log_that_the_server_cannot_open_leaves_it_open() -> None:
    gone = source(binary_logs=(BinaryLog("binlog.000001", 0), BinaryLog("binlog.000002", 157)))
    audit = audited(gone, consumer=a_consumer("cdc", gtids("A:1-3"), server="a"))
    assert [each.fact for each in audit.unknown] == ["whether a serves its set"]
    assert "cannot open its binary log binlog.000001" in audit.unknown[0].reason
    healthy = audited(gone, replica(), consumer=a_consumer("cdc", gtids("A:1-3")))
    assert healthy.unknown == (), "any server may serve it, and b does"
    assert audited(gone, consumer=a_consumer("cdc", gtids("A:1-9"))).verdict is Verdict.OK


def test_the_logs_are_asked_for_what_a_consumer_needs() -> None:
    def asked(*consumers: ConsumerReading) -> list[GtidSet]:
        facts = gather_facts(cluster(source(), replica(), consumers=consumers), Policy())
        return [each for found in questions_of(facts).values() for each in found.reaches]

    assert asked(a_consumer("cdc", gtids("A:1-7"))) == [gtids("A:8-9")] * 2
    assert asked(a_consumer("cdc", gtids("A:1-9"))) == []
    assert asked(an_unread_consumer("cdc")) == []


# -- what is not known ----------------------------------------------------------------------------


def test_a_set_that_was_not_read_is_unknown_by_the_name_of_its_consumer() -> None:
    audit = audited(source(), replica(), consumer=an_unread_consumer("cdc"))
    assert audit.verdict is Verdict.UNKNOWN
    [gap] = audit.unknown
    assert (gap.server, gap.fact) == ("cdc", "GTID set of the consumer")
    assert gap.reason == "no answer within 5 seconds"


def test_a_set_that_shrank_is_unknown() -> None:
    reset = a_consumer("cdc", gtids("A:1-9"), later=gtids("A:1-2"))
    audit = audited(source(), consumer=reset)
    assert audit.verdict is Verdict.UNKNOWN
    assert "the set shrank" in audit.unknown[0].reason


# -- the same as handshake ------------------------------------------------------------------------

SETS = ["", "A:1-3", "A:1-5", "A:1-9", "A:1-11", "B:1-4", "A:1-9,B:1-2", "A:2-9"]
PURGED = ["", "A:1-3", "A:1-5"]


@pytest.mark.parametrize("offered", SETS)
@pytest.mark.parametrize("purged", PURGED)
@pytest.mark.parametrize("other", PURGED)
@pytest.mark.parametrize("server", [None, "a", "b"])
def test_it_says_what_handshake_would_answer(
    offered: str, purged: str, other: str, server: str | None
) -> None:
    servers = source(purged=purged), replica("A:1-9,B:1-3", purged=other)
    consumer = a_consumer("cdc", gtids(offered), server=server)
    snapshot = cluster(*servers, consumers=(consumer,))
    audit = audit_cluster(snapshot)
    matrix = answers_to_set(snapshot, audit, Policy(), gtids(offered))
    outcome = {each.source: each.outcome for each in matrix.answers}
    decisive = outcome.values() if server is None else [outcome[server]]
    found = [each for each in audit.findings if each.code == "P4"]
    now = [each for each in found if each.source == server]
    is_served = Outcome.SERVED in decisive
    if server is not None or not is_served:
        assert bool(now) is not is_served
    assert any(each.severity is Severity.CRITICAL for each in found) is (
        not is_served and set(decisive) == {Outcome.REFUSED}
    )
    assert all(each.source in (None, *outcome) for each in found)
