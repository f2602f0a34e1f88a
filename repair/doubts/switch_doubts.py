"""Why a channel should not be switched to auto-position, for any content of transactions.

1. Some reasons always apply: the applier is stopped by an event, or the source would refuse the
   replica at the next connection.
2. The others prevent the switch by default. An operator may select it. Then they do not apply.
3. fetched_conflicts.py evaluates the rows of what is fetched.
"""

from collections.abc import Iterator

from repair.doubts.start_doubts import as_warning, left_gaps, skips_beside
from repair.model.offered_strategies import offered
from repair.model.replication_model import ModelChannel, ModelServer
from repair.model.same_server_id import same_server_id
from repair.model.strategy_case import Case
from repair.model.unlogged_redo import purges_what_it_receives, refuses_replicas
from topology.readings.dialect import who_set_until


def not_to_be_switched(
    case: Case, replica: ModelServer, channel: ModelChannel, source: ModelServer
) -> str | None:
    """Return why a channel is not switched, or not by default, for any content; or None."""
    if channel.is_stuck:
        return "the applier is stopped by an event; repair that first"
    if not channel.auto_position and purges_what_it_receives(case.model, channel):
        return (
            f"{source.name} does not log what it receives (log_replica_updates = OFF): with"
            f" auto-position it refuses {replica.name} (error 1236) at the next connection. Set"
            f" log_replica_updates = ON on {source.name} first"
        )
    if case.is_chosen:
        return None
    if (gaps := left_gaps(case, replica, channel)) is not None:
        return gaps
    if not source.are_settings_known:
        return (
            f"the settings of {source.name} were not read: unless gtid_mode is ON there and it"
            f" logs what it receives, it refuses {replica.name} with auto-position. Read them,"
            f" then choose with {offered(case)}"
        )
    if channel.until:
        return (
            f"{replica.name} was started with UNTIL {channel.until}:"
            f" {who_set_until(channel.until)} wanted it to stop there. Find out why, then choose"
            f" with {offered(case)}"
        )
    if channel.held_back_seconds:
        return (
            f"only the applier of {replica.name} is stopped, and SOURCE_DELAY is"
            f" {channel.held_back_seconds} s: an operator may have stopped it on purpose. Find out"
            f" why, then choose with {offered(case)}"
        )
    if channel.hides_waiting:
        return (
            f"{_hidden_in_relay_log(replica)}. Plan again when the applier has nothing left to do,"
            f" or choose with {offered(case)}"
        )
    if channel.may_be_former:
        former = _of_a_former_log(replica, source)
        return f"{former}. Compare the rows, then choose with {offered(case)}"
    return (
        refuses_replicas(case.model, replica, channel)
        or same_server_id(case, replica)
        or skips_beside(case, replica, channel)
    )


def warnings_of_switch(
    case: Case, replica: ModelServer, channel: ModelChannel, source: ModelServer
) -> Iterator[str]:
    """Yield why rows may not match, as warnings of a switch that the operator selected."""
    if not case.is_chosen:
        return
    if channel.may_be_former:
        yield as_warning(f"{_of_a_former_log(replica, source)}. Compare the rows first")
    if channel.hides_waiting:
        yield as_warning(_hidden_in_relay_log(replica))
    if (skipped := skips_beside(case, replica, channel)) is not None:
        yield as_warning(skipped)


def _of_a_former_log(replica: ModelServer, source: ModelServer) -> str:
    return (
        f"what {replica.name} received may belong to a former log of {source.name}: after a reset"
        f" or a crash, {source.name} reuses GTIDs that {replica.name} may have with other content"
    )


def _hidden_in_relay_log(replica: ModelServer) -> str:
    return (
        f"the applier of {replica.name} is behind its receiver, and no GTID set of its version"
        " shows what waits in the relay log, which the switch deletes. If the source lost it, it"
        f" refuses {replica.name} (1236) once that is applied"
    )
