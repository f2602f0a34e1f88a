"""Applies a written plan: its scripts in order, each compared with its simulation afterwards.

How it works
------------
    take the lock of every server of the plan           nothing was sent if one is refused
    for each step that is not done, its checks first:
        stop if that was requested                      between steps only, and while waiting
        run it, with every statement in the journal     a failed guard or statement ends the run
        read the servers that the step changes          differences end the run

A check is about the moment before its step. Nothing comes between the two: no question, no stop. A
run that is resumed begins with the checks of its first step, whether they had passed or not.

Each end is a state of the journal with its reason. The state of the servers is then one of those
that the plan was made for: between two scripts, or within one. Either way the run may be resumed,
or the repair planned again.

The locks exclude other repairs of gtid-audit, also one of the same cluster whose scripts run on
other servers. A server that did not answer when the plan was made is not in the plan, so it has no
lock. Clients and operators are not excluded: against them the guards of each script decide, at the
moment when it runs.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import pymysql

from binlog.adapters.server_errors import server_words
from repair.adapters.journal import JournalWriter
from repair.adapters.script_runner import (
    ScriptStopped,
    ServerBusy,
    ServerLock,
    open_session,
    run_script,
)
from repair.applying.procedures_applied import EventKind, ProcedureEvent, ProcedureState
from repair.applying.reached_state import ReachedState, reached
from repair.applying.written_plan import PlannedScript, WrittenPlan
from topology.adapters.mysql import MysqlReader
from topology.readings.hidden_passwords import without_secrets
from topology.readings.snapshot import ServerSnapshot
from topology.readings.target import ServerTarget

SETTLE_SECONDS_MAX: Final = 60.0  # for what replication delivers after a step
READ_SECONDS_MAX: Final = 20.0
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended."""

    state: ProcedureState  # DONE: all scripts ran, and the servers are as simulated
    message: str


class _Ended(Exception):
    """The run ends here."""

    def __init__(self, kind: EventKind, state: ProcedureState, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.end = RunEnd(state, message)


@dataclass(frozen=True, slots=True)
class PlanApplier:
    """Applies one plan to its servers."""

    plan: WrittenPlan
    texts: Mapping[str, str]  # the scripts by file name
    targets: Mapping[str, ServerTarget]  # by the name of the server in the plan
    writer: JournalWriter
    # Asked before each step, with the script that changes something; False stops the run.
    may_run: Callable[[PlannedScript], bool]
    is_stopping: Callable[[], bool]  # by a signal to this process
    say: Callable[[ProcedureEvent], None] = field(default=lambda _event: None)

    def run(self, *, done: int) -> RunEnd:
        """Run the scripts after the first `done` ones. Raises UnusableJournal.

        The end is recorded, unless it is DONE: the caller audits the servers first.
        """
        try:
            with ExitStack() as held:
                locks = self._locks(held)
                done = self.plan.begin_again(done)
                self.writer.enter(ProcedureState.RUNNING, done=done)
                if done and not self._may_have_changed(done):
                    self._compare(self.plan.scripts[done - 1])
                for at, script in enumerate(self.plan.scripts[done:], start=done + 1):
                    self._run(script, locks, at)
        except _Ended as ended:
            self._write(ended.kind, ended.end.message)
            self.writer.enter(ended.end.state, ended.end.message)
            return ended.end
        return RunEnd(ProcedureState.DONE, "")

    def _may_have_changed(self, done: int) -> bool:
        """Return whether an earlier run began the step after the first `done` scripts.

        Then the servers may be in the middle of it, and only its guards can say what is left.
        """
        following = (each for each in self.plan.scripts[done:] if not each.is_check)
        script = next(following, None)
        return script is not None and self.writer.has_sent(script.number)

    def _locks(self, held: ExitStack) -> Mapping[str, ServerLock]:
        """Take the lock of every server of the plan, in the order of their names.

        Also of servers without a script: each plan was simulated without the steps of another one.
        Two of them at once would leave a state that neither has announced.
        """
        locks: dict[str, ServerLock] = {}
        for name in sorted(server.name for server in self.plan.servers):
            try:
                lock = held.enter_context(ServerLock(self.targets[name]))
            except (ServerBusy, pymysql.MySQLError, OSError) as error:
                words = str(error) if isinstance(error, ServerBusy) else server_words(error)
                raise _Ended(
                    EventKind.ERROR,
                    ProcedureState.FAILED,
                    f"{name}: {words}. Nothing was sent to any server",
                ) from error
            expected = self.plan.server(name).server_uuid
            if lock.server_uuid != expected:
                raise _Ended(
                    EventKind.ERROR,
                    ProcedureState.FAILED,
                    f"{name}: the server there has server_uuid {lock.server_uuid}; the plan is for"
                    f" {expected}. Nothing was sent to any server",
                )
            locks[name] = lock
        return locks

    def _run(self, script: PlannedScript, locks: Mapping[str, ServerLock], at: int) -> None:
        """Run one script, and compare its servers. Raises _Ended."""
        first, *_ = (*self.plan.checks_of(script), script)
        if script == first:
            self._stop_if_requested(script)
        if lost := [name for name, lock in locks.items() if not lock.is_held]:
            raise _Ended(
                EventKind.STOPPED,
                ProcedureState.STOPPED,
                f"stopped before {script.file_name}: the lock of {', '.join(lost)} was lost, as by"
                " a restart of the server or KILL. Resume, or audit and plan again",
            )
        self._write(EventKind.SCRIPT, script.title, script)
        try:
            with closing(open_session(self.targets[script.server])) as connection:
                printed = run_script(
                    connection,
                    self.texts[script.file_name],
                    sending=lambda statement: self._sending(script, statement),
                )
        except (pymysql.MySQLError, OSError) as error:
            raise self._failed(script, f"cannot connect: {server_words(error)}") from error
        except ScriptStopped as stopped:
            raise self._failed(script, _words(stopped)) from stopped
        if printed != script.proves:
            raise self._failed(script, f"it printed {printed!r} instead of {script.proves!r}")
        self._write(EventKind.ANSWERED, printed, script)
        self.writer.enter(ProcedureState.RUNNING, done=at)
        self._compare(script)

    def _sending(self, script: PlannedScript, statement: str) -> None:
        self._write(EventKind.SENT, without_secrets(statement), script)

    def _failed(self, script: PlannedScript, why: str) -> _Ended:
        message = f"{script.file_name} on {script.server}: {why}"
        return _Ended(EventKind.ERROR, ProcedureState.FAILED, message)

    def _stop_if_requested(self, script: PlannedScript) -> None:
        change = self.plan.change_of(script)
        if self.is_stopping() or self.writer.is_stop_requested or not self.may_run(change):
            raise _Ended(
                EventKind.STOPPED,
                ProcedureState.STOPPED,
                f"stopped by request before {script.file_name}",
            )

    def _compare(self, script: PlannedScript) -> None:
        """Wait until the servers are as simulated after a script. Raises _Ended."""
        if script.is_check:
            return
        deadline = time.monotonic() + SETTLE_SECONDS_MAX
        is_waiting = False
        while True:
            states = self._reached(script)
            differing = [each for each in states if each.differences]
            if differing:
                raise self._differs(script, differing)
            arriving = [each for each in states if each.arriving and not each.delay_seconds]
            if not arriving:
                break
            if time.monotonic() >= deadline:
                raise self._differs(script, arriving)
            if not is_waiting:
                is_waiting = True
                self._write(EventKind.WAITING, _arriving(arriving), script)
                self.writer.enter(ProcedureState.WAITING, _arriving(arriving))
            if self.is_stopping() or self.writer.is_stop_requested:
                raise _Ended(
                    EventKind.STOPPED,
                    ProcedureState.STOPPED,
                    f"stopped by request after {script.file_name}: {_arriving(arriving)}",
                )
            time.sleep(_LOOK_SECONDS)
        delayed = [each for each in states if each.arriving]
        text = f"as simulated: {', '.join(each.server for each in states)}"
        if delayed:
            text += f"; {_arriving(delayed)}: SOURCE_DELAY is set there"
        self._write(EventKind.COMPARED, text, script)
        self.writer.enter(ProcedureState.RUNNING)

    def _reached(self, script: PlannedScript) -> list[ReachedState]:
        """Compare each server with its state after this script, or after a later one.

        A plan that ran before, or a script that ran and was not recorded, is ahead of this script.
        """
        names = {UUID(each.server_uuid): each.name for each in self.plan.servers}
        found = []
        for before, after in zip(script.before, script.after, strict=True):
            seen = self._read(after.server)
            now = reached(before, after, seen, names)
            ahead = (
                reached(each, later, seen, names)
                for each, later in self.plan.states_after(script, after.server)
            )
            as_later = (each for each in ahead if not (each.differences or each.arriving))
            found.append(next(as_later, now) if now.differences else now)
        return found

    def _read(self, name: str) -> ServerSnapshot:
        with closing(
            MysqlReader(
                self.targets[name],
                cluster=self.plan.cluster,
                timeout_seconds_max=READ_SECONDS_MAX,
            )
        ) as reader:
            return reader.read(phase=1)

    def _differs(self, script: PlannedScript, states: Sequence[ReachedState]) -> _Ended:
        lines = [
            f"{each.server}: {text}"
            for each in states
            for text in each.differences or (f"{each.arriving.shortened()} has not arrived",)
        ]
        return _Ended(
            EventKind.DIFFERS,
            ProcedureState.STOPPED,
            f"stopped after {script.file_name}, because the servers are not as simulated:"
            f" {'; '.join(lines)}",
        )

    def _write(self, kind: EventKind, text: str, script: PlannedScript | None = None) -> None:
        number, server = (None, None) if script is None else (script.number, script.server)
        self.say(self.writer.write(kind, text, script=number, server=server))


def _words(stopped: ScriptStopped) -> str:
    """Return why a script stopped, and what that means."""
    if stopped.is_guard:
        return f"a condition of the script is false: {stopped}"
    if stopped.is_lost:
        return (
            f"the connection was lost ({stopped}); the server may have executed the last statement."
            " Resume: the script may run again"
        )
    return f"{stopped}; the statement: {without_secrets(stopped.statement)[:_SHOWN_CHARACTERS_MAX]}"


def _arriving(states: Sequence[ReachedState]) -> str:
    return "; ".join(f"{each.server} waits for {each.arriving.shortened()}" for each in states)


_SHOWN_CHARACTERS_MAX: Final = 300
