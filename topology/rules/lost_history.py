"""E3, E6, H7: transactions of a server's own UUID that it no longer has, or never had.

lost.py finds the cause of a loss and its certainty; this module has the texts. The finding lists
every cause that the evidence does not exclude.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from topology.catalogue.findings import Evidence, Finding, Grade
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.lost import Cause, Loss, losses_of
from topology.facts.restarts import Restart
from topology.readings.dialect import dialect_of
from topology.rules.build import Rules, evidence, finding, many
from topology.rules.extra_content import content_text

_CRASH = (
    "a crash that lost the end of its binary log, or its data was replaced by an older copy, a"
    " backup or a clone without them: then their rows are gone there"
)
_CLOCK = (
    "a crash after which its clock was behind until it was corrected: its uptime does not show that"
    " restart, and the rows are gone there"
)
_RESET = (
    "RESET BINARY LOGS AND GTIDS: then the rows are there, and redoing the transactions would"
    " double them"
)
_REPLAYED = (
    "RESET BINARY LOGS AND GTIDS followed by a replay of binary logs (point-in-time recovery): then"
    " the rows of what was not replayed are probably gone"
)
_BY_HAND = "a session elsewhere that set gtid_next to a GTID of this server"
_COPIED = "another server that commits under the same server_uuid"
_DECLARED = (
    "SET GLOBAL gtid_purged on {holder}, by hand or with a backup, to a set with GTIDs that were"
    " never committed: then no rows belong to these GTIDs"
)

_ROWS_KEPT = (
    " Its rows may still be there: before 8.0.17 a crash with sync_binlog other than 1 can lose the"
    " end of the binary log and leave the rows. Compare them first."
)


def crash_lost(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E3: the origin itself has lost what another server holds.

    Proved if the origin restarted after the transactions were committed and its logs exclude a
    reset of its history since.
    """
    for loss in losses_of(facts):
        if loss.cause is not Cause.CRASH:
            continue
        is_proved = loss.grade is Grade.PROVED
        version = facts.last[loss.origin].version
        has_no_rows = version is not None and dialect_of(version).has_gtids_in_innodb
        yield _on(
            facts,
            loss,
            f"{loss.origin} has lost {many(loss.gtid_set)} of its own that {loss.holder} still has."
            f" {distance_to(loss)} Then the sets look equal and the data differs."
            + ("" if has_no_rows else _ROWS_KEPT)
            + ("" if is_proved else _causes(loss)),
            None
            if is_proved and has_no_rows
            else ("check_data", "redo_on_source", "undo_on_replica"),
        )


def history_reset(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield E6: the origin's history was reset, and its data was not.

    Proved if the origin has been running since before the transactions were committed: a crash
    needs a restart.
    """
    for loss in losses_of(facts):
        if loss.cause is not Cause.RESET:
            continue
        if loss.is_reset_excluded and loss.restart is Restart.NOT_SINCE:
            yield _on(facts, loss, _neither_text(facts, loss), None)
            continue
        if loss.is_replayed:
            yield _on(facts, loss, _replayed_text(loss), None)
            continue
        is_proved = loss.grade is Grade.PROVED
        may_be_gone = not is_proved and _CRASH in _left(loss)
        rows = "may still be there" if may_be_gone else "are probably still there"
        yield _on(
            facts,
            loss,
            f"The GTID history of {loss.origin} was reset: its gtid_executed does not have"
            f" {many(loss.gtid_set)} of its own that {loss.holder} has. Its rows {rows}. GTIDs that"
            f" {loss.origin} had received may also be missing from its gtid_executed. Do not redo"
            " these transactions on it, and do not undo them on its replicas, before you have"
            f" compared the data. {distance_to(loss)} Then replicas skip its new transactions."
            + ("" if is_proved else _causes(loss)),
            None,
        )


def _neither_text(facts: ClusterFacts, loss: Loss) -> str:
    """Explain a loss if neither a crash nor a reset is possible: the UUID was used elsewhere."""
    origin = facts.last[loss.origin]
    others = [str(each) for each in loss.executed_by if each != origin.server_id]
    shown = (
        f" They carry server_id {', '.join(others)}, and {loss.origin} has {origin.server_id}."
        if others and origin.server_id is not None
        else ""
    )
    return (
        f"{loss.origin} does not have {many(loss.gtid_set)} of its own UUID that {loss.holder} has."
        f" {loss.origin} has been running since before they were committed, and its binary logs"
        f" show no reset of its history: {loss.history}.{shown} Their rows are probably not on"
        f" {loss.origin}. Read the content and compare the data before a repair."
        f" {distance_to(loss)} Then replicas skip its new transactions."
    ) + _causes(loss)


def _replayed_text(loss: Loss) -> str:
    """Explain a loss after which binary logs were replayed: the lost rows are probably gone."""
    return (
        f"The gtid_executed of {loss.origin} does not have {many(loss.gtid_set)} of its own that"
        f" {loss.holder} has. Its GTID history began again, and binary logs were replayed into it:"
        f" {loss.history}. Rows that the replay left out are probably not on {loss.origin}, and are"
        f" on {loss.holder}. Do not redo these transactions, and do not undo them on replicas,"
        f" before you have compared the data. {distance_to(loss)} Then replicas skip its new"
        " transactions."
    ) + _causes(loss)


def made_by_hand(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield H7: a GTID of a server's UUID that this server has not reached.

    Proved if the holder's binary log shows another server_id than the origin's, and there are lower
    GNOs that no server has: a server with a copied server_uuid would have used these first.
    """
    for loss in losses_of(facts):
        if loss.cause is not Cause.BY_HAND:
            continue
        is_proved = loss.grade is Grade.PROVED
        known = "never committed: a session set gtid_next by hand" if is_proved else "does not have"
        yield _on(
            facts,
            loss,
            f"{loss.holder} has {many(loss.gtid_set)} of {loss.origin}'s UUID that {loss.origin}"
            f" {known}. {distance_to(loss)} Then {loss.holder} skips the new transaction without an"
            f" error. Read the content first, because {loss.origin} does not have it. Then commit"
            f" empty transactions under these GTIDs on {loss.origin}."
            + ("" if is_proved else _causes(loss)),
            None,
        )


def _on(
    facts: ClusterFacts, loss: Loss, explanation: str, strategies: tuple[str, ...] | None
) -> Finding:
    return finding(
        facts,
        loss.cause.value,
        source=loss.origin,
        replica=loss.holder,
        gtid_set=loss.gtid_set,
        grade=loss.grade,
        proof=tuple(_proof(facts, loss)),
        explanation=explanation + content_text(facts.last[loss.holder], loss.gtid_set),
        strategies=strategies,
    )


def _proof(facts: ClusterFacts, loss: Loss) -> Iterator[Evidence]:
    origin, holder = facts.fully_read[loss.origin].last, facts.first[loss.holder]
    yield evidence("has", loss.gtid_set, holder)
    yield evidence("server_uuid", origin.server_uuid, origin)
    own = origin.gtid_executed.from_uuid(origin.server_uuid)
    yield evidence("gtid_executed of its own UUID", own, origin)
    yield evidence("gtid_owned", origin.gtid_owned, origin)
    yield evidence("commits until the first is reused", loss.commits_until_first, origin)
    yield evidence("commits until the GTIDs are all reused", loss.commits_until_all, origin)
    yield evidence("uptime in seconds", origin.uptime_seconds, origin)
    if loss.committed is not None:
        first, last = (moment.isoformat(" ") for moment in loss.committed)
        yield evidence("committed", first if first == last else f"{first} to {last}", holder)
    yield evidence("restarted since they were committed", loss.restart.value, origin)
    yield evidence("reset of the history", loss.history, origin)
    if loss.executed_by:
        ids = ", ".join(map(str, loss.executed_by))
        yield evidence("server_id in the binary log", ids, facts.last[loss.holder])
    for server in (origin, facts.last[loss.holder]):
        if server.history_evidence is not None and server.history_evidence.unread:
            yield evidence("not read from the binary logs", server.history_evidence.unread, server)


def distance_to(loss: Loss) -> str:
    """Return when the GTIDs will be reused: a distance in commits of the origin, not a count."""
    first, every = loss.commits_until_first, loss.commits_until_all
    # Each tag has its own GNOs: transactions without it, or with another one, use none of them.
    is_tagged = any(tsid.tag for tsid in loss.gtid_set.tsids)
    counts = " Only transactions with the same tag count." if is_tagged else ""
    if first == every:
        return f"{loss.origin} assigns this GTID to its {_ordinal(first)} next transaction.{counts}"
    return (
        f"{loss.origin} assigns the first of these GTIDs to its {_ordinal(first)} next transaction,"
        f" and the last to its {_ordinal(every)}.{counts}"
    )


def _ordinal(number: int) -> str:
    tens, ones = number // 10 % 10, number % 10
    ending = "th" if tens == 1 else {1: "st", 2: "nd", 3: "rd"}.get(ones, "th")
    return f"{number:,}{ending}"


# Each cause, and the function that excludes it.
_EXCLUDED_BY: Final[Mapping[str, Callable[[Loss], bool]]] = {
    _CRASH: lambda loss: loss.restart is Restart.NOT_SINCE,
    _REPLAYED: lambda loss: not loss.is_replayed,
    _RESET: lambda loss: loss.is_reset_excluded or loss.is_replayed,
    _BY_HAND: lambda _: False,
    _COPIED: lambda _: False,
    _CLOCK: lambda loss: loss.restart is not Restart.NOT_SINCE,
    _DECLARED: lambda loss: loss.is_declaration_excluded,
}


def _left(loss: Loss) -> tuple[str, ...]:
    """Return the causes that no evidence excludes; for GTIDs set with gtid_next, that one first."""
    left = [cause for cause, is_excluded in _EXCLUDED_BY.items() if not is_excluded(loss)]
    at = left.index(_BY_HAND) if loss.cause is Cause.BY_HAND else 0
    return (*left[at:], *left[:at])


def _causes(loss: Loss) -> str:
    left = "; ".join(cause.format(holder=loss.holder) for cause in _left(loss))
    return f" The facts that gtid-audit read do not exclude these causes: {left}."


RULES: Rules = (
    crash_lost,  # E3
    history_reset,  # E6
    made_by_hand,  # H7
)
