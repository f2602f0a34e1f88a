"""What the binary logs of the world answer: the questions that a reading leaves.

It stands for topology/adapters/log_answers.py, which asks real servers. A server that does not
answer, and one whose logs the auditor may not read, leave their questions open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from gtid import GtidSet
from tests.simulation.reading import Reading, gtids, hidden_facts, members_of, moment, position
from tests.simulation.state import Gtid, Place, Server, Transaction, World
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.questions.log_questions import LogQuestions, questions_of
from topology.questions.log_searches import Search
from topology.readings.history_evidence import CommitRecord, HistoryEvidence, LogSearch, LogStart
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot


def with_answers(
    world: World, reading: Reading, snapshot: ClusterSnapshot, policy: Policy
) -> ClusterSnapshot:
    """Return the snapshot with what the logs answer, in the last readings."""
    questions = questions_of(gather_facts(snapshot, policy))
    if not questions:
        return snapshot
    last = tuple(
        replace(server, history_evidence=_answer(world, reading, server, questions))
        if server.name in questions
        else server
        for server in snapshot.last
    )
    return replace(snapshot, last=last)


def _answer(
    world: World, reading: Reading, read: ServerSnapshot, questions: Mapping[str, LogQuestions]
) -> HistoryEvidence:
    name = read.name
    if "logs" in hidden_facts(name, reading, 2):
        return HistoryEvidence(None, (), "commits: access denied")
    server, asked = world[name], questions[name]
    first = server.files[0]
    at = _logged_at(server)
    commits = {
        made.gtid: _record(server, made, at[made.gtid])
        for wanted in asked.commits
        for made in _logged(world, server, wanted)
    }
    absent = GtidSet.union_of(asked.commits) & read.logged - gtids(commits)
    return HistoryEvidence(
        LogStart(f"binlog.{first.number:06}", _second(first.created_at), gtids(first.previous))
        if asked.first_log
        else None,
        tuple(commits[gtid] for gtid in sorted(commits)),
        searches=tuple(_found(world, server, search) for search in asked.searches),
        absent=absent,
        schemas_count=int(bool(server.rows or server.applied))
        if asked.schemas and gtids(server.executed) == read.gtid_executed
        else None,
    )


def _logged(world: World, server: Server, wanted: GtidSet) -> list[Transaction]:
    members = members_of(wanted, world)
    return [each for log in server.files for each in log.entries if each.gtid in members]


def _record(server: Server, made: Transaction, logged_at: datetime) -> CommitRecord:
    is_exact = server.version >= (8, 0, 1)
    at = moment(made.at) if is_exact else _second(made.at)
    return CommitRecord(
        gtids([made.gtid]), made.server_id, at, is_exact, logged_at if is_exact else None
    )


def _logged_at(server: Server) -> dict[Gtid, datetime]:
    """Return when a server logged each transaction: in the order of its log.

    The world does not keep this time. Nothing was logged before it was committed first, or before
    what the log has in front of it: the earliest time that fits stands for it.
    """
    found: dict[Gtid, datetime] = {}
    latest = 0
    for number, made in enumerate(each for log in server.files for each in log.entries):
        latest = max(latest, made.at)
        found[made.gtid] = moment(latest) + timedelta(microseconds=number)
    return found


def _second(ticks: int) -> datetime:
    return moment(ticks).replace(microsecond=0)


def _found(world: World, server: Server, search: Search) -> LogSearch:
    members = members_of(search.wanted, world) & server.logged()
    before = set()
    for log in server.files:
        for at, made in enumerate(log.entries):
            end = position(Place(log.number, at + 1))
            assert end is not None, "it is in a log"
            if made.gtid in members and end <= search.place:
                before.add(made.gtid)
    return LogSearch(
        search.replica, search.channel, str(search.place), gtids(members), gtids(before)
    )
