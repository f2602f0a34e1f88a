"""E4: two transactions under one GTID.

It evaluates what the binary logs showed (contents.py). The readings of a cluster do not contain
that, so this rule is not in the table of rules on readings. It reports nothing if contents were not
compared.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade, Severity
from topology.catalogue.verdict_table import entry_of
from topology.facts.accepted import NOTHING_ACCEPTED, Acceptance, Decision
from topology.facts.accepted_findings import AcceptedFinding
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
)
from topology.rules.build import many

# The evidence quotes both versions for this many GTIDs; the finding's set has all of them.
VERSIONS_QUOTED_MAX: Final = 8

_SEVERITY: Final = {
    Difference.CONTENT: Severity.CRITICAL,
    # One commit, no GTID reused: the rows had already drifted apart.
    Difference.DRIFT: Severity.WARNING,
    # One commit, of which one server applied less: its rows are missing there.
    Difference.SKIPPED: Severity.WARNING,
    # One commit, and a replica changed rows that the server which committed it did not.
    Difference.ADDED: Severity.WARNING,
    # A session of a replica committed it, perhaps before what its source had first.
    Difference.AGAIN: Severity.WARNING,
    # An operator committed it empty: the rows may be missing there.
    Difference.EMPTY: Severity.WARNING,
    # ANALYZE, FLUSH and similar statements change no data.
    Difference.UPKEEP: Severity.INFO,
    # The filters show that the server omits these tables.
    Difference.FILTERED: Severity.INFO,
    # Executed again under its GTID, or its GTID reused for the same changes: the rows agree.
    Difference.COMMIT: Severity.INFO,
}
# Findings about transactions that one of two servers has and the other does not.
_EXTRA: Final = frozenset({"E1", "E2", "E3", "H7", "J3"})
_ROWS_DIFFER: Final = frozenset({Difference.CONTENT, Difference.DRIFT, Difference.SKIPPED})


def same_gtid_different_content(
    contents: ContentReading,
    *,
    cluster: str,
    acceptance: Acceptance = NOTHING_ACCEPTED,
    others: Sequence[Finding] = (),
    entries: Sequence[AcceptedFinding] = (),
) -> Iterator[Finding]:
    """Yield E4: two servers hold different transactions under one GTID.

    `others` are the findings on the readings: an errant transaction may explain why rows drifted.

    A pair of servers has one E4. What the operator has accepted, by a repair or by an entry of the
    fleet file (`entries`), is a finding of its own only if nothing above info differs otherwise. In
    the other case the finding's set omits it, and the text mentions it.
    """
    ordered = sorted(contents.differences, key=_servers)
    for _, group in groupby(ordered, key=_servers):
        accepted: dict[str, list[ContentDifference]] = {}
        refused: dict[Decision, list[ContentDifference]] = {}
        differences: list[ContentDifference] = []
        for each in group:
            decision = acceptance.decision_on(each)
            if decision is not None and not decision.why_not:
                accepted.setdefault(decision.plan, []).append(each)
                continue
            differences.append(each)
            if decision is not None:
                refused.setdefault(decision, []).append(each)
        notes = [_accepted(plan, found) for plan, found in sorted(accepted.items())]
        notes += [_not_accepted(decision, found) for decision, found in refused.items()]
        note = " ".join(notes)
        open_ = [each for each in differences if not _is_covered(each, contents, cluster, entries)]
        if len(open_) < len(differences) and any(is_above_info(each.difference) for each in open_):
            covered = GtidSet.of(each.gtid for each in differences if each not in open_)
            note = f"{note} {covered.shortened()} accepted by the fleet file.".lstrip()
            differences = open_
        if differences:
            kinds = {each.difference for each in differences}
            worst = next(kind for kind in Difference if kind in kinds)
            shown = sorted(
                (each for each in differences if each.difference is worst),
                key=lambda each: each.gtid,
            )
            text = _explanation(shown, len(differences) - len(shown), cut=contents.is_cut)
            if worst is Difference.DRIFT:
                text += _extra_between(*_servers(shown[0]), others)
            found = _finding(contents, cluster, shown, f"{text} {note}".rstrip())
            yield replace(found, severity=_SEVERITY[worst])
        else:
            shown = sorted(chain.from_iterable(accepted.values()), key=lambda each: each.gtid)
            yield replace(_finding(contents, cluster, shown, note), strategies=())


def _is_covered(
    each: ContentDifference,
    contents: ContentReading,
    cluster: str,
    entries: Sequence[AcceptedFinding],
) -> bool:
    """Return whether an entry of the fleet file covers a difference by itself."""
    if not any(entry.code == "E4" for entry in entries):
        return False
    alone = replace(_finding(contents, cluster, [each], ""), severity=_SEVERITY[each.difference])
    return any(entry.is_about(alone) and not entry.why_not(alone) for entry in entries)


def is_above_info(difference: Difference) -> bool:
    """Return whether the rows of two servers may differ by this."""
    return _SEVERITY[difference] is not Severity.INFO


def lesser_differences(finding: Finding, contents: ContentReading) -> GtidSet:
    """Return the GTIDs that also differ between the servers of an E4, above info.

    Its set has only the most severe ones.
    """
    differing = GtidSet.of(
        each.gtid
        for each in contents.differences
        if _servers(each) == (finding.source, finding.replica) and is_above_info(each.difference)
    )
    return differing - finding.gtid_set


def _finding(
    contents: ContentReading, cluster: str, shown: list[ContentDifference], explanation: str
) -> Finding:
    """Return the info finding about some differences between two servers."""
    entry = entry_of("E4")
    is_proved = any(each.is_proved for each in shown)
    source, replica = _servers(shown[0])
    return Finding(
        code=entry.code,
        name=entry.name,
        severity=Severity.INFO,
        grade=Grade.PROVED if is_proved else Grade.LIKELY,
        cluster=cluster,
        source=source,
        replica=replica,
        channel=None,
        gtid_set=GtidSet.of(each.gtid for each in shown),
        first_seen=contents.read_at,
        last_seen=contents.read_at,
        evidence=tuple(_proof(shown, contents.read_at)),
        explanation=explanation,
        strategies=entry.strategies if _can_be_repaired(shown) else (),
    )


def _accepted(plan: str, differences: list[ContentDifference]) -> str:
    gtids = GtidSet.of(each.gtid for each in differences)
    return f"{gtids.shortened()} emptied by plan {plan}, accepted."


def _not_accepted(decision: Decision, differences: list[ContentDifference]) -> str:
    gtids = GtidSet.of(each.gtid for each in differences)
    return (
        f"{gtids.shortened()} emptied by plan {decision.plan}, not accepted: {decision.why_not}."
        f" {decision.remedy}"
    )


def _extra_between(source: str, replica: str, others: Sequence[Finding]) -> str:
    """Return the audit's errant transactions, which explain that rows drifted apart, as text."""
    named = dict.fromkeys(
        f"{each.code} ({many(each.gtid_set)} only on {each.replica})"
        for each in others
        if each.code in _EXTRA and {each.source, each.replica} == {source, replica}
    )
    if not named:
        return ""
    return (
        f" This audit also reports {', '.join(named)}: these transactions may have changed the rows"
        " first."
    )


def _can_be_repaired(shown: list[ContentDifference]) -> bool:
    """Return whether rows differ, and the replica's can be changed to match the source's."""
    return shown[0].difference in _ROWS_DIFFER and all(
        each.lesser != each.source.server for each in shown
    )


def _servers(difference: ContentDifference) -> tuple[str, str]:
    return difference.source.server, difference.replica.server


def _proof(shown: list[ContentDifference], read_at: datetime) -> Iterator[Evidence]:
    both = f"{shown[0].source.server}, {shown[0].replica.server}"
    reasons = dict.fromkeys(each.reason for each in shown)
    yield Evidence("what the binary logs show", "; ".join(reasons), both, read_at)
    for each in shown[:VERSIONS_QUOTED_MAX]:
        for version in (each.source, each.replica):
            yield Evidence(f"{each.gtid}", _quoted(version), version.server, read_at)


def _quoted(version: TransactionVersion) -> str:
    if version.committed_at is not None:
        moment = f"committed {version.committed_at:%Y-%m-%d %H:%M:%S.%f} UTC"
    else:
        moment = f"logged {version.logged_at:%Y-%m-%d %H:%M:%S} UTC"
    return f"{version.place}, {moment}: {version.content}"


# Without this, a reclone that keeps the server_uuid would be reported permanently.
_REMEMBERED: Final = (
    " An earlier audit proved a difference that this audit could not compare again, or that the"
    " logs do not show any more. So it is not known whether the rows were repaired since. Compare"
    " the rows. When they are equal, run `gtid-audit history PLACE --forget SET --server {source}"
    " --server {replica}` (PLACE: the file of --history, or the directory of --out). Until then"
    " every audit that has this file or directory reports the difference, also after a rebuild that"
    " kept the server_uuid."
)


def _explanation(shown: list[ContentDifference], others: int, *, cut: bool) -> str:
    text = _EXPLANATIONS[shown[0].difference](shown)
    if others:
        text += f" {others:,} more differ, less severely."
    if any(each.is_remembered for each in shown):
        ends = shown[0].source.server, shown[0].replica.server
        source, replica = map(shlex.quote, ends)
        text += _REMEMBERED.format(source=source, replica=replica)
    return text + (" There are more transactions than gtid-audit compared." if cut else "")


def _different(shown: list[ContentDifference]) -> str:
    source, replica = shown[0].source.server, shown[0].replica.server
    text = (
        f"{source} and {replica} have different transactions under the same GTID: {_count(shown)}."
        " GTID sets and threads do not show this, because each server skips a GTID that it already"
        " has. Possible causes: a server lost its last transactions, in a crash or because an older"
        " copy of its data was restored, and reused their GTIDs; RESET BINARY LOGS AND GTIDS made a"
        " server reuse its GTIDs; a client set gtid_next; another server commits under the same"
        " server_uuid."
    )
    if any(each.is_proved for each in shown):
        return text + " The rows differ until an operator repairs them."
    if any(each.is_remembered for each in shown):
        return text
    if any(each.is_two_commits for each in shown):
        return text + (
            " The logs do not show whether the two commits had the same result: compare the rows."
        )
    return text + (
        " The rows differ until an operator repairs them. The commit times are not known. So it may"
        " also be one transaction that changed other rows on the replica, because the data had"
        " drifted apart before: compare the rows."
    )


def _drifted(shown: list[ContentDifference]) -> str:
    source, replica = shown[0].source.server, shown[0].replica.server
    return (
        f"{_count(shown)} changed other rows on {replica} than on {source}, in one commit. The data"
        " had drifted apart before. Possible causes: replica_exec_mode=IDEMPOTENT, writes with"
        " sql_log_bin=0, errant transactions, or rows with the same key and different columns. No"
        " GTID was reused."
    )


def _skipped(shown: list[ContentDifference]) -> str:
    lesser, fuller = _lesser_and_fuller(shown[0])
    text = (
        f"{lesser} logged less of {_count(shown)} than {fuller}: {_kind_of_less(shown)}."
        f" Rows are probably missing on {lesser}. It may skip errors (replica_skip_errors,"
        " replica_exec_mode=IDEMPOTENT), or a filter that was active then left them out. Or its"
        f" source logged a statement, which found other rows on {lesser}: the data had drifted"
        " apart before."
    )
    if shown[0].source.committed_at is None or shown[0].replica.committed_at is None:
        text += " An operator may also have skipped them (sql_replica_skip_counter)."
    return text + " The GTID sets agree, so replication does not repair it."


def _added(shown: list[ContentDifference]) -> str:
    lesser, fuller = _lesser_and_fuller(shown[0])
    return (
        f"{fuller} logged more rows of {_count(shown)} than {lesser}, which committed them."
        f" Possible causes: foreign keys cascaded on {fuller} to rows that they did not change on"
        f" {lesser} (REPLACE, or a DELETE that several foreign keys follow; seen on 9.7.4); a"
        f" session on {fuller} replayed the transaction under its GTID with other rows. Compare the"
        " rows (gtid-audit repair check-data). The GTID sets agree, so replication does not repair"
        " them."
    )


def _again(shown: list[ContentDifference]) -> str:
    source, replica = shown[0].source.server, shown[0].replica.server
    return (
        f"A session of {replica} committed {_count(shown)} of {source} under the same GTID"
        " (gtid_next), with equal content. If it kept the order, as when a binary log is replayed,"
        " the rows agree. If earlier changes of the same rows were applied after it, they differ"
        " for good: the order of the logs is not compared. Compare the rows (gtid-audit repair"
        " check-data)."
    )


def _kind_of_less(shown: list[ContentDifference]) -> str:
    empty = sum(each.source.is_empty or each.replica.is_empty for each in shown)
    if empty == len(shown):
        return "its log has nothing under the GTID"
    return "its log has fewer rows under the GTID"


def _emptied(shown: list[ContentDifference]) -> str:
    lesser, fuller = _lesser_and_fuller(shown[0])
    return (
        f"{_count(shown)} changed data on {fuller} and nothing on {lesser}. An operator or a repair"
        f" committed an empty transaction under the GTID on {lesser}, or {lesser} does not log all"
        f" of its changes (C11). If that was not intended, the rows are missing on {lesser}."
    )


def _upkeep(shown: list[ContentDifference]) -> str:
    lesser, fuller = _lesser_and_fuller(shown[0])
    return (
        f"{_count(shown)} changed no data on {fuller} (maintenance, or tables that servers maintain"
        f" themselves). On {lesser} an empty transaction was committed under the GTID."
    )


def _filtered(shown: list[ContentDifference]) -> str:
    lesser, _ = _lesser_and_fuller(shown[0])
    return f"The filters of {lesser} leave {_count(shown)} out, in full or in part."


def _redone(shown: list[ContentDifference]) -> str:
    was = "was" if len(shown) == 1 else "were"
    return (
        f"{_count(shown)} {was} committed on both servers, at different moments, with equal"
        " content. Either it was redone under the GTID, or the GTID was reused for the same change."
        " The transactions agree. So do the rows, unless a session committed it before earlier"
        " changes of the same rows (gtid_next): gtid-audit does not compare the order."
    )


_EXPLANATIONS: Final = {
    Difference.CONTENT: _different,
    Difference.DRIFT: _drifted,
    Difference.SKIPPED: _skipped,
    Difference.ADDED: _added,
    Difference.AGAIN: _again,
    Difference.EMPTY: _emptied,
    Difference.UPKEEP: _upkeep,
    Difference.FILTERED: _filtered,
    Difference.COMMIT: _redone,
}


def _count(shown: list[ContentDifference]) -> str:
    return many(GtidSet.of(each.gtid for each in shown))


def _lesser_and_fuller(each: ContentDifference) -> tuple[str, str]:
    names = each.source.server, each.replica.server
    is_source = each.source.is_empty if not each.lesser else each.lesser == names[0]
    return names if is_source else names[::-1]
