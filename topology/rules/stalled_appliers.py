"""A5, A8: appliers that stand still for longer than the policy allows.

It is A5 if the state of the applier or a worker shows a lock, otherwise A8. Ages are the server's
where it shows them (8.0 and later). Otherwise they are estimated from the lag, and count only if
nothing moved.
"""

from collections.abc import Iterator
from typing import Final

from gtid import GtidSet
from topology.catalogue.findings import Evidence, Finding, Grade
from topology.facts.applier_facts import ApplierFacts, ApplierWait
from topology.facts.cluster_facts import ClusterFacts
from topology.facts.gtid_waits import OWNER, channel_that_owns, is_gtid_wait
from topology.facts.progress import blocked_by_lock, stalled
from topology.facts.unread_relay_log import has_had_no_work
from topology.readings.dialect import dialect_of
from topology.readings.snapshot import ChannelSnapshot, ServerSnapshot
from topology.readings.worker import ROW_LOCK_RETRY
from topology.rules.backlog_words import at
from topology.rules.build import Rules, evidence, finding, many


def applier_blocked(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A5: a thread of the applier waits for a lock for longer than the policy allows."""
    for source, name, applier in _appliers(facts):
        wait = blocked_by_lock(applier, facts.policy)
        if wait is None:
            continue
        replica = facts.last[name]
        owned = wait.gtids or (replica.gtid_owned or GtidSet()) & applier.backlog
        rest = (
            " Other workers continue."
            if applier.moved
            else ""
            if applier.is_once
            else " The applier applied nothing else between the readings."
        )
        other = None
        if is_gtid_wait(wait.state):
            other = channel_that_owns(owned, replica, waiting=applier.channel.name)
        yield finding(
            facts,
            "A5",
            source=source,
            replica=name,
            channel=applier.channel.name,
            gtid_set=owned or applier.backlog,
            grade=Grade.PROVED if wait.is_exact and not _retries(wait) else Grade.LIKELY,
            proof=(
                evidence("state", wait.state, replica),
                evidence("seconds", "unknown" if wait.seconds is None else wait.seconds, replica),
                evidence("transaction", owned or "unknown", replica),
                *(() if other is None else (evidence(OWNER, other, replica),)),
                *progress_evidence(applier, replica),
            ),
            explanation=f"The applier of {name} waits for a lock: its state is"
            f' "{wait.state}"{at(owned)}, {_how_long(wait)}.{rest}'
            + (_way_out(wait, name) if other is None else _OTHER_APPLIER.format(channel=other)),
        )


def _how_long(wait: ApplierWait) -> str:
    if wait.seconds is not None:
        return f"for {wait.seconds} s"
    return (
        f"for an unknown time: its event is dated {wait.ahead_seconds:,} s in the future (SET"
        " TIMESTAMP, or the clock of its origin), so the server shows no age"
    )


def _way_out(wait: ApplierWait, name: str) -> str:
    """Explain how the wait ends; if a session owns the GTID, also how it must not end."""
    if is_gtid_wait(wait.state):
        return (
            f" A session on {name} owns this GTID (see @@GLOBAL.gtid_owned: GTID#thread). End it"
            f" with ROLLBACK or KILL. If it commits, {name} counts the transaction as executed, and"
            " never receives its rows."
        )
    if _retries(wait):
        return (
            " Its last attempt failed because another session held a row lock, and the applier"
            f" tries again (replica_transaction_retries). {_holder(name)}."
            f" {_SHOWN.format(name=name)}"
        )
    return (
        f" {_holder(name)}; the applier continues when that transaction ends."
        f" {_SHOWN.format(name=name)}"
    )


_SHOWN: Final = "gtid-audit locks, with the DSN of {name}, shows the holder and the KILL."


def _holder(name: str) -> str:
    """Return both possible lock holders: a prepared XA transaction outlives its session (9.7.4)."""
    return (
        f"A session in SHOW PROCESSLIST of {name} holds the lock, or a prepared XA transaction"
        " without a session (see XA RECOVER)"
    )


def _retries(wait: ApplierWait) -> bool:
    """Return whether a row lock ended the last attempt: the next one may not wait for it."""
    return ROW_LOCK_RETRY in wait.state


def applier_stalled(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield A8: nothing was applied for longer than the policy allows, and no lock explains it."""
    for source, name, applier in _appliers(facts):
        wait = stalled(applier, facts.policy)
        if wait is None:
            continue
        replica = facts.last[name]
        yield finding(
            facts,
            "A8",
            source=source,
            replica=name,
            channel=applier.channel.name,
            gtid_set=wait.gtids or applier.backlog,
            grade=Grade.PROVED if wait.is_exact else Grade.LIKELY,
            proof=(
                evidence("state", wait.state, replica),
                evidence("seconds", wait.seconds, replica),
                evidence("transaction", wait.gtids or "unknown", replica),
                *progress_evidence(applier, replica),
            ),
            explanation=f"The applier of {name} has applied nothing for {wait.seconds} s: its state"
            f' is "{wait.state}"{at(wait.gtids)}. {many(applier.backlog).capitalize()} wait in the'
            f" relay log. {_stall_causes(wait, replica)}"
            + (_unread_text(applier.channel) if has_had_no_work(applier.channel) else ""),
        )


def _unread_text(channel: ChannelSnapshot) -> str:
    way = _FETCH if channel.auto_position else _MOVE
    return _NO_WORK.format(place=channel.relay_applied_to or "unknown", way=way)


def _stall_causes(wait: ApplierWait, replica: ServerSnapshot) -> str:
    """Return the causes that remain in a state without a lock; one state shows its cause itself.

    From 8.0.13 on a server shows the last transient error: a repeated row lock wait is A5.
    """
    if _SEMI_SYNC in wait.state:
        return (
            f"{replica.name} waits, as a source does, for the acknowledgement of its own"
            " semi-synchronous replica, until rpl_semi_sync_source_timeout has passed"
            " (rpl_semi_sync_source_enabled is ON). If it is no longer a source, set"
            " rpl_semi_sync_source_enabled = OFF."
        )
    text = (
        "gtid-audit found no wait for a lock. Possible causes: a large transaction, a table without"
        " a primary key, or a slow disk."
    )
    if replica.version is not None and dialect_of(replica.version).has_transient_errors:
        return text
    return (
        f"{text} Or the applier retries its transaction because of a row lock"
        f" (replica_transaction_retries): the last error is then 1205, which {replica.name} does"
        " not show."
    )


# -- words ----------------------------------------------------------------------------------------

_OTHER_APPLIER = (
    " The applier of channel '{channel}' is executing this transaction: both channels received it."
    " If neither applier moves, their workers wait for each other, and STOP REPLICA does not end."
    " No client session holds the lock. KILL the thread that owns the GTID (@@GLOBAL.gtid_owned:"
    " GTID#thread). The other channel then applies the transaction, and the applier of the killed"
    " thread stops with error 1317. With replica_parallel_workers = 1 their workers do not wait for"
    " each other."
)
_NO_WORK = (
    " No worker has had a transaction since the applier started. The relay log file at its position"
    " ({place}) may be missing or unreadable, and then the applier keeps looking for it. Check"
    " whether the file exists. If it does not, {way}"
)
_FETCH = (
    "run RESET REPLICA (with both threads stopped). The receiver then fetches by auto-position what"
    " the replica has not executed, if the source still has it."
)
_MOVE = (
    "do not use RESET REPLICA: the channel runs by file position, and would then read its source's"
    " log from the beginning. Stop both threads, and set SOURCE_LOG_FILE and SOURCE_LOG_POS to the"
    " Relay_Source_Log_File and Exec_Source_Log_Pos that SHOW REPLICA STATUS prints."
)
_SEMI_SYNC = "semi-sync ACK"  # "Waiting for semi-sync ACK from replica"


def progress_evidence(applier: ApplierFacts, replica: ServerSnapshot) -> tuple[Evidence, ...]:
    """Return what shows whether an applier moves, as evidence."""
    channel, wait = applier.channel, applier.longest
    moved = None if applier.is_once else applier.moved
    shown: tuple[Evidence, ...] = (
        evidence("applier", channel.applier.value, replica),
        evidence("applier state", channel.applier_state or "unknown", replica),
        evidence("moved between the readings", movement(moved), replica),
    )
    if channel.delay_seconds:
        shown += (evidence("SOURCE_DELAY in seconds", channel.delay_seconds, replica),)
    if wait is not None and wait.state != channel.applier_state:
        age = "unknown" if wait.seconds is None else f"{wait.seconds} s"
        shown += (evidence("longest worker", f"{wait.state}, {age}", replica),)
    return shown


def movement(moved: bool | None) -> str:
    """Return a fact about movement as text; None: there was one reading only."""
    return "not known, read once" if moved is None else "yes" if moved else "no"


def _appliers(facts: ClusterFacts) -> Iterator[tuple[str | None, str, ApplierFacts]]:
    """Yield every applier with its source, or None if the source is not part of the audit."""
    sources = {(edge.replica, edge.channel.name): edge.source for edge in facts.graph.edges}
    for key, applier in sorted(facts.appliers.items(), key=lambda item: item[0]):
        yield sources.get(key), key[0], applier


RULES: Rules = (
    applier_blocked,  # A5
    applier_stalled,  # A8
)
