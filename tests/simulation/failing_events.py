"""What a planner reads of events that were logged with an error: see repair/adapters/read_events.py."""

from __future__ import annotations

from collections.abc import Iterator

from gtid import Gtid as ProductGtid
from repair.content.failing_event import FailingEvent
from tests.simulation.reading import gtids, members_of, position
from tests.simulation.state import Place, Server, Transaction, World, uuid_of
from topology.catalogue.findings import ClusterAudit


def failing_events(world: World, audit: ClusterAudit) -> Iterator[tuple[str, FailingEvent]]:
    """Yield the events that were logged with an error and stop an applier, or would (A1, A3, H1)."""
    for finding in audit.findings:
        if finding.code not in ("A1", "A3", "H1") or None in (finding.source, finding.replica):
            continue
        source, replica = world[str(finding.source)], world[str(finding.replica)]
        if finding.code == "H1":
            wanted = members_of(finding.gtid_set, world)
        else:
            channel = replica.channel(finding.channel or "")
            failed = channel.failed if channel is not None else None
            wanted = {failed.gtid} if failed is not None else set()
        for log in source.files:
            for at, each in enumerate(log.entries):
                if each.gtid in wanted and each.failed_on_source:
                    wanted = set()  # the first one
                    yield finding.id, _failing_event(source, each, log.number, at)


def _failing_event(source: Server, made: Transaction, file: int, at: int) -> FailingEvent:
    start, end = position(Place(file, at)), position(Place(file, at + 1))
    assert start is not None, "a place has a position"
    assert end is not None, "a place has a position"
    (tsid, gno, _), *_ = gtids([made.gtid]).intervals()
    return FailingEvent(
        source=source.name,
        source_uuid=uuid_of(source.uuid),
        gtid=ProductGtid(tsid, gno),
        start=start,
        end=end,
        error_code=1050,
        schema="sim",
        statement="CREATE VIEW sim.seen AS SELECT 1",
        before=gtids(()),
    )
