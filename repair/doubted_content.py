"""What two servers show under one GTID: an empty transaction here, and another one there.

Pure: what the logs of both servers showed goes in.
"""

from collections.abc import Iterable
from dataclasses import replace

from gtid import GtidSet
from repair.transaction_content import ContentClass, TransactionContent


def doubted(
    content: TransactionContent, others: Iterable[tuple[str, GtidSet, TransactionContent]]
) -> TransactionContent:
    """Return content without what is empty or harmless there, and not shown so by other servers.

    `others` are servers, what they have executed of it, and what their logs show of that. Under a
    GTID that was given by hand, two servers may hold different transactions. What only one of them
    shows as empty must not be declared unneeded.
    """
    doubtful, names = GtidSet(), []
    for name, executed, other in others:
        unlike = executed & content.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
        unlike -= other.of_class(ContentClass.EMPTY, ContentClass.HARMLESS)
        if unlike:
            doubtful |= unlike
            names.append(name)
    if not doubtful:
        return content
    classes = {kind: gtids - doubtful for kind, gtids in content.classes.items()}
    unread = classes.get(ContentClass.UNREAD, GtidSet()) | doubtful
    why = f"{doubtful.shortened()} may be another transaction on {', '.join(names)}"
    return replace(
        content,
        classes={**classes, ContentClass.UNREAD: unread},
        unread="; ".join(filter(None, (content.unread, why))),
    )
