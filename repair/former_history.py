"""Why what a channel delivers may be of a history that its source no longer has.

A source that lost the end of its log, was reset or replaced gives GTIDs to other transactions than
those that its replica executed or has in its relay log. Rows then need not fit, and the relay log
may have the only copy of what was lost.
"""

from repair.case import Case
from repair.model import ModelChannel, ModelServer
from repair.offered import offered


def may_be_given_again(case: Case, replica: ModelServer, channel: ModelChannel) -> str | None:
    """Return why what a server has of its source may be other transactions than the source's."""
    source = case.model.servers.get(channel.source) if channel.source is not None else None
    if not channel.may_be_former or source is None:
        return None
    if orphaned := channel.orphaned - replica.executed:
        return (
            f"the relay log of {replica.name} has {orphaned.shortened()}, which {source.name} does"
            f" not have: {source.name} lost them, or another server sent them and was replaced."
            f" {replica.name} would apply them, and {source.name} need not get them. Save the relay"
            f" log: it may be the last copy. Then choose with {offered(case)}"
        )
    common = replica.executed.from_uuid(source.server_uuid)
    if not common:
        return None
    return (
        f"{source.name} has lost, or reset, transactions that it had sent (a receiver had more than"
        f" it has, or their commits differ), or they were committed by hand on {replica.name}. So"
        f" {common.shortened()} may be other transactions there, and what follows need not fit."
        f" Compare the rows, then choose with {offered(case)}"
    )
