"""Why rows may not match what a channel fetches once it uses auto-position.

With auto-position on, the source sends all that is missing. So not only the transactions of the
finding are compared with the replica's rows, but also what waits, and what other gaps hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gtid import GtidSet
from repair.content.transaction_content import (
    NetRow,
    RowState,
    TransactionContent,
    first_of,
)
from repair.doubts.earlier_steps import changes_written_rows
from repair.doubts.misfitting_rows import misfit
from repair.model.actions import AutoPositionOn, simulate
from repair.model.replication_model import ModelChannel, ModelServer, below, upstream
from repair.model.semi_sync import until_committed
from repair.model.strategy_case import Case
from repair.model.unseen_replicas import refused_for, unseen_below
from repair.strategies.starting import misfit_of_waiting
from topology.catalogue.findings import Grade


@dataclass(frozen=True, slots=True)
class Fetch:
    """What the channel of a finding would fetch with auto-position, from a source that was read."""

    case: Case
    replica: ModelServer
    channel: ModelChannel
    source: ModelServer
    arriving: GtidSet  # of the finding: what the replica did not have when it was read

    @property
    def switch(self) -> AutoPositionOn:
        """Return the action that fetches it."""
        return AutoPositionOn(
            self.replica.name,
            self.channel.name,
            filled=GtidSet(),
            by_choice=self.case.is_chosen,
        )

    @property
    def beside(self) -> tuple[tuple[GtidSet, TransactionContent | None], ...]:
        """Return the other gaps of the channel that are fetched as well."""
        return self.case.beside if self.case.is_hole else ()


def never_fetched(fetch: Fetch) -> str | None:
    """Return why transactions are not fetched, not even if that is selected; or None.

    No later audit would detect it: the sets are equal then, and so are the binary logs.
    """
    case, replica, arriving = fetch.case, fetch.replica, fetch.arriving
    content = case.content
    if content is None or not content.needing_decision(arriving):
        return None
    first = case.brought(replica.name)
    if first:
        return (
            f"earlier steps of this plan apply {first.shortened()} on {replica.name} first, which"
            f" may change rows of {arriving.shortened()}: run these steps alone, then audit and"
            " plan again"
        )
    for step in case.rows_written:
        if step.server == replica.name and (why := changes_written_rows(step, content, arriving)):
            return why
    if not arriving <= content.wanted:
        return None
    on, names = content.state_on(replica.name), f"{replica.name} and {case.finding.source}"
    if on.state is RowState.AS_AFTER:
        return (
            f"the rows of {arriving.shortened()} are already on {replica.name}: fetched again, the"
            " transactions would stop the applier or duplicate data"
        )
    if on.is_like_source:
        return (
            f"rows of {arriving.shortened()} were changed since, and are equal on {names}: fetched"
            " again, the transactions would write the older version or stop the applier"
            f" (inject_empty keeps the rows of {replica.name})"
        )
    return None


def older_version(fetch: Fetch) -> str | None:
    """Return which rows would get an older version, not even if the fetch is selected; or None.

    They were changed since, and are equal on the source. Other rows of the set may be missing.
    """
    case, source = fetch.case, fetch.case.finding.source
    after = simulate(case.model, fetch.switch)
    receiving = (fetch.replica.name, *sorted(below(after, fetch.replica.name, running=True)))
    for name in dict.fromkeys(receiving):
        for gtids, content in ((fetch.arriving, case.content), *fetch.beside):
            if content is None or content.wanted & case.was_there(name):
                continue  # it is not known which of them changed a row
            rows = content.state_on(name).overtaken
            if rows and gtids & content.wanted:
                return (
                    f"{_named(rows)} changed since, and equal on {name} and {source}: fetched"
                    f" again, {content.wanted.shortened()} would write an older version, or stop"
                    f" the applier. inject_empty keeps the rows of {fetch.replica.name}, and what"
                    " is missing there stays missing: write it by hand before, after `SET SESSION"
                    " sql_log_bin = 0`, then audit and plan again"
                )
    return None


def _named(rows: Sequence[NetRow]) -> str:
    """Return rows as the subject of a sentence."""
    found = first_of([row.name for row in rows])
    return f"row {found} was" if len(rows) == 1 else f"rows {found} were"


def conflict_of(fetch: Fetch) -> str | None:
    """Return why transactions are not fetched by default; None if all rows match."""
    return (
        _conflict(fetch, fetch.case.content, fetch.arriving)
        or _dropped(fetch)
        or _ahead(fetch)
        or _sent_before_commit(fetch)
        or _below(fetch)
        or _unread_below(fetch)
        or _beside(fetch)
    )


def compared_fetched(fetch: Fetch) -> Iterator[TransactionContent]:
    """Yield the contents of all that is fetched and whose rows must still be as compared."""
    for gtids, content in ((fetch.arriving, fetch.case.content), *fetch.beside):
        if content is not None and content.needing_decision(gtids):
            yield content


def _conflict(fetch: Fetch, content: TransactionContent | None, arriving: GtidSet) -> str | None:
    """Return why transactions must not be fetched by default; None if their rows match."""
    replica = fetch.replica
    if content is None or not arriving <= content.wanted:
        return f"the content of {arriving.shortened()} has not been read"
    own = content.server_ids.get(replica.server_id or 0, GtidSet()) & arriving
    if own:
        return (
            f"{own.shortened()} has server_id {replica.server_id}, and so has {replica.name}: the"
            f" receiver of {replica.name} drops it. Set another server_id there first"
        )
    if not content.needing_decision(arriving):
        return None
    moving = replica.executed - fetch.case.was_there(replica.name)
    if moving:
        return (
            f"{moving.shortened()} will be applied on {replica.name} first and may change rows of"
            f" {arriving.shortened()}: stop the channels of {replica.name}, audit and plan again"
        )
    state = content.state_on(replica.name)
    if state.state is RowState.AS_BEFORE:
        # Rows may be as before because a later transaction restored them. Then the source has them
        # in this state as well, and its rows are not as the transactions left them.
        return _changed_since(fetch.source, content, arriving)
    if state.state is RowState.AS_AFTER:
        return f"the rows of {arriving.shortened()} are already on {replica.name}"
    return f"{arriving.shortened()} may conflict with rows of {replica.name}: {state.why}"


def _changed_since(
    source: ModelServer, content: TransactionContent, arriving: GtidSet
) -> str | None:
    """Return why rows may have been changed after the transactions; None if they were not."""
    state = content.state_on(source.name)
    if state.state is RowState.AS_AFTER:
        return None
    why = state.why or "they are not as the transactions left them"
    return f"rows of {arriving.shortened()} were changed since on {source.name}: {why}"


def _dropped(fetch: Fetch) -> str | None:
    """Return why a receiver may drop transactions again; None if nothing indicates it (H8).

    It drops events with its own server_id. A rebuilt server has a new server_uuid and often the old
    server_id: what it committed before then has the UUID of no server.
    """
    case, name, arriving = fetch.case, fetch.replica.name, fetch.arriving
    if case.finding.code != "H8" or case.finding.grade is Grade.PROVED:
        return None
    for server in case.model.servers.values():
        arriving = arriving.without_uuid(server.server_uuid)
    if not arriving:
        return None
    return (
        f"{arriving.shortened()} has the UUID of no server that was read: if {name} committed it"
        f" before it was rebuilt, the receiver of {name} drops it"
    )


def _ahead(fetch: Fetch) -> str | None:
    """Return that the replica has later work which its source has yet to get; or None.

    It came over another channel. A row may be as before because that work changed it back, and the
    source still has the row as the transactions left it.
    """
    case, replica, source = fetch.case, fetch.replica, fetch.source.name
    if len(replica.channels) == 1 or case.content is None:
        return None
    above = upstream(case.model, source) - {replica.name}
    coming = GtidSet.union_of(case.snapshot_executed[each] for each in above)
    ahead = case.was_there(replica.name) & coming - case.snapshot_executed[source]
    ahead = ahead.without_uuid(replica.server_uuid)
    if not ahead or not case.content.needing_decision(fetch.arriving):
        return None
    return (
        f"{replica.name} has {ahead.shortened()} over another channel, and {source} does not have"
        f" it yet: if it changed rows of {fetch.arriving.shortened()} and changed them back, they"
        f" count as unchanged. Wait until {source} has it, then audit and plan again"
    )


def _sent_before_commit(fetch: Fetch) -> str | None:
    """Return why later changes may not be visible on the source; None if nothing indicates it (H8).

    A source sends a transaction when it is in the log, and a semi-synchronous one then waits before
    the commit. A replica that applied it and forgot its GTIDs has the later rows, and the source
    still shows the former ones:

        source    INSERT row 1    DELETE row 1 (logged, not committed)      row 1 is there
        replica   (forgotten)     (applied, forgotten)                      there is no row 1
    """
    case, source = fetch.case, fetch.source
    later = source.long_committing - case.was_there(fetch.replica.name)
    if case.finding.code != "H8" or not later:
        return None
    return (
        f"{source.name} has been committing {later.shortened()} since the first reading"
        f" (gtid_owned), and {fetch.replica.name} may have applied them before it lost its GTIDs."
        f" {until_committed(source)}"
    )


def _below(fetch: Fetch) -> str | None:
    """Return why what is fetched does not match the replica or a server that receives it; or None.

    This includes rows that are as before, because definitions may differ there, a CHECK for
    instance. It also includes what another channel is to deliver: that channel may be held up, and
    then this one delivers it.
    """
    case, replica, content = fetch.case, fetch.replica, fetch.case.content
    assert content is not None, "what was not read is a conflict on the replica"
    after = simulate(case.model, fetch.switch)
    fetched = (after[replica.name].executed - replica.executed) & content.wanted
    receiving = below(after, replica.name, running=True)
    for name, server in case.model.servers.items():
        arriving = (after[name].executed - server.executed) & content.wanted
        if arriving and (why := misfit(content, server, arriving)) is not None:
            return why
        twice = fetched - arriving - case.was_there(name) if name in receiving else GtidSet()
        if twice and (why := misfit(content, server, twice, must_fit=False)) is not None:
            return why
    return None


def _unread_below(fetch: Fetch) -> str | None:
    """Return why unread servers may get what is fetched, and already have its rows; or None.

    So may replicas that are connected and not part of the audit.
    """
    case, arriving = fetch.case, fetch.arriving
    names = [name for name, executed in case.unread.items() if arriving - executed]
    unseen = unseen_below(case.unseen, case.model, [fetch.replica.name])
    if case.content is None or not case.content.needing_decision(arriving):
        return None
    if not names:
        return refused_for(unseen)
    return (
        f"{', '.join(names)} could not be read, and may receive {arriving.shortened()} from"
        f" {fetch.replica.name}: the rows there were not compared"
    )


def _beside(fetch: Fetch) -> str | None:
    """Return why what auto-position delivers in addition may not match; or None.

    It fetches the gaps of other findings, and starts a stopped channel.
    """
    there = fetch.case.was_there(fetch.replica.name)
    for gtids, content in fetch.beside:
        also = gtids - there - fetch.arriving
        why = _conflict(fetch, content, also) if also else None
        if why is not None:
            return why
    return misfit_of_waiting(fetch.case, fetch.switch)
