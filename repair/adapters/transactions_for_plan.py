"""Reads what a plan must know before it leaves out, fetches, redoes or undoes transactions.

For every finding with transactions:

1. A server that still has them sends exactly these (a complement fetch, logged_content.py). Each
   transaction gets its class (transaction_content.py), and its SQL, for redo and for a
   backup.
2. Their rows are compared with those on the finding's servers (states_on_servers.py): the replica
   of a hole, the holders of extra transactions.
3. What cannot be read is UNREAD with the reason. Servers are only read, and within limits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from gtid import GtidSet
from repair.adapters.failing_transaction import failing_transaction
from repair.adapters.logged_content import read_content, with_statements_since
from repair.adapters.servers_to_read import ServersToRead
from repair.adapters.states_on_servers import with_states
from repair.content.content_questions import (
    EXTRA,
    STOPPED,
    ContentQuestion,
    arrivals,
    available,
    question_of,
)
from repair.content.row_versions import RowsRead
from repair.content.transaction_content import TransactionContent, nothing_read
from repair.doubts.doubted_content import compared_with, doubted
from repair.model.own_work import disturbed
from repair.model.strategy_case import LogEvidence
from topology.catalogue.findings import ClusterAudit, Finding
from topology.readings.content_class import ContentClass
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.readings.target import ServerTarget

# The limit per finding. By default no steps are planned for the transactions above it.
TRANSACTIONS_READ_MAX: Final = 10_000


def read_transactions(
    snapshot: ClusterSnapshot,
    audit: ClusterAudit,
    targets: Mapping[str, ServerTarget],
    *,
    seconds_max: float,
) -> LogEvidence:
    """Read the transactions behind an audit's findings; `seconds_max` applies to each finding."""
    contents: dict[str, TransactionContent] = {}
    rows: dict[str, RowsRead] = {}
    brought: dict[tuple[str, str], TransactionContent] = {}
    servers = ServersToRead.of(snapshot, targets, seconds_max)
    waiting = dict(arrivals(snapshot))
    for finding in audit.findings:
        channel = (finding.replica or "", finding.channel or "")
        if finding.code == "A7":
            question = waiting.pop(channel, None)
        else:
            failing = failing_transaction(finding, servers) if finding.code in STOPPED else None
            question = question_of(finding, snapshot, failing=failing)
        if question is None:
            continue
        content, conflicting = _content(question, finding, servers)
        contents[finding.id] = content
        if finding.code == "A7":
            brought[channel] = content
        if conflicting.rows or conflicting.unread:
            rows[finding.id] = conflicting
    for channel, question in waiting.items():  # stopped channels that another finding explains
        brought[channel], _ = _content(question, None, servers)
    return LogEvidence(rows=rows, contents=contents, arrivals=brought)


def _content(
    question: ContentQuestion, finding: Finding | None, servers: ServersToRead
) -> tuple[TransactionContent, RowsRead]:
    """Read the transactions from the best server, and the state of their rows.

    The second value has the rows that conflict. What a stopped channel would deliver may have no
    finding.
    """
    wanted = question.wanted
    held = [
        (available(servers.readings[name]) & wanted, name)
        for name in question.holders
        if name in servers.targets
    ]
    best = max((gtids.gtid_count for gtids, _ in held), default=0)
    if not best:
        return nothing_read(wanted, "no server that could be read still has them"), RowsRead()
    found, name = _fullest(held, best, finding)
    looked_at = found.first(TRANSACTIONS_READ_MAX)
    read = read_content(name, looked_at, servers)
    reasons = [read.unread] if read.unread else []
    if wanted - found:
        reasons.append(f"{(wanted - found).shortened()} is in no binary log of {name}")
    if found - looked_at:
        reasons.append(f"only the first {TRANSACTIONS_READ_MAX:,} were read")
    left = wanted - GtidSet.union_of(read.classes.values())
    unread = read.of_class(ContentClass.UNREAD) | left
    read = replace(
        read,
        classes={**read.classes, ContentClass.UNREAD: unread},
        unread="; ".join(reasons),
    )
    if question.beside and question.is_in_order:
        before = servers.logged_before(question.source, question.wanted)
        read = replace(read, logged_before=before)
    read = doubted(read, _elsewhere(read, question, servers))
    if finding is not None and finding.code in EXTRA:
        read = compared_with(read, _of_other_holders(read, question, servers))
    read = with_statements_since(read, servers)
    names = [name for name in question.servers if name in servers.targets]
    read, conflicting = with_states(read, names, finding, servers)
    return disturbed(read, _own_work(question, servers)), conflicting


def _fullest(
    held: Sequence[tuple[GtidSet, str]], most: int, finding: Finding | None
) -> tuple[GtidSet, str]:
    """Return a server that holds the most, if possible the one that the finding is about.

    Another one may have another transaction under an extra GTID.
    """
    fullest = [each for each in held if each[0].gtid_count == most]
    about = finding.replica if finding is not None and finding.code in EXTRA else None
    return next((each for each in fullest if each[1] == about), fullest[0])


def _elsewhere(
    read: TransactionContent, question: ContentQuestion, servers: ServersToRead
) -> Iterator[tuple[str, GtidSet, TransactionContent]]:
    """Yield the other servers' transactions under the GTIDs that could be declared unneeded."""
    # For purged GTIDs only the origin is read: other servers got them by replication.
    disposable = read.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
    for name in question.holders:
        server = servers.readings[name]
        gtids = disposable & available(server)
        if server.server_uuid is not None:
            own = disposable.from_uuid(server.server_uuid)
            gtids |= own & servers.executed(name)
        # A server that sends nothing by GTID received these from servers that do.
        if server.setting("gtid_mode") not in (None, "ON"):
            gtids -= _received(server)
        if gtids and name in servers.targets and name != read.read_from:
            yield name, gtids, read_content(name, gtids, servers)


def _of_other_holders(
    read: TransactionContent, question: ContentQuestion, servers: ServersToRead
) -> Iterator[tuple[str, TransactionContent]]:
    """Yield what the logs of other servers have under the same GTIDs, where they have all."""
    data = read.of_class(ContentClass.DATA)
    for name in question.holders if data else ():
        is_other = name != read.read_from and name in servers.targets
        if is_other and data <= available(servers.readings[name]):
            yield name, read_content(name, read.wanted, servers)


def _received(server: ServerSnapshot) -> GtidSet:
    """Return what a server did not have when it received it, as auto-position guarantees.

    Without its own GTIDs: a skip counter skips what was received, and it may commit them later.
    """
    by_sets = (each for each in server.channels or () if each.auto_position)
    received = GtidSet.union_of(each.gtid_retrieved for each in by_sets)
    return received.without_uuid(server.server_uuid) if server.server_uuid else received


def _own_work(
    question: ContentQuestion, servers: ServersToRead
) -> Iterator[tuple[str, GtidSet, TransactionContent]]:
    """Yield the receiving servers' own transactions, as far as they can be read."""
    for name, gtids in question.own:
        known = gtids & available(servers.readings[name])
        if name in servers.targets and gtids == known.first(TRANSACTIONS_READ_MAX):
            yield name, gtids, read_content(name, gtids, servers)
        else:
            yield name, gtids, nothing_read(gtids, "purged, or too many to read")
