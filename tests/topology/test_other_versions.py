"""A replica's own GTIDs under which one of its sources has another transaction."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gtid import GtidSet
from tests.snapshots import NOON, A, B, C, a_channel, a_server
from topology.facts import gather_facts
from topology.history_evidence import CommitRecord, HistoryEvidence
from topology.log_questions import Questions, questions_of
from topology.other_versions import with_other_versions
from topology.policy import Policy
from topology.snapshot import ClusterSnapshot, ServerSnapshot

LATER = NOON + timedelta(seconds=1)
OWN = GtidSet.parse(f"{C}:1")


def recorded(server_id: int, *, is_exact: bool = True, at: timedelta = timedelta()) -> CommitRecord:
    return CommitRecord(OWN, server_id, NOON + at, is_exact)


def two_sources(
    ours: CommitRecord | None = None, theirs: CommitRecord | None = None, **of_b: object
) -> ClusterSnapshot:
    """Return c with its own c:1, which its source b has as well, and its source a has not."""
    channels = (a_channel("a", A), replace(a_channel("b", B), name="two"))
    servers = (
        a_server("a", A, ""),
        a_server("b", B, OWN, **of_b),
        a_server("c", C, OWN, channels=channels),
    )

    def read(server: ServerSnapshot, record: CommitRecord | None) -> ServerSnapshot:
        evidence = None if record is None else HistoryEvidence(None, (record,))
        return replace(
            server, phase=2, read_started=LATER, read_ended=LATER, history_evidence=evidence
        )

    last = (read(servers[0], None), read(servers[1], theirs), read(servers[2], ours))
    return ClusterSnapshot("pair", servers, last)


def errant(snapshot: ClusterSnapshot) -> dict[str, GtidSet]:
    facts = gather_facts(snapshot, Policy())
    return {each.edge.source: each.errant for each in facts.edges if each.errant}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (recorded(3), recorded(2)),  # of another server: made by hand
        (recorded(3, is_exact=False), recorded(2, is_exact=False)),
        (recorded(3), recorded(3, at=timedelta(microseconds=1))),  # done again
    ],
)
def test_what_another_source_committed_itself_is_errant_for_the_rest(
    ours: CommitRecord, theirs: CommitRecord
) -> None:
    snapshot = two_sources(ours, theirs)
    assert errant(snapshot) == {"a": OWN}
    assert with_other_versions(snapshot) == OWN


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (recorded(3), recorded(3)),  # b received it, before it became a source of c
        (recorded(3, is_exact=False), recorded(3, is_exact=False, at=timedelta(seconds=5))),
        (recorded(3), recorded(3, is_exact=False, at=timedelta(seconds=5))),
        (recorded(3), None),
        (None, recorded(2)),
        (None, None),
    ],
)
def test_one_commit_or_an_unread_one_counts_as_sent(
    ours: CommitRecord | None, theirs: CommitRecord | None
) -> None:
    snapshot = two_sources(ours, theirs)
    assert errant(snapshot) == {}
    assert with_other_versions(snapshot) == GtidSet()


def asked(snapshot: ClusterSnapshot) -> dict[str, Questions]:
    return dict(questions_of(gather_facts(snapshot, Policy())))


def test_both_logs_are_asked_where_no_channel_explains_it() -> None:
    question = Questions(commits=(OWN,))
    assert asked(two_sources()) == {"b": question, "c": question}
    back = replace(a_channel("c", C), name="back")
    assert asked(two_sources(channels=(back,))) == {}, "b receives from c"
    assert asked(two_sources(gtid_purged=OWN)) == {}, "b has it in no log"
    assert asked(two_sources(gtid_executed=GtidSet())) == {}, "b does not have it"
