"""Texts about an applier and a receiver that are behind: known facts, without promises."""

from typing import Final

from gtid import GtidSet
from topology.facts.applier_facts import ApplierFacts
from topology.facts.applier_workers import is_without_work
from topology.readings.snapshot import ChannelSnapshot, ThreadState

OVERTAKEN: Final = (
    " It may have passed {what} of these (sql_replica_skip_counter, RELAY_LOG_POS, a RESET): it is"
    " at transactions that it received later, or gtid_executed no longer has one that it had"
    " applied. A worker may still be applying them. Audit again when the applier has less to do."
)

AROUND_START: Final = (
    " {source} was restarted after it committed what {replica} has executed of it, and perhaps"
    " before it committed the last of these. If it lost its last transactions (a crash, or an older"
    " copy was restored), it has reused their GTIDs, and the relay log has the former transactions:"
    " they may be the last copy. Audits compare the content only after {replica} has applied them."
)

BELOW: Final = (
    " The channel runs by file position: if an operator moved its applier (RELAY_LOG_POS), it may"
    " have skipped {what} of these. Audit again when the applier has nothing left to do."
)

OTHER: Final = (
    " Another channel of {replica} has received {what} of these. They wait for the applier of that"
    " channel, or for this channel to receive them."
)

OWNED: Final = (
    " No channel of {replica} has completely received {what} of these. A worker applies a part, or"
    " a session of {replica} has set gtid_next to it (see @@GLOBAL.gtid_owned: GTID#thread). If"
    " that session ends with ROLLBACK, the transaction arrives. If it commits, the rows never"
    " arrive."
)

PASSED_THERE: Final = (
    " The applier of that channel may have passed {what} of these (RELAY_LOG_POS,"
    " sql_replica_skip_counter, a file position), or RESET BINARY LOGS AND GTIDS removed them from"
    " gtid_executed."
)

COPY: Final = (
    " gtid-audit did not read {source} at the address of this channel, {address}. If that is not"
    " another address of {source}, but another server with the same server_uuid and server_id, it"
    " does not send these."
)

SKIPS: Final = " On {replica} {why}: its applier may skip some of these."

NOT_SEARCHED: Final = (
    " It may have skipped some of these while gtid_mode was not ON (sql_replica_skip_counter). The"
    " binary log of {source} shows its position, but gtid-audit could not read it: {why}."
)

NOT_SHOWN: Final = (
    " It may have skipped {what} of these while gtid_mode was not ON (sql_replica_skip_counter):"
    " only the binary log of {source} shows whether its position is after them, and that log no"
    " longer has them."
)

LEFT_BEHIND: Final = (
    " If {replica} crashed since, it may have lost {what} of these from before the position of its"
    " applier (relay_log_recovery is off). Only the binary log of {source} shows whether they are"
    " before that position. It {why}."
)

LOCKED: Final = " Another applier of {replica} waits for a lock (A5), which may also delay these."

NO_EARLIER: Final = (
    " The binary logs of {replica} have no earlier transaction of the same origin. If {replica} was"
    " reset (RESET BINARY LOGS AND GTIDS), these were applied before it: compare the rows before"
    " they are applied again."
)

NUMBERS: Final = (
    " The GTID sets of {replica} do not show that it executed an earlier transaction of the same"
    " origin. If {replica} was reset (RESET BINARY LOGS AND GTIDS), these were applied before it:"
    " compare the rows before they are applied again."
)

AT_BEGIN: Final = (
    " Its position in the log of {source} is that of its receiver, which may have begun to read"
    " again. Then it may have passed what it had received before (sql_replica_skip_counter,"
    " RELAY_LOG_POS, a RESET)."
)
ASKS_AGAIN: Final = (
    " Its receiver is not connected, and requests its last received transaction again when it"
    " connects (before 5.7), because it may have only a part of it. {source} has purged {what} of"
    " the waiting transactions. It may refuse the connection (error 1236) until {replica} has"
    " applied them."
)
IN_PART: Final = (
    " The applier has read all of its relay log. gtid-audit could not read all facts that show"
    " whether the replica received only a part of the next transaction."
)


def outlook(applier: ApplierFacts) -> str:
    """Explain whether the backlog shrinks, as far as it is known."""
    channel, wait = applier.channel, applier.longest
    if channel.applier is not ThreadState.RUNNING:
        return "Its applier is stopped: nothing is applied until it is started."
    if applier.is_delayed and applier.lock_wait is None:
        left = channel.delay_remaining_seconds
        text = f"SOURCE_DELAY delays them by {channel.delay_seconds} s"
        return text + ("." if left is None else f"; {left} s remain for the next one.")
    if channel.until:
        return f"Its applier runs with UNTIL {channel.until}: it stops there."
    if is_without_work(channel):
        return (
            "Its applier had nothing left to do a moment later: it has applied or passed what it"
            " had received."
        )
    if applier.is_started:
        return (
            "Its applier was started between the readings. If its position was also changed, it may"
            " have passed some of these: audit again."
        )
    if applier.moved:
        delay = f"; SOURCE_DELAY is {channel.delay_seconds} s" if channel.delay_seconds else ""
        return f"Its applier makes progress{delay}."
    if applier.is_once:
        return "Whether its applier makes progress is not known: there is one reading of it."
    if not applier.is_same:
        return "Its channel was changed between the readings: audit again."
    if wait is not None and wait.seconds is not None:
        return (
            f'Its applier has been in the state "{wait.state}"{at(wait.gtids)} for'
            f" {wait.seconds} s and applied nothing between the readings."
        )
    return "Its applier runs; it applied nothing between the readings."


def arrival(channel: ChannelSnapshot, *, moved: bool | None) -> str:
    """Explain whether the receiver will fetch what is expected. `moved`: None if not known."""
    if channel.receiver is ThreadState.RUNNING and moved is None:
        text = "Whether its receiver makes progress is not known: there is one reading of it."
    elif channel.receiver is ThreadState.RUNNING and moved:
        text = "Its receiver makes progress."
    elif channel.receiver is ThreadState.RUNNING:
        text = (
            "Its receiver runs, but received nothing between the readings, although its source has"
            " more. Possible causes: the source committed the transactions just before gtid-audit"
            " read it; the connection is dead and replica_net_timeout has not passed yet; the"
            " source was reset while it was connected (stop and start the receiver); the receiver"
            " or the source waits (see the receiver state); the source has no event for them."
        )
    elif channel.receiver_errno or channel.receiver_error:
        text = f"Its receiver waits for a connection: error {channel.receiver_errno}."
    else:
        text = (
            "Its receiver is connecting: when it has connected, it shows whether its source sends"
            " them."
        )
    if channel.auto_position:
        return text
    return text + (
        " The channel runs by file position, which may be after them. An audit shows whether they"
        " arrive once the receiver has read that far."
    )


def at(gtids: GtidSet) -> str:
    """Return the transaction as a phrase of a sentence; "" if it is not known."""
    return f" at {gtids.shortened(ranges_max=1)}" if gtids else ""
