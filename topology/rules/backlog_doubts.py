"""Reasons why a backlog is not certain to arrive: one table for T1, T2 and T3.

1. A row is one doubt: the findings that it concerns, and its text, which is "" if the readings
   exclude it. A backlog that moves and has no doubt is proved to clear without intervention.
2. Most rows are not signs of a fault: they are what the readings do not exclude. If the readings
   show that something has happened, the row warns, and the finding is a warning without a strategy.
3. The texts are in backlog_words.py, out_of_order.py and settings.py, the findings in backlogs.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet
from topology.facts.graph import is_at_address
from topology.facts.half_received import asks_for_last_again, may_be_half_received
from topology.facts.other_versions import received_around_start
from topology.facts.progress import blocked_by_lock
from topology.facts.reset_signs import has_earlier, logged_as_received
from topology.facts.skipping import can_have_skipped, crash_may_leave_place, why_it_may_skip
from topology.facts.unseen import address_of
from topology.readings.snapshot import ThreadState
from topology.rules.backlog_facts import Backlog, is_to_come, may_be_below, owned_unreceived
from topology.rules.backlog_words import (
    AROUND_START,
    ASKS_AGAIN,
    AT_BEGIN,
    BELOW,
    COPY,
    IN_PART,
    LEFT_BEHIND,
    LOCKED,
    NO_EARLIER,
    NOT_SEARCHED,
    NOT_SHOWN,
    NUMBERS,
    OTHER,
    OVERTAKEN,
    OWNED,
    PASSED_THERE,
    SKIPS,
)
from topology.rules.build import many
from topology.rules.gone_logs import gone_logs_text
from topology.rules.out_of_order import (
    behind_later_ones,
    out_of_order_text,
    rows_without_history,
    unread_order,
)
from topology.rules.settings import are_dropped, may_be_dropped, may_be_passed

_NOTHING: Final = GtidSet()


@dataclass(frozen=True, slots=True)
class Doubts:
    """The doubts that apply to one backlog."""

    text: str  # sentences, each after a space; "" if there are none
    warns: bool  # a reading shows a fault


def doubts_of(backlog: Backlog) -> Doubts:
    """Return the reasons why a backlog is not certain to arrive."""
    rows = [row for row in _ROWS if backlog.code in row.codes]
    warnings = "".join(row.words(backlog) for row in rows if row.warns)
    others = "".join(row.words(backlog) for row in rows if not row.warns)
    if not (_RESET in warnings or is_to_come(backlog)):
        has_lower = has_earlier(logged_as_received(backlog.replica), backlog.gtids)
        others += (NUMBERS if has_lower else NO_EARLIER).format(replica=backlog.replica.name)
    return Doubts(others + warnings, bool(warnings))


# -- the table ------------------------------------------------------------------------------------


def _overtaken(backlog: Backlog) -> str:
    found = backlog.gtids & backlog.applier.overtaken
    return OVERTAKEN.format(what=many(found)) if found else ""


def _overtaken_below(backlog: Backlog) -> str:
    """Explain that a skip looks like the gap of an applier that commits in any order.

    Without a skip, the workers that are behind such a gap still have it.
    """
    if not why_it_may_skip(backlog.facts, backlog.edge.edge):
        return ""
    found = backlog.edge.queued_below & backlog.gtids & backlog.applier.overtaken
    return OVERTAKEN.format(what=many(found)) if found else ""


def _around_start(backlog: Backlog) -> str:
    """Explain that the relay log may have other transactions than the source has."""
    edge, servers = backlog.edge, backlog.facts.last
    if not backlog.gtids & received_around_start(edge.edge, servers=servers):
        return ""
    return AROUND_START.format(source=edge.source, replica=backlog.replica.name)


def _below(backlog: Backlog) -> str:
    edge = backlog.edge
    if backlog.code == "T1":
        found = _NOTHING if edge.channel.auto_position else edge.queued_below & backlog.gtids
    else:
        found = may_be_below(edge, backlog.gtids)
    return BELOW.format(what=many(found)) if found else ""


def _other(backlog: Backlog) -> str:
    owned = owned_unreceived(backlog)
    found = backlog.of_others - owned
    text = OWNED.format(what=many(owned), replica=backlog.replica.name) if owned else ""
    if not found:
        return text
    text += OTHER.format(what=many(found), replica=backlog.replica.name)
    replica = backlog.replica.name
    # If the source of a channel was not read, nothing shows its applier's position among them. An
    # operator may have moved a channel by file position (RELAY_LOG_POS).
    compared = {
        each.channel.name
        for each in backlog.facts.edges
        if each.replica == replica and each.channel.auto_position
    }
    passed = found & GtidSet.union_of(
        other.passed if channel in compared else other.channel.gtid_retrieved
        for (name, channel), other in backlog.facts.appliers.items()
        if name == replica and channel != backlog.edge.channel.name
    )
    return text + (PASSED_THERE.format(what=many(passed)) if passed else "")


def _copy(backlog: Backlog) -> str:
    """Explain that a copy of the source may be at the address, which alone distinguishes it."""
    channel, source = backlog.edge.channel, backlog.facts.last[backlog.edge.source]
    if is_at_address(channel, source):
        return ""
    return COPY.format(source=source.name, address=address_of(channel))


def _locked(backlog: Backlog) -> str:
    """Explain that another applier of the replica waits for a lock (A5)."""
    facts, replica = backlog.facts, backlog.replica
    is_locked = any(
        blocked_by_lock(other, facts.policy) is not None
        for (name, channel), other in facts.appliers.items()
        if name == replica.name and channel != backlog.edge.channel.name
    )
    return LOCKED.format(replica=replica.name) if is_locked else ""


def _skips(backlog: Backlog) -> str:
    """Explain that the applier may skip these instead."""
    why = why_it_may_skip(backlog.facts, backlog.edge.edge)
    return SKIPS.format(replica=backlog.replica.name, why=why) if why else ""


def _not_searched(backlog: Backlog) -> str:
    """Explain that a standing applier may have skipped some, if no log shows its position."""
    applier, source = backlog.applier, backlog.facts.last[backlog.edge.source]
    answers = source.history_evidence
    is_running = applier.channel.applier is ThreadState.RUNNING
    if not is_running or applier.moved or not can_have_skipped(backlog.replica):
        return ""
    if answers is None:
        return ""
    if answers.unread:
        return NOT_SEARCHED.format(source=source.name, why=answers.unread)
    edge = backlog.edge
    at_work = edge.applying_above | edge.applying_below
    unknown = backlog.gtids - at_work - backlog.of_others - edge.ahead
    return NOT_SHOWN.format(what=many(unknown), source=source.name) if unknown else ""


def _left_behind(backlog: Backlog) -> str:
    """Explain that a crash may have left the applier behind, if no log shows its position."""
    edge, source = backlog.edge, backlog.facts.last[backlog.edge.source]
    is_running = backlog.applier.channel.applier is ThreadState.RUNNING
    if not is_running or not crash_may_leave_place(backlog.replica):
        return ""
    at_work = edge.applying_above | edge.applying_below
    unknown = backlog.gtids - at_work - backlog.of_others - edge.ahead
    first = backlog.facts.first[backlog.replica.name].gtid_retrieved
    answers = source.history_evidence
    if not unknown & first or answers is None:
        return ""
    why = f"could not be read: {answers.unread}" if answers.unread else "no longer has them"
    return LEFT_BEHIND.format(
        replica=backlog.replica.name, what=many(unknown & first), source=source.name, why=why
    )


def _asks_again(backlog: Backlog) -> str:
    """Explain that 5.6 requests a received transaction again, which its source has purged."""
    channel, source = backlog.edge.channel, backlog.facts.last[backlog.edge.source]
    replica = backlog.replica
    is_stopped = channel.receiver is ThreadState.STOPPED  # A4 and A7 report it
    if is_stopped or not asks_for_last_again(replica, channel):
        return ""
    waiting = channel.gtid_retrieved - (replica.gtid_executed or GtidSet())
    gone = waiting & (source.gtid_purged or GtidSet())
    if not gone:
        return ""
    return ASKS_AGAIN.format(source=source.name, replica=replica.name, what=many(gone))


def _in_part(backlog: Backlog) -> str:
    """Explain that the facts that show a partly received transaction were not all read."""
    channel, source = backlog.edge.channel, backlog.facts.first[backlog.edge.source]
    is_open = may_be_half_received(backlog.replica, channel, log_end=source.log_end)
    return IN_PART if is_open else ""


def _at_begin(backlog: Backlog) -> str:
    """Explain that a stopped applier was at its receiver, which may have begun again."""
    channel, source = backlog.edge.channel, backlog.edge.source
    place = channel.applied_to
    is_there = place is not None and place == channel.received_to
    if channel.applier is not ThreadState.STOPPED or not is_there:
        return ""
    return AT_BEGIN.format(source=source) if backlog.gtids & channel.gtid_retrieved else ""


def _out_of_order(backlog: Backlog) -> str:
    facts, edge = backlog.facts, backlog.edge
    if backlog.code == "T1":
        waits, received = edge.queued_below & backlog.gtids, None
    else:
        waits, received = backlog.gtids, edge.channel.gtid_retrieved
    late = behind_later_ones(facts, edge, waits, received=received)
    return out_of_order_text(edge, late) or unread_order(facts, edge, waits)


def _gone_logs(backlog: Backlog) -> str:
    source = backlog.facts.last[backlog.edge.source]
    return gone_logs_text(source, replica=backlog.replica.name, needed=backlog.gtids)


@dataclass(frozen=True, slots=True)
class _Row:
    codes: tuple[str, ...]
    words: Callable[[Backlog], str]
    warns: bool = False


_RESET: Final = "RESET BINARY LOGS AND GTIDS"
_ROWS: Final = (
    _Row(("T1",), _overtaken_below),
    _Row(("T2",), _overtaken),
    _Row(("T1", "T2"), _around_start),
    _Row(("T1", "T2"), _below),
    _Row(("T1", "T2"), _other),
    _Row(("T2",), _locked),
    _Row(("T1", "T2", "T3"), _skips),
    _Row(("T1", "T2"), _not_searched),
    _Row(("T1", "T2"), _left_behind),
    _Row(("T2",), _at_begin),
    _Row(("T2",), _in_part),
    _Row(("T1", "T2"), lambda each: may_be_passed(each.facts, each.edge, each.gtids)),
    _Row(("T3",), _copy),
    _Row(("T3",), lambda backlog: may_be_dropped(backlog.facts, backlog.edge)),
    _Row(("T1", "T3"), _out_of_order, warns=True),
    _Row(("T2", "T3"), _asks_again, warns=True),
    _Row(("T3",), _gone_logs, warns=True),
    _Row(("T3",), lambda backlog: rows_without_history(backlog.facts, backlog.edge), warns=True),
    _Row(("T3",), lambda backlog: are_dropped(backlog.facts, backlog.edge), warns=True),
)
