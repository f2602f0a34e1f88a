"""Two contents under one GTID on two servers.

1. An empty transaction on one server, and another one elsewhere. A channel of the first server
   delivers the GTID without the content of the second. Then the sets are equal.
2. Other rows on each of two servers that have it. A copy with the same server_uuid, or a session
   that set gtid_next, committed another transaction under the same number. What a plan leaves out,
   takes back or redoes is the content of one server. The other one keeps what its own transaction
   did. Once it is empty elsewhere, no audit compares the two with each other.

Pure: the input is what the logs of both servers showed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from binlog.rows.values import ABSENT, Image
from gtid import GtidSet
from repair.content.transaction_content import NetRow, TransactionContent
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.strategy_case import MAY_DIFFER, Case
from topology.readings.content_class import ContentClass


def doubted(
    content: TransactionContent, others: Iterable[tuple[str, GtidSet, TransactionContent]]
) -> TransactionContent:
    """Return content without what is empty or harmless there but not according to other servers.

    `others` lists servers, what they have executed of it, and what their logs show of that. If a
    GTID was set with gtid_next, two servers may hold different transactions. A GTID that only one
    of them shows as empty must not be declared unneeded.
    """
    found: dict[str, GtidSet] = {}
    for name, executed, other in others:
        unlike = executed & content.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
        unlike -= other.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
        if unlike:
            found[name] = unlike
    if not found:
        return content
    doubtful = GtidSet.union_of(found.values())
    classes = {kind: gtids - doubtful for kind, gtids in content.classes.items()}
    unread = classes.get(ContentClass.UNREAD, GtidSet()) | doubtful
    why = f"{doubtful.shortened()} may be another transaction on {', '.join(found)}"
    return replace(
        content,
        classes={**classes, ContentClass.UNREAD: unread},
        unread="; ".join(filter(None, (content.unread, why))),
        doubtful=found,
    )


def delivered_empty(case: Case, action: StartChannel | AutoPositionOn) -> Iterator[str]:
    """Yield which servers would get one server's empty transaction, not the other's content."""
    content = case.arrivals.get((action.server, action.channel))
    if content is None or not content.doubtful:
        return
    after = simulate(case.model, action)
    for name, server in case.model.servers.items():
        arriving = after[name].executed - server.executed
        others = [other for other, gtids in content.doubtful.items() if gtids & arriving]
        doubtful = arriving & GtidSet.union_of(content.doubtful.values())
        if others:
            yield (
                f"{doubtful.shortened()} has no content in the log of {content.read_from}, and may"
                f" be another transaction on {', '.join(others)}: {name} would execute it without"
                " that content, and its applier may stop at a later change of the same rows. The"
                " GTID sets agree then: compare both logs first (--content)"
            )


def compared_with(
    content: TransactionContent, others: Iterable[tuple[str, TransactionContent]]
) -> TransactionContent:
    """Return content with the servers whose logs have other rows under the same GTIDs."""
    names = tuple(name for name, other in others if _differ(content, other))
    return replace(content, other_rows_on=names) if names else content


def warnings_of_others(content: TransactionContent, gtids: GtidSet) -> Iterator[str]:
    """Yield what a plan about the content of one server leaves on the others. It counts."""
    if content.other_rows_on:
        names = " and ".join(content.other_rows_on)
        yield (
            f"{MAY_DIFFER}the log of {names} has other rows under {gtids.shortened()} than that of"
            f" {content.read_from}, which this plan is about: what {names} wrote stays there, and"
            " is not saved. Compare both (`gtid-audit binlog compare`) and decide about these rows"
            " first"
        )


def warnings_of_statements(content: TransactionContent) -> Iterator[str]:
    """Yield what later statements may have done where these transactions are missing. It counts."""
    met, unread = content.statements_since, content.unread_since
    if not (met or unread):
        return
    log = f"the log of {content.read_from}"
    these = content.of_class(ContentClass.DATA).shortened()
    what = f"{log} has statements behind {these}: {met.shortened()}"
    if not met:
        what = f"{log} may have statements behind {these} ({unread})"
    yield (
        f"{MAY_DIFFER}{what}. A statement finds other rows on a server that does not have these"
        " transactions, and what it changed there stays different: no log shows that. Compare the"
        " rows (`gtid-audit repair check-data`)"
    )


def _differ(content: TransactionContent, other: TransactionContent) -> bool:
    """Return whether two logs show different rows. What was not read, or is no row, shows none."""
    if content.of_class(ContentClass.UNREAD) or other.of_class(ContentClass.UNREAD):
        return False
    if content.rows is None or other.rows is None:
        return _are_two_commits(content, other)
    ours, theirs = _by_place(content.rows), _by_place(other.rows)
    if ours.keys() != theirs.keys():
        return True
    return any(
        not (
            _is_like(row.before, theirs[place].before) and _is_like(row.after, theirs[place].after)
        )
        for place, row in ours.items()
    )


def _are_two_commits(content: TransactionContent, other: TransactionContent) -> bool:
    """Return whether logs that cannot be compared by keys show two commits with other changes.

    Servers that have one transaction log its commit time alike. The same rows may be logged in two
    forms (binlog_row_image), so other text alone shows no difference.
    """
    sides = (content, other)
    ours, theirs = (
        {each.gtid: tuple(each.lines) for each in side.redo} for side in (content, other)
    )
    is_other_text = any(ours[gtid] != theirs[gtid] for gtid in ours.keys() & theirs.keys())
    moments = [(side.committed_first, side.committed_last) for side in sides]
    return is_other_text and moments[0] != moments[1]


def _by_place(rows: Iterable[NetRow]) -> Mapping[tuple[str, str, Image], NetRow]:
    return {row.place: row for row in rows}


def _is_like(ours: Image | None, theirs: Image | None) -> bool:
    """Return whether two images agree. A column that one log omits may have any value."""
    if ours is None or theirs is None:
        return ours is theirs
    if len(ours) != len(theirs):
        return True  # another number of columns: the definitions differ (S2)
    return all(
        left == right or ABSENT in (left, right) for left, right in zip(ours, theirs, strict=True)
    )
