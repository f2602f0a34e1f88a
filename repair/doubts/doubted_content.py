"""Two contents under one GTID: an empty transaction on one server, and another one elsewhere.

Pure: the input is what the logs of both servers showed. A channel of the first server delivers the
GTID without the content of the second. Then the sets are equal.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from gtid import GtidSet
from repair.content.transaction_content import TransactionContent
from repair.model.actions import AutoPositionOn, StartChannel, simulate
from repair.model.strategy_case import Case
from topology.readings.transaction_class import ContentClass


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
