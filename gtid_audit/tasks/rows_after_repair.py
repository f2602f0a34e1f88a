"""Reads again the rows that a plan made alike: the audit after it compares only logs (E4)."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from repair.adapters.rows_for_plan import read_rows
from repair.content.row_versions import RowsRead
from topology.catalogue.findings import Finding
from topology.readings.contents import ContentReading
from topology.readings.snapshot import ServerSnapshot
from topology.readings.target import ServerTarget

READINGS_MAX: Final = 5  # of rows that differ
PAUSE_SECONDS: Final = 1.0
ROWS_SECONDS_MAX: Final = 30.0  # for each answer


def rows_after(
    findings: Iterable[Finding],
    targets: Iterable[ServerTarget],
    contents: ContentReading | None,
    readings: Mapping[str, ServerSnapshot],
) -> dict[str, RowsRead]:
    """Return the rows of each finding on its two servers, read again while they differ.

    Clients may write a row on the source between the two answers: equal once is equal. `contents`
    is the comparison behind the findings, and `readings` show where rows have other names.
    """
    known = {each.name: each for each in targets}
    found: dict[str, RowsRead] = {}
    for finding in findings:
        for reading in range(READINGS_MAX):
            if reading:
                time.sleep(PAUSE_SECONDS)
            read = read_rows(
                finding, known, contents, seconds_max=ROWS_SECONDS_MAX, readings=readings
            )
            found[finding.id] = read
            if not read.rows:
                break
    return found
