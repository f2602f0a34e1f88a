"""Why a replica is missing transactions that its channel has gone past: one table of causes.

1. The sets look the same for every cause, but the right repair differs. After a RESET the rows are
   present; before a file position that was set too high they are missing. A likely finding lists
   each cause that no evidence excludes; a proved finding has only one cause left.
2. A row is a cause: its text, and the evidence that excludes it. A condition excludes a cause only
   if it is certain; an unread fact excludes nothing.
3. Some causes are possible only for one kind of channel or position: `applies` selects it.

===============  ==================================================================================
cause            what excludes it
===============  ==================================================================================
ignored          the channel has no IGNORE_SERVER_IDS
ignored then     the replica has refused that option since before (8.0, with gtid_mode ON)
reset            the replica has a binary log from before them, or one of its transactions that its
                 source logged before them, applied in order (reset_signs.py)
file position    the channel uses auto-position, and did so already when it passed them
skipped          it was received only later, and the replica has been running since before
crash, copy      the replica has been running since before they were committed
killed workers   the replica has been running since before, or fills such gaps (8.0)
source reset     the position is in the source's current log: its receiver is connected
another source   the channel's address is that at which its source was read
not logged       the log of the source shows them, or they were received
same server_id   the log of the source shows other server_ids
former id        the replica has not changed its server_id since before them
former history   what was received is what the source has now (reset_signs.py)
===============  ==================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from topology.facts import reset_signs
from topology.facts.graph import is_at_address
from topology.facts.log_order import received_by
from topology.facts.memberships import group_uuids
from topology.readings import dialect
from topology.readings.history_evidence import ends_of
from topology.readings.notable_settings import notable_values
from topology.readings.snapshot import ServerSnapshot, ThreadState
from topology.rules.passed_by import PassedBy


def causes_left(absence: PassedBy) -> tuple[str, ...]:
    """Return the names of the causes that no evidence excludes, in the order of the table."""
    return tuple(row.name for row in _ROWS if row.is_left(absence))


def causes_text(absence: PassedBy) -> str:
    """Return the causes that no evidence excludes; a log's order excludes none out of order."""
    left = [row.words(absence) for row in _ROWS if row.is_left(absence)]
    by_hand = (
        f"{_reset_words(absence)}, if they were executed there before they were sent (gtid_next)"
    )
    return (
        f" Possible causes: {'; '.join(left or [by_hand])}. Compare the rows before any repair: if"
        " the rows are there, a second execution fails or doubles data."
    )


def logs_nothing_received(source: ServerSnapshot) -> bool:
    """Return whether a source's log has only its own commits: its position proves no more."""
    return "log_replica_updates" in notable_values(source.notable_settings)


# -- the table ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    words: Callable[[PassedBy], str]
    applies: Callable[[PassedBy], bool]
    is_excluded: Callable[[PassedBy], bool]

    def is_left(self, absence: PassedBy) -> bool:
        return self.applies(absence) and not self.is_excluded(absence)


def _never(_absence: PassedBy) -> bool:
    return False


def _ignored_words(absence: PassedBy) -> str:
    listed = ", ".join(map(str, absence.channel.ignored_server_ids))
    return f"IGNORE_SERVER_IDS ({listed}) of its channel (the rows are missing)"


def _is_ignored(absence: PassedBy) -> bool:
    return bool(absence.unsent and absence.channel.ignored_server_ids)


def _shows_no_ignored(absence: PassedBy) -> bool:
    return _ids_are_known(absence) and not _ids(absence) & {*absence.channel.ignored_server_ids}


def _is_without_list(absence: PassedBy) -> bool:
    """Return whether the channel has no IGNORE_SERVER_IDS now but may have had it."""
    return bool(absence.unsent) and not absence.channel.ignored_server_ids


def _has_refused_lists(absence: PassedBy) -> bool:
    """Return whether the replica has refused IGNORE_SERVER_IDS since before they were committed."""
    replica = absence.replica
    return (
        replica.version is not None
        and dialect.dialect_of(replica.version).refuses_ignored_ids
        and "gtid_mode" not in notable_values(replica.notable_settings)
        and absence.keeps(dialect.GTID_MODE_SOURCE)
    )


def _reset_words(absence: PassedBy) -> str:
    return f"RESET BINARY LOGS AND GTIDS on {absence.replica.name} after them (the rows are there)"


def _excludes_reset(absence: PassedBy) -> bool:
    received = received_by(absence.edge, absence.replica)
    return reset_signs.was_not_reset(
        absence.replica, absence.gtids, source=absence.source, received=received
    )


def _may_be_by_position(absence: PassedBy) -> bool:
    """Return whether a file position is, or was, in effect after them.

    A file position that was set before auto-position shows only in the applier's position.
    """
    return absence.returns or not absence.channel.auto_position


def _skips_then_or_now(absence: PassedBy) -> bool:
    """Return whether the applier may have had them: the relay log shows it, or was deleted."""
    return bool(absence.received) or absence.returns or not absence.channel.auto_position


def _excludes_skip(absence: PassedBy) -> bool:
    """Return whether the applier never had them: only the receiver's position is after them.

    Otherwise there are two possibilities. It may have executed what follows before the position was
    set, and its applier may have skipped the gap. Or it received them and passed them in its relay
    log, and a restart with relay_log_recovery deleted that.
    """
    is_by_place = not (absence.received or absence.returns)
    return is_by_place and absence.has_received_next and absence.runs_since_before


def _crash_words(absence: PassedBy) -> str:
    keeps = not absence.received or reset_signs.keeps_gtids(absence.replica)
    rows = "compare the rows" if keeps else "the rows are probably there"
    return (
        f"a crash of {absence.replica.name} that lost the end of its binary log, or an older copy"
        f" of its data ({rows})"
    )


def _excludes_crash(absence: PassedBy) -> bool:
    """Return whether no crash lost them: if InnoDB has rows and GTIDs, it has the position too."""
    is_placed = absence.is_place_proved and not absence.unsent
    return (is_placed and reset_signs.keeps_gtids(absence.replica)) or absence.runs_since_before


def _killed_words(absence: PassedBy) -> str:
    return (
        f"{absence.replica.name} was killed while its workers had gaps (its error log says so; the"
        " rows are missing; with relay_log_recovery = ON, START REPLICA fails, and A6 has the way"
        " out)"
    )


def _may_have_gaps(absence: PassedBy) -> bool:
    """Return whether workers by file position may have been killed, with the relay log deleted."""
    workers = absence.replica.setting("replica_parallel_workers")
    recovers = absence.replica.setting("relay_log_recovery") not in ("OFF", "0")
    is_parallel = workers is None or int(workers) > 1
    version = absence.replica.version
    if version is not None and dialect.dialect_of(version).fills_gaps_at_start:
        return False
    return not absence.channel.auto_position and is_parallel and recovers


def _source_reset_words(absence: PassedBy) -> str:
    return (
        f"RESET BINARY LOGS AND GTIDS on {absence.source.name}, which restarts the log numbers"
        " (then the place says nothing, and the rows may be there)"
    )


def _may_be_former_log(absence: PassedBy) -> bool:
    """Return whether a position may be in a former log.

    A receiver that has connected since reads the new log, whose positions may equal former ones.
    """
    edge, channel = absence.edge, absence.channel
    is_connected = channel.receiver is ThreadState.RUNNING
    is_old_place = bool(absence.received) and channel.applier is ThreadState.STOPPED
    by_search = bool(edge.behind & absence.gtids) and not is_connected
    is_by_position = bool(absence.unsent and edge.other_log) and not channel.auto_position
    return absence.returns or is_old_place or by_search or is_by_position


def _other_source_words(absence: PassedBy) -> str:
    channel = absence.channel
    return (
        f"another server with the same server_uuid at {channel.source_host}:{channel.source_port},"
        " the address of the channel (then nothing was passed)"
    )


def _may_be_a_copy(absence: PassedBy) -> bool:
    """Return whether a copy of the source may be at the address of the channel.

    Only the address distinguishes two servers with the same server_uuid and server_id, and a server
    may have several addresses. A position in a copy's log shows nothing about what was not
    received.
    """
    return bool(absence.unsent) or received_elsewhere(absence)


def received_elsewhere(absence: PassedBy) -> bool:
    """Return whether the channel has received what its source never had, or has lost."""
    source = absence.source
    had = source.gtid_executed | source.gtid_owned
    return bool(absence.channel.gtid_retrieved.from_uuid(source.server_uuid) - had)


def _is_at_address(absence: PassedBy) -> bool:
    return is_at_address(absence.channel, absence.source)


def _unlogged_words(absence: PassedBy) -> str:
    name = absence.source.name
    text = f"no event for them in the binary logs of {name} (the rows may be missing)"
    if logs_nothing_received(absence.source):
        return f"log_replica_updates = OFF on {name}: {text}"
    return text


def _are_in_log(absence: PassedBy) -> bool:
    return None not in absence.records


def _same_id_words(absence: PassedBy) -> str:
    replica = absence.replica
    return (
        f"a server with the server_id of {replica.name}, {replica.server_id}, committed them (the"
        " rows are missing)"
    )


def _are_of_others(absence: PassedBy) -> bool:
    """Return whether other server_ids are shown, and none of that UUID is the replica's."""
    own = {each.uuid for each in absence.edge.own_id.tsids}
    is_shown = _ids_are_known(absence) and absence.replica.server_id not in _ids(absence)
    return is_shown and not own & {*absence.unsent.uuids}


def _former_id_words(absence: PassedBy) -> str:
    return (
        f"a server_id that {absence.replica.name} then shared with the server that committed them"
        " (SET GLOBAL server_id; the rows are missing)"
    )


def _may_be_former_id(absence: PassedBy) -> bool:
    """Return whether a former server_id is possible and the text of a skip does not include it."""
    is_named = _skips_then_or_now(absence) and not _excludes_skip(absence)
    return _is_unsent(absence) and not is_named


def _ids(absence: PassedBy) -> set[int]:
    return {each.server_id for each in absence.records if each is not None}


def _ids_are_known(absence: PassedBy) -> bool:
    """Return whether the ends of each interval represent all of it: one server committed it."""
    is_whole = len(ends_of(absence.unsent)) == absence.unsent.gtid_count
    groups = group_uuids(absence.facts.last.values())
    return _are_in_log(absence) and (is_whole or not groups & {*absence.unsent.uuids})


def _former_words(absence: PassedBy) -> str:
    return (
        f"RESET BINARY LOGS AND GTIDS on {absence.source.name}, which has reused these GTIDs since:"
        f" {absence.replica.name} received the former transactions (the rows of the present ones"
        " are missing)"
    )


def _received_present_ones(absence: PassedBy) -> bool:
    return reset_signs.received_present_ones(
        absence.replica, absence.channel, absence.received, absence.source
    )


def _is_received(absence: PassedBy) -> bool:
    return bool(absence.received)


def _is_unsent(absence: PassedBy) -> bool:
    return bool(absence.unsent)


def _always(_absence: PassedBy) -> bool:
    return True


FILE_POSITION: Final = "file position"
CRASH: Final = "crash or copy"
SOURCE_RESET: Final = "source reset"
ANOTHER_SOURCE: Final = "another source"
FORMER: Final = "former history"

_ROWS: Final = (
    _Row("ignored", _ignored_words, _is_ignored, _shows_no_ignored),
    _Row("reset", _reset_words, _always, _excludes_reset),
    _Row(
        FILE_POSITION,
        lambda _: (
            "a file position that was set after them (the rows are missing, unless a dump or backup"
            " contained them: a dump loaded without its gtid_purged leaves the same state)"
        ),
        _may_be_by_position,
        _never,
    ),
    _Row(
        "skipped",
        lambda _: (
            "RELAY_LOG_POS, sql_replica_skip_counter, a purged relay log, or a server_id that it"
            " then shared with the server that committed them (the rows are missing)"
        ),
        _skips_then_or_now,
        _excludes_skip,
    ),
    _Row(CRASH, _crash_words, _always, _excludes_crash),
    _Row("killed workers", _killed_words, _may_have_gaps, lambda each: each.runs_since_before),
    _Row(SOURCE_RESET, _source_reset_words, _may_be_former_log, _never),
    _Row(ANOTHER_SOURCE, _other_source_words, _may_be_a_copy, _is_at_address),
    _Row("not logged", _unlogged_words, _is_unsent, _are_in_log),
    _Row("same server_id", _same_id_words, _is_unsent, _are_of_others),
    _Row(
        "former server_id", _former_id_words, _may_be_former_id, lambda each: each.keeps_server_id
    ),
    _Row(
        "ignored then",
        lambda _: "IGNORE_SERVER_IDS of its channel, removed since (the rows are missing)",
        _is_without_list,
        _has_refused_lists,
    ),
    _Row(FORMER, _former_words, _is_received, _received_present_ones),
)
