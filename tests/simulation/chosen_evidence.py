"""What a planner needs of logs and rows for a choice: rows to undo, transactions to redo, both rows.

It completes evidence.py, which has what a plan without choices reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from gtid import Gtid as ProductGtid
from repair.content.row_versions import RowsRead, RowVersions
from repair.content.transaction_content import NetRow, TransactionContent, key_condition
from repair.model.strategy_case import LogEvidence
from repair.sql.replay import Replayed
from tests.simulation import replication as act
from tests.simulation.evidence import log_evidence, net_changes
from tests.simulation.reading import gtids, members_of
from tests.simulation.state import Gtid, Key, Server, Transaction, World
from tests.simulation.toy_table import TABLE, image, key_in, net_row
from topology.catalogue.findings import ClusterAudit, Finding
from topology.readings.snapshot import ClusterSnapshot


def chosen_evidence(world: World, snapshot: ClusterSnapshot, audit: ClusterAudit) -> LogEvidence:
    """Return what a planner would read for the findings of an audit, for any choice."""
    evidence = log_evidence(world, snapshot, audit)
    contents = {
        finding.id: _completed(world, finding, evidence.contents[finding.id])
        for finding in audit.findings
        if finding.id in evidence.contents
    }
    rows = {
        finding.id: _differing(world, finding)
        for finding in audit.findings
        if finding.code == "E4" and finding.source is not None and finding.replica is not None
    }
    return replace(evidence, contents=contents, rows=rows)


def _completed(world: World, finding: Finding, content: TransactionContent) -> TransactionContent:
    if content.read_from is None:
        return content
    holder = world[content.read_from]
    wanted = members_of(content.wanted, world)
    found = [each for log in holder.files for each in log.entries if each.gtid in wanted]
    redo = tuple(_replayed(each) for each in found if each.changes)
    if any(each.has_statements for each in found):
        return replace(content, redo=redo, rows_unread="logged as a statement")
    net = net_changes(found, holder)
    if net is None:
        return replace(content, redo=redo, rows_unread="not in order")
    rows = tuple(
        net_row(key, before, after)
        for key, (before, after) in sorted(net.items())
        if key not in ("table", act.VIEW)
    )
    if finding.code not in ("A2", "A3") or finding.replica is None:
        return replace(content, redo=redo, rows=rows)
    expected = tuple(_expected(world[finding.replica], rows))
    return replace(content, redo=redo, rows=rows, expected=expected)


def _replayed(made: Transaction) -> Replayed:
    """Return a transaction as SQL; its label is how the simulated script finds it again."""
    has_more = made.has_statements or any(each.kind == "drop" for each in made.changes)
    unguarded = "a statement" if has_more else ""
    return Replayed(str(made.work), ("DO 0;",), gtid=product_gtid(made.gtid), unguarded=unguarded)


def product_gtid(gtid: Gtid) -> ProductGtid:
    (tsid, start, _), *_ = gtids([gtid]).intervals()
    return ProductGtid(tsid, start)


def _expected(replica: Server, rows: tuple[NetRow, ...]) -> Iterator[RowVersions]:
    """Yield the rows of a replica that are not as a failed transaction expects them."""
    for row in rows:
        found = row.key_image
        now = image(key_in(found), replica.rows.get(key_in(found)))
        if now != row.before and (now is not None or row.before is not None):
            where = key_condition(TABLE, found)
            yield RowVersions(TABLE, where, source=row.before, replica=now, differing=())


def _differing(world: World, finding: Finding) -> RowsRead:
    """Return the rows that transactions with two contents touched, where they differ now."""
    source, replica = world[str(finding.source)], world[str(finding.replica)]
    keys: set[Key] = set()
    for gtid in members_of(finding.gtid_set, world):
        for server in (source, replica):
            version = server.logged_version(gtid)
            keys |= {each.key for each in version.changes} if version is not None else set()
    rows = []
    for key in sorted(keys - {"table", act.VIEW}):
        ours, theirs = image(key, source.rows.get(key)), image(key, replica.rows.get(key))
        if ours != theirs:
            found = ours if ours is not None else theirs
            assert found is not None, "one of two different rows is there"
            where = key_condition(TABLE, found)
            rows.append(RowVersions(TABLE, where, source=ours, replica=theirs, differing=()))
    return RowsRead(rows=tuple(rows), equal_count=len(keys) - len(rows))
