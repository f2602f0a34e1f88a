"""The strategy for a row that stops an applier (A2): set the row as the event expects, then start.

1. gtid-audit reads the failing transaction from the source's log, and the rows that it touches from
   the replica. The script sets the rows to what the transaction found on the source, without
   logging it. Then the applier applies the transaction itself.
2. Only the operator can decide that the replica's version may be overwritten: it is never a
   default. The plan shows the rows of both servers.
"""

from collections.abc import Iterator

from repair.content.row_versions import RowVersions, by_table
from repair.content.transaction_content import RowState, TransactionContent, first_of
from repair.model.actions import Action, MakeRowsAlike, StartChannel
from repair.model.former_history import made_by_hand, or_by_hand
from repair.model.replication_model import ModelChannel, ModelServer, below
from repair.model.settled_model import delivery
from repair.model.strategy_case import Case, Outcome, Proposal, Refusal
from repair.sql.row_literals import CannotRender
from repair.sql.row_sql import member_columns, needs_lenience, redo_row
from topology.catalogue.applier_errors import OF_NO_TRANSACTION
from topology.catalogue.error_texts import NUMBERS, row_of
from topology.catalogue.statement_errors import PARTLY_EXECUTED

_LOST_GTIDS = (
    "{name} seems to have lost GTIDs (RESET BINARY LOGS AND GTIDS, a gtid_purged that is too"
    " small) and to receive again what it has. Stop the channel and compare the data. Then add the"
    " transactions that are there to gtid_purged, or clone the server{saved}"
)


def resolve_conflict(case: Case) -> Outcome:
    """Plan to set the replica's rows to what the failing transaction expects, then a start."""
    replica, channel, content = case.replica, case.channel, case.content
    if replica is None or channel is None or case.source is None:
        return Refusal("one of the two servers could not be read")
    if channel.rewrites:
        return Refusal(
            f"{replica.name} applies what it receives in other databases than the log has"
            f" ({channel.rewrites}): the rows that stopped its applier were not read. Correct them"
            f" by hand on {replica.name} after `SET SESSION sql_log_bin = 0`, and start the"
            " applier again"
        )
    if content is None or content.read_from is None:
        why = content.unread if content is not None else "no log was read"
        return Refusal(f"the failing transaction could not be read: {why}")
    if content.rows is None:
        return Refusal(content.rows_unread)
    state = content.state_on(replica.name)
    if meets := state.meets:
        return Refusal(
            f"another row of {replica.name} has the same value in a unique key as a row that"
            f" {content.wanted.shortened()} writes ({meets}). The transaction does not change"
            f" that row: compare both servers, correct the row by hand on {replica.name} after"
            " `SET SESSION sql_log_bin = 0`, and plan again"
        )
    # The state between the steps of this strategy: the rows are set, the applier is stopped.
    fits_now = state.state is RowState.AS_BEFORE
    if not content.expected and not (fits_now and case.is_chosen):
        return Refusal(
            state.why
            or "its rows are now as the transaction expects them: start the applier again, or"
            f" select --strategy {case.finding.code}=resolve_conflict, which starts it"
        )
    if (once := not_to_go_on(case) or _was_here_before(case, replica, content)) is not None:
        return Refusal(once)
    if not case.is_chosen:
        return Refusal(
            f"rows of {replica.name} are not as {content.wanted.shortened()} expects them"
            f" ({len(content.expected)} in total). If {replica.name}'s version may be overwritten,"
            f" select --strategy {case.finding.code}=resolve_conflict"
        )
    if (moved := case.overtaken(replica.name)) is not None:
        return Refusal(moved)
    if (other := _other_version(replica, case.source, content)) is not None:
        return Refusal(other)
    try:
        rows = [row for row in content.expected if _writes(row)]
    except CannotRender as refusal:
        return Refusal(str(refusal))
    actions: list[Action] = [
        MakeRowsAlike(replica.name, case.source.name, of_table, content.wanted)
        for of_table in by_table(rows)
    ]
    actions.append(StartChannel(replica.name, channel.name, retried=content.wanted, by_choice=True))
    lost = f"{replica.name} loses its version of these rows; both versions are in this plan. "
    warnings = [
        f"{lost if rows else ''}Transactions after this one may conflict as well: audit again"
    ]
    warnings.extend(_receiving(case, replica, content))
    warnings.extend(behind_later_ones(case))
    warnings.extend(_unfit_behind(case, replica, channel, content))
    return Proposal(tuple(actions), tuple(warnings))


def _other_version(
    replica: ModelServer, source: ModelServer, content: TransactionContent
) -> str | None:
    """Return that the two servers would end with different versions of a row; None if not known.

    In a dual-primary pair both may have changed it. Each applies the change of the other one last,
    and then has its version:

        a    INSERT row 1 'A'                  applies 'B'        row 1 is 'B'
        b              INSERT row 1 'B'        applies 'A'        row 1 is 'A'
    """
    if (why := content.later_work.get(replica.name)) is not None:
        return (
            f"on {replica.name} {why}, and {source.name} has yet to execute it: each server would"
            " end with the version of the other one. Let the other channel deliver it first, or"
            " leave one of the two out (inject_empty), then audit and plan again"
        )
    if rows := content.state_on(replica.name).overtaken:
        named = first_of([row.name for row in rows])
        return (
            f"row {named} was changed since, and is equal on {replica.name} and {source.name}:"
            f" applied now, {content.wanted.shortened()} would write an older version on"
            f" {replica.name} alone. inject_empty leaves it out"
        )
    return None


def _was_here_before(case: Case, replica: ModelServer, content: TransactionContent) -> str | None:
    """Return why the transaction seems to have been applied here before; None if nothing shows it.

    Its rows are as it left them, and the replica has executed later ones of the same origin. So the
    replica lost GTIDs and receives its own history again. What follows is then applied twice.
    """
    later = content.wanted & replica.executed.filled()
    if not later or not _is_there(replica, content):
        return None
    came_later = ", and so are later transactions"
    return f"the rows of {later.shortened()} are already on {replica.name}{came_later}: " + (
        _LOST_GTIDS.format(name=replica.name, saved=_saved_first(case, replica))
    )


def _is_there(replica: ModelServer, content: TransactionContent) -> bool:
    """Return whether a replica has rows that a transaction wrote (and did not only delete)."""
    is_as_after = content.state_on(replica.name).state is RowState.AS_AFTER
    return is_as_after and any(row.after is not None for row in content.rows or ())


def not_to_go_on(case: Case) -> str | None:
    """Return why a stopped applier (A2, A3) must not continue after its transaction, or None."""
    return _of_no_transaction(case) or _reused(case) or _received_again(case)


def _of_no_transaction(case: Case) -> str | None:
    """Return why the transaction at which an applier stopped is not the cause (A3), or None.

    A start applies it once the cause is removed, or the source sends it again. If it were skipped,
    its rows would be lost, and with a damaged relay log the applier would stop at the same
    position.
    """
    if case.finding.code != "A3":
        return None
    facts = {each.fact: each.value for each in case.finding.evidence}
    errors = [each.value for each in case.finding.evidence if each.fact == "applier errno"]
    title = next((NUMBERS.get(int(each), "") for each in errors if each.isdigit()), "")
    text = row_of(facts.get("applier error", ""))
    # On 5.6 the number is that of the source's error, for which a start alone would be enough.
    if PARTLY_EXECUTED in (title, text.title if text is not None else ""):
        return (
            f"error {errors[0]}: {PARTLY_EXECUTED}. The applier stops at it again as long as the"
            " relay log has it: it reports the error before it looks at the GTID. Compare the rows"
            " of the table first: `gtid-audit explain 3001`"
        )
    if title not in OF_NO_TRANSACTION:
        return None
    return (
        f"error {errors[0]}: {title}. The transaction is not the cause. The applier applies it"
        f" once you have removed the cause: `gtid-audit explain {errors[0]}`"
    )


def _received_again(case: Case) -> str | None:
    """Return why what waits for a stopped applier may have been applied there before, or None.

    Regardless of the transaction that failed, those after it are applied next. There are two cases.
    The rows of all of them are present, as they left them. Or some rows differ, and the replica has
    logged nothing of the same origin. Then its history was set, by a backup or after a RESET, or it
    is new, so that no set shows the state of its rows.
    """
    receiving = case.receiving
    if not case.finding.code.startswith("A") or receiving is None:
        return None
    replica, channel = receiving
    content = case.arrivals.get((replica.name, channel.name))
    if content is None or not content.needing_decision(content.wanted - case.wanted):
        return None
    waits, name = content.wanted.shortened(), replica.name
    if _is_there(replica, content):
        return (
            f"the rows of all waiting transactions ({waits}) are already on {name}:"
            f" {_LOST_GTIDS.format(name=name, saved=_saved_first(case, replica))}"
        )
    logged = replica.available
    # A first tag begins behind what failed: the same server committed both, in this order.
    is_logged = {*(case.wanted.tsids or content.wanted.tsids)} <= {*logged.tsids}
    if (is_logged and {*content.wanted.uuids} <= {*logged.uuids}) or (
        content.state_on(name).state is RowState.AS_BEFORE
    ):
        return None
    return (
        f"the binary logs of {name} have no transaction of the same origin yet, and rows are not"
        f" as the waiting transactions ({waits}) expect them. With a gtid_purged that is too"
        f" small, or after RESET BINARY LOGS AND GTIDS, {name} would receive again what it has."
        " Compare the data. Then add the transactions that are there to gtid_purged, or clone"
        f" {name}{_saved_first(case, replica)}"
    )


def _saved_first(case: Case, replica: ModelServer) -> str:
    """Return what a clone of a server would lose, as text; "" if its source has all of it."""
    if case.source is None or not (only_here := replica.executed - case.source.executed):
        return ""
    return f" once you have saved what only it has ({only_here.shortened()})"


def _reused(case: Case) -> str | None:
    """Return why what waits for a stopped applier may not be what its source has, or None (A2).

    The relay log has transactions of a history that the source lost in a crash, or reset. The
    source may have reused their GTIDs since, and only the new transactions were read. Where the
    logs show that a session of the replica committed GTIDs of the source, the source lost nothing.
    """
    receiving = case.receiving
    if not case.finding.code.startswith("A") or receiving is None:
        return None
    replica, channel = receiving
    if not channel.may_be_former:
        return None
    return (
        f"{channel.source} has lost, or reset, transactions that {replica.name} received, and may"
        f" have reused their GTIDs{or_by_hand(replica, channel)}. If they were lost, the relay log"
        f" of {replica.name} has them, and may be their last copy: save it, compare the content of"
        " both logs, and decide which transactions you want before the applier continues"
    )


def behind_later_ones(case: Case) -> Iterator[str]:
    """Yield what a start of a stopped applier (A2, A3) applies after later transactions."""
    receiving = case.receiving
    if not case.finding.code.startswith("A") or receiving is None:
        return
    replica, channel = receiving
    if (by_hand := made_by_hand(replica, channel)) is not None:
        yield by_hand
    content = case.content
    if content is not None and _is_there(replica, content):
        yield (
            f"the rows of {case.wanted.shortened()} are already on {replica.name}, as it left"
            f" them. If {replica.name} lost GTIDs (RESET BINARY LOGS AND GTIDS), it also has the"
            " rows of later transactions: applied again, these may stop the applier or overwrite"
            " rows. Compare them first"
        )
    waiting = delivery(case.model, replica, channel) - case.wanted
    older = waiting & (replica.executed - channel.by_hand).filled()
    if older:
        yield (
            f"{older.shortened()} waits as well, and {replica.name} has executed later"
            f" transactions: a parallel applier left a gap, or {replica.name} lost GTIDs. If it"
            " lost GTIDs, the rows are already there, and it may stop the applier or overwrite"
            " rows: compare them first"
        )


def _unfit_behind(
    case: Case, replica: ModelServer, channel: ModelChannel, content: TransactionContent
) -> Iterator[str]:
    """Yield why what waits after the transaction does not match rows that it does not change.

    Rows that it changes are set before the start. Others may be of another source, or unlogged.
    """
    place = (replica.name, channel.name)
    question, arriving = case.waiting.get(place), case.arrivals.get(place)
    if question is None or arriving is None:
        return
    behind = arriving.wanted - content.wanted - replica.executed
    state = arriving.state_on(replica.name)
    if not arriving.needing_decision(behind) or state.state is RowState.AS_BEFORE:
        return
    why = state.why or "some were not compared"
    if state.off is not None:
        left = {row.place for row in state.off} - {row.place for row in content.rows or ()}
        if not left:
            return
        why = (
            f"{len(left)} other {'row is' if len(left) == 1 else 'rows are'} not as these"
            " transactions expect"
        )
    elif question.arrives_in_order(arriving.logged_before):
        return
    yield (
        f"once replication runs on {replica.name}, what waits may overwrite rows or stop an"
        f" applier: rows of {behind.shortened()} may not fit ({why}). If {replica.name} lost GTIDs"
        " (RESET BINARY LOGS AND GTIDS), it applied all of these before, and may apply rows a"
        " second time: compare them first"
    )


def _receiving(case: Case, replica: ModelServer, content: TransactionContent) -> Iterator[str]:
    # A lock may hold up another channel, so only what was present when it was read counts.
    names = [
        name
        for name in below(case.model, replica.name)
        if content.wanted - case.snapshot_executed[name]
    ]
    if names:
        receive, their = ("receives", "its") if len(names) == 1 else ("receive", "their")
        unlike = [
            f"{name}: {on.why or on.state.value}"
            for name in names
            if (on := content.state_on(name)).state in (RowState.CONFLICT, RowState.AS_AFTER)
        ]
        yield (
            f"{', '.join(names)} then {receive} it from {replica.name}, and no step changes"
            f" {their} rows: it may stop the applier or overwrite rows there"
            + (f". It WILL, unless these rows change before: {'; '.join(unlike)}" if unlike else "")
        )
    if case.unread:
        yield (
            f"{', '.join(case.unread)} could not be read. If it receives from {replica.name}, it"
            " receives the transaction as well, which may stop the applier or overwrite rows there"
        )


def _writes(row: RowVersions) -> bool:
    if needs_lenience(row.table, row.change):
        raise CannotRender(f"{row.table.name}, {row.where}: an ENUM has the error value ''")
    member_columns(row.table)  # the script can compare them
    return redo_row(row.table, row.change) is not None
