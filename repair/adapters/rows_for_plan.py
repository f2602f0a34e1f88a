"""Reads, for a plan, the rows of a finding of different content.

The result contains the reasons for what could not be read.
"""

from collections.abc import Mapping

from repair.adapters.affected_rows import AffectedRow, AffectedRows, look_up_rows
from repair.adapters.servers_to_read import logs_of
from repair.content.row_versions import RowsRead, RowVersions
from repair.doubts.renamed_databases import renamed_between
from topology.adapters.connection import way_to
from topology.catalogue.findings import Finding
from topology.readings.contents import ContentReading
from topology.readings.snapshot import ServerSnapshot
from topology.readings.target import ServerTarget
from topology.rules.content import lesser_differences


def read_rows(
    finding: Finding,
    targets: Mapping[str, ServerTarget],
    contents: ContentReading | None,
    *,
    seconds_max: float,
    readings: Mapping[str, ServerSnapshot],
) -> RowsRead:
    """Read the rows that a finding's transactions touched from its source and its replica.

    `contents` is the comparison behind the finding. Transactions of the two servers that differ
    less severely are not in the finding's set, and count as not read. `readings` show where rows
    have other names (renamed_databases.py).
    """
    names = (finding.source or "", finding.replica or "")
    unknown = [name for name in names if name not in targets]
    if why := renamed_between(*names, readings):
        return RowsRead(unread=(why,))
    if unknown:
        return RowsRead(unread=tuple(f"no connection to {name} is configured" for name in unknown))
    left, right = (way_to(targets[name], seconds_max=seconds_max) for name in names)
    ours, theirs = (logs_of(targets[name], seconds_max=seconds_max) for name in names)
    logs = ours.events_of, theirs.events_of
    found = look_up_rows(finding.gtid_set, logs, (left, right), seconds_max=seconds_max)
    if contents is not None and (others := lesser_differences(finding, contents)):
        found.note(f"the rows of {others.shortened()}, which differ less severely")
    return _read(found)


def _read(found: AffectedRows) -> RowsRead:
    differing = [row for row in found.rows if row.differs]
    return RowsRead(
        rows=tuple(map(_versions, differing)),
        equal_count=len(found.rows) - len(differing),
        unread=tuple(found.unread),
    )


def _versions(row: AffectedRow) -> RowVersions:
    left, right = row.left or {}, row.right or {}
    return RowVersions(
        table=row.of,
        where=row.key,
        source=row.images[0],
        replica=row.images[1],
        differing=tuple((name, left.get(name), right.get(name)) for name in row.differing()),
    )
