"""Decides since when a finding exists, from what earlier audits found.

This module is the rule for one process: for runs in Parquet (spark_audit/result_records.py) and for
the history file (topology/adapters/history_file.py). spark_audit/first_seen.py states the rules,
numbers them, and applies them on Spark.

1. It knows neither files nor clocks: the time of a run is the time of its readings.
2. A cluster of which anything was not read disproves nothing: its earlier findings are *carried*.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from topology.catalogue.findings import ClusterAudit

# Contents are compared once after a restart: a later audit without such a finding has not looked.
NOT_LOOKED_FOR_AGAIN: Final = ("E4",)
CARRIED_DAYS_MAX: Final = 30  # longer than any repair of a server, shorter than a year of history


class SeenBefore(Protocol):
    """What the rule needs of a finding of an earlier audit. A Finding is one."""

    @property
    def id(self) -> str:
        """Return the identity of the finding."""

    @property
    def cluster(self) -> str:
        """Return its cluster."""

    @property
    def code(self) -> str:
        """Return its code."""

    @property
    def first_seen(self) -> datetime:
        """Return the time of the first audit that found it."""

    @property
    def last_seen(self) -> datetime:
        """Return the time of the last audit that found it."""


Seen = TypeVar("Seen", bound=SeenBefore)


def with_history(
    audits: Sequence[ClusterAudit], *, known: Sequence[Seen], run_at: datetime
) -> tuple[tuple[ClusterAudit, ...], tuple[Seen, ...]]:
    """Return the audits with `first_seen` from what was known, and the carried findings.

    `known` are the findings of the previous audit and those that it carried. Carried findings are
    absent now, and this audit could not disprove them. All others that are absent are gone.
    """
    since: dict[str, datetime] = {}
    for one in known:
        since[one.id] = min(since.get(one.id, one.first_seen), one.first_seen)
    dated = tuple(_dated(audit, since) for audit in audits)
    found = {finding.id for audit in audits for finding in audit.findings}
    looked_at = clusters_read(audits)
    oldest = run_at - timedelta(days=CARRIED_DAYS_MAX)
    carried = tuple(
        one
        for one in known
        if one.id not in found
        and one.last_seen >= oldest
        and (one.cluster not in looked_at or one.code in NOT_LOOKED_FOR_AGAIN)
    )
    return dated, carried


def clusters_read(audits: Iterable[ClusterAudit]) -> frozenset[str]:
    """Return the clusters of which every fact was read: only these disprove a finding."""
    return frozenset(audit.cluster for audit in audits if not audit.unknown)


def _dated(audit: ClusterAudit, since: dict[str, datetime]) -> ClusterAudit:
    findings = tuple(
        replace(one, first_seen=min(one.first_seen, since.get(one.id, one.first_seen)))
        for one in audit.findings
    )
    return replace(audit, findings=findings)
