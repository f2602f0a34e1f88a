"""Why transactions must not be delivered to a server: its rows are not as they expect them.

Pure: the input is what was read of the transactions and of the rows. The output is a reason as
text.
"""

from collections.abc import Mapping

from gtid import GtidSet
from repair.content.transaction_content import RowState, TransactionContent
from repair.model.replication_model import Model, ModelServer, upstream
from topology.readings.content_class import ContentClass


def misfit(
    content: TransactionContent, server: ModelServer, arriving: GtidSet, *, must_fit: bool = True
) -> str | None:
    """Return why transactions must not be delivered by default; None if their rows match.

    Without `must_fit`, rows that could not be compared do not matter.
    """
    dropped = content.server_ids.get(server.server_id or 0, GtidSet()) & arriving
    if dropped:
        return (
            f"{dropped.shortened()} has the server_id of {server.name}, as if {server.name} had"
            f" committed it before it was rebuilt: the receiver of {server.name} drops it"
        )
    unread = arriving - content.wanted | content.of_class(ContentClass.UNREAD) & arriving
    if unread and must_fit:
        return (
            f"the content of {unread.shortened()}, which {server.name} would apply, has not been"
            " read"
        )
    if (unlike := _unlike(content, server, arriving)) is not None:
        return unlike
    if not content.needing_decision(arriving):
        return None
    state = content.state_on(server.name)
    if state.state is RowState.AS_BEFORE:
        return None
    if state.state is RowState.UNREAD:
        if content.is_out_of_order:
            return _not_in_order(content, server, arriving)
        if server.name in content.misfits_in_part:
            return _changed_since(arriving, server, content.misfits_in_part[server.name])
        if not must_fit:
            return None
        return (
            f"rows of {arriving.shortened()} may not fit: they were not compared on {server.name}"
            f" ({state.why}). If they do not fit, {_stops_or_doubles(server)}"
        )
    return _changed_since(arriving, server, state.why)


def misfit_of_held(content: TransactionContent, server: ModelServer, held: GtidSet) -> str | None:
    """Return why what follows may not match a server that already executed transactions.

    A server with one channel has them before its source does. It received them from another source,
    or a session set gtid_next. It skips them, and what follows does not find their rows.
    """
    held = held.without_uuid(server.server_uuid)
    if held != content.wanted or len(server.channels) != 1 or not content.needing_decision(held):
        return None
    state = content.state_on(server.name).state
    changes = any(row.before != row.after for row in content.rows_of_old_tables)
    if state is not RowState.CONFLICT and not (state is RowState.AS_BEFORE and changes):
        return None
    return (
        f"{server.name} has executed {held.shortened()}, and the rows are not as these left them:"
        " it may have other transactions under these GTIDs, and what follows may not fit"
    )


def misfit_unless_executed(
    content: TransactionContent, server: ModelServer, arriving: GtidSet
) -> str | None:
    """Return that rows do not match what another channel is also about to deliver, or None.

    The transaction was not executed when the sets were read. It may have been when the rows were
    read. Then the rows are as after it, and the start delivers nothing.
    """
    found = content.state_on(server.name)
    if not content.needing_decision(arriving) or found.state is RowState.AS_BEFORE:
        return None
    if found.state is RowState.UNREAD:
        return (
            f"another channel of {server.name} brings {arriving.shortened()} too, and not all rows"
            f" were compared on {server.name} ({found.why}): if they do not fit, the channel that"
            " delivers it may stop the applier or overwrite rows"
        )
    return (
        f"another channel of {server.name} brings {arriving.shortened()} too. If its applier has"
        f" not executed that by now, rows of {server.name} do not fit: the channel that delivers"
        " it may stop the applier or overwrite rows"
    )


def misfit_of_two_origins(
    model: Model, source: str, server: ModelServer, arriving: GtidSet
) -> str | None:
    """Return that a source has GTIDs of a server from which it does not receive; None if not.

    A session set gtid_next there. So another channel may deliver other transactions under these
    GTIDs, and what follows on the source may not find its rows.
    """
    if source not in model.servers:
        return None  # what it would send is not known, and reported
    apart = GtidSet.union_of(
        arriving.from_uuid(each.server_uuid)
        for each in model.servers.values()
        if each.name not in {source, server.name, *upstream(model, source)}
    )
    if not apart:
        return None
    return (
        f"another channel of {server.name} brings {apart.shortened()} too, and {source} does not"
        " receive from the server that has this server_uuid: it may be another transaction under"
        " the same GTID, and what follows may not fit"
    )


def misfit_of_moving_rows(
    content: TransactionContent, server: ModelServer, moving: GtidSet
) -> str | None:
    """Return that another channel may change rows before transactions reach them; None if not.

    Rows were compared in their state before what that channel delivers. If clients write on both
    sources, they may change the same rows. Then the second change does not match.
    """
    alone = content.wanted - server.executed
    others = moving - content.wanted
    if not others or not content.needing_decision(alone):
        return None
    return (
        f"another channel of {server.name} brings {others.shortened()} meanwhile, and may change"
        f" rows of {alone.shortened()}: then the later change stops the applier or overwrites rows"
    )


def misfit_of_two_histories(
    model: Model,
    server: ModelServer,
    channel: str,
    alone: GtidSet,
    *,
    known: Mapping[str, GtidSet],
) -> str | None:
    """Return that a server has a history that went on without `alone`, or is to get it; or None.

    A server above both channels never gets what only `channel` delivers, as after a clone of an
    older copy that keeps its server_id. What it executed without these comes over the other
    channel. What the source of `channel` had executed when it was read (`known`), or passed, is not
    part of that. Both concern the same data. Rows that were changed and changed back look as
    before, so no comparison of rows shows it. It is no doubt that sources have data of their own
    (no server is above both), or that a server lags (it has what was missing once the model has
    come to rest).
    """
    starting = server.channel(channel)
    if starting is None or starting.source is None or starting.source not in model.servers:
        return None  # what it would send is not known, and reported
    passed = (each.passed for each in model[starting.source].channels)
    had = GtidSet.union_of((known[starting.source], *passed))
    sides = {
        each.name: {each.source, *upstream(model, each.source)}
        for each in server.channels
        if each.source is not None and each.source in model.servers
    }
    others = set[str]().union(*(side for name, side in sides.items() if name != channel))
    if any(each.name not in sides for each in server.channels):
        others |= sides[channel]  # of a source that was not read: it may be below any server
    for name in sorted(sides[channel] & others - {server.name}):
        without = alone - model[name].executed
        newer = (server.executed & model[name].executed) - had
        if newer and without:
            return (
                f"{name} does not have {without.shortened()} and does not receive it. {name}"
                f" executed {newer.shortened()} without it, which {server.name} has, or receives"
                " over another channel: that may have changed rows and changed them back, and"
                " older versions would replace them"
            )
    return None


def _unlike(content: TransactionContent, server: ModelServer, arriving: GtidSet) -> str | None:
    """Return why transactions do not match a server's definitions, or were not shown to match.

    The order of the source's log does not help: definitions may be changed with sql_log_bin = 0.
    """
    rewriting = [each.rewrites for each in server.channels if each.rewrites]
    if rewriting:
        return (
            f"{server.name} applies {arriving.shortened()} in other databases than the log has"
            f" ({', '.join(rewriting)}): its rows were not compared there"
        )
    other = [each for each in content.ddl if each.is_other and each.gtid in arriving]
    if other:
        gtids, text = GtidSet.of(each.gtid for each in other), other[0].text
        more = f" and {len(other) - 1} more" if len(other) > 1 else ""
        return (
            f"{gtids.shortened()} changes definitions (`{text}`{more}): whether that fits"
            f" {server.name} was not compared"
        )
    if server.name not in content.unlike_on:
        return None
    return (
        f"{arriving.shortened()} may stop the applier of {server.name}, or write other values:"
        f" {content.unlike_on[server.name]}"
    )


def _not_in_order(content: TransactionContent, server: ModelServer, arriving: GtidSet) -> str:
    why = f" ({content.rows_unread})" if content.rows_unread else ""
    return (
        f"rows of {arriving.shortened()} may not fit: the changes in the log of"
        f" {content.read_from} do not follow from each other, as after changes with"
        f" sql_log_bin=0{why}: {_stops_or_doubles(server)}"
    )


def _stops_or_doubles(server: ModelServer) -> str:
    """Return what rows that do not fit lead to, as the end of a sentence."""
    return (
        f"the applier of {server.name} may stop. If {server.name} lost GTIDs (RESET BINARY LOGS AND"
        " GTIDS), it applied these before, and may apply rows a second time"
    )


def _changed_since(arriving: GtidSet, server: ModelServer, why: str) -> str:
    return (
        f"rows of {arriving.shortened()} were changed since on {server.name}: applied now, the"
        " transactions would put an older version over a newer one, or stop the applier"
        + (f" ({why})" if why else "")
    )
