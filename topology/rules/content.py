"""The rule on content: one GTID, two transactions.

It asks what the binary logs showed (contents.py), which the readings of a cluster do not hold: so
it is not among the rules on readings, and says nothing where contents were not compared.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Final

from gtid import GtidSet
from topology.catalogue import entry_of
from topology.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)
from topology.findings import Evidence, Finding, Grade, Severity
from topology.rules.build import many

# Both versions of so many GTIDs are quoted; the finding's set has all.
VERSIONS_QUOTED_MAX: Final = 8

_SEVERITY: Final = {
    Difference.CONTENT: Severity.CRITICAL,
    # One transaction, no number given twice: the rows had drifted apart before it.
    Difference.DRIFT: Severity.WARNING,
    # Somebody declared the transaction done without its content, or a filter took it away.
    Difference.EMPTY: Severity.WARNING,
    # Redone under its GTID, or its number reused for the same work: the rows agree.
    Difference.COMMIT: Severity.INFO,
}
_ROWS_DIFFER: Final = frozenset({Difference.CONTENT, Difference.DRIFT})


def same_gtid_different_content(contents: ContentReading, *, cluster: str) -> Iterator[Finding]:
    """E4: two servers hold different transactions under one GTID."""
    entry = entry_of("E4")
    ordered = sorted(contents.differences, key=_servers)
    for (source, replica), group in groupby(ordered, key=_servers):
        differences = list(group)
        kinds = {each.difference for each in differences}
        gravest = next(kind for kind in Difference if kind in kinds)
        told = sorted(
            (each for each in differences if each.difference is gravest),
            key=lambda each: each.gtid,
        )
        is_proved = any(each.is_proved for each in told)
        yield Finding(
            code=entry.code,
            name=entry.name,
            severity=_SEVERITY[gravest],
            grade=Grade.PROVED if is_proved else Grade.LIKELY,
            cluster=cluster,
            source=source,
            replica=replica,
            channel=None,
            gtid_set=GtidSet.of(each.gtid for each in told),
            first_seen=contents.read_at,
            last_seen=contents.read_at,
            evidence=tuple(_proof(told, contents.read_at)),
            explanation=_explanation(told, len(differences) - len(told), cut=contents.is_cut),
            strategies=entry.strategies if gravest in _ROWS_DIFFER else (),
        )


def _servers(difference: ContentDifference) -> tuple[str, str]:
    return difference.source.server, difference.replica.server


def _proof(told: list[ContentDifference], read_at: datetime) -> Iterator[Evidence]:
    both = f"{told[0].source.server}, {told[0].replica.server}"
    reasons = dict.fromkeys(each.reason for each in told)
    yield Evidence("what the binary logs show", "; ".join(reasons), both, read_at)
    for each in told[:VERSIONS_QUOTED_MAX]:
        for version in (each.source, each.replica):
            yield Evidence(f"{each.gtid}", _quoted(version), version.server, read_at)


def _quoted(version: TransactionVersion) -> str:
    if version.committed_at is not None:
        moment = f"committed {version.committed_at:%Y-%m-%d %H:%M:%S.%f} UTC"
    else:
        moment = f"logged {version.logged_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"{version.place}, {moment}: {version.content}"


def _explanation(told: list[ContentDifference], others: int, *, cut: bool) -> str:
    gtids = GtidSet.of(each.gtid for each in told)
    source, replica = told[0].source.server, told[0].replica.server
    count = many(gtids)
    if told[0].difference is Difference.CONTENT:
        text = (
            f"{source} and {replica} hold different transactions under the same GTID, {count} in"
            " all. Sets and threads cannot show it: each takes the other's version for its own and"
            " skips it. The server whose UUID they carry lost the first ones in a crash and gave"
            " their numbers again, unless somebody set gtid_next by hand. The rows differ until"
            " they are mended."
        )
        if not any(each.is_proved for each in told):
            text += (
                " Without the moments of both commits it may also be that one transaction met rows"
                " on the replica which had drifted apart before: compare them."
            )
    elif told[0].difference is Difference.DRIFT:
        text = (
            f"{count} committed once found other rows on {replica} than on {source}: the data had"
            " drifted apart before (replica_exec_mode=IDEMPOTENT, writes with sql_log_bin=0, or a"
            " key that is equal where other columns are not). No number was given twice."
        )
    elif told[0].difference is Difference.EMPTY:
        empty, full = _empty_and_full(told[0])
        text = (
            f"{count} did something on {full} and nothing on {empty}: committed empty there, by"
            " hand or by a repair. If that was not on purpose, the work is lacking there."
        )
    else:
        text = (
            f"{count} were committed on both servers, at different moments, with equal content:"
            " redone under their GTIDs, or numbers reused for the same work. The rows agree."
        )
    if others:
        text += f" {others} more differ in lesser ways."
    return text + (" There are more than were looked for." if cut else "")


def _empty_and_full(each: ContentDifference) -> tuple[str, str]:
    names = each.source.server, each.replica.server
    return names if each.source.is_empty else names[::-1]
