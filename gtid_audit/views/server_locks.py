"""The result of `locks`: the source of its text and of its JSON document. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from topology.catalogue.findings import Verdict, worst_verdict
from topology.documents.document_version import versioned
from topology.locks.lock_waits import LockReading, LockSession, LockWait, WaitEnd, end_of, waits_of
from topology.readings.snapshot import UnreadFact


@dataclass(frozen=True, slots=True)
class ServerLocks:
    """The waits of one server, and what could not be read."""

    server: str
    waits: tuple[LockWait, ...]
    unread: tuple[UnreadFact, ...]

    @property
    def verdict(self) -> Verdict:
        """Return UNKNOWN if a wait may be missing or has no known holder, else WARNING if any."""
        if self.unread or any(wait.is_hidden for wait in self.waits):
            return Verdict.UNKNOWN
        return Verdict.WARNING if self.waits else Verdict.OK

    def end(self, wait: LockWait) -> WaitEnd:
        """Return where the chains of a wait end."""
        return end_of(wait, self.waits)

    def kills(self, wait: LockWait) -> tuple[str, ...]:
        """Return what ends the sessions at the end of a chain, as far as that is certain."""
        return tuple(f"{each.kill};" for each in self.end(wait).to_kill)


def locks_of(server: str, reading: LockReading, unread: Sequence[UnreadFact]) -> ServerLocks:
    """Return the waits that a reading of one server shows."""
    return ServerLocks(server, waits_of(reading), tuple(unread))


def verdict_of_locks(servers: Sequence[ServerLocks]) -> Verdict:
    """Return the verdict over all servers."""
    return worst_verdict(each.verdict for each in servers)


def locks_document(servers: Sequence[ServerLocks]) -> dict[str, Any]:
    """Return the JSON document."""
    return versioned(
        {
            "verdict": verdict_of_locks(servers).value,
            "servers": [
                {
                    "server": each.server,
                    "verdict": each.verdict.value,
                    "waits": [_wait(each, wait) for wait in each.waits],
                }
                for each in servers
            ],
            "unknown": [
                {
                    "server": each.server,
                    "fact": fact.fact,
                    "reason": f"{fact.reason.value}: {fact.detail}",
                }
                for each in servers
                for fact in each.unread
            ],
        }
    )


def _wait(server: ServerLocks, wait: LockWait) -> dict[str, Any]:
    return {
        "session": _session(wait.session),
        "lock": wait.lock,
        "place": wait.place or None,
        "blocked_by": [_session(each) for each in wait.blockers],
        "blocked_without_session": wait.is_without_session,
        "holder_is_known": not wait.is_hidden,
        "may_be_one_of": wait.may_be_one_of,
        "ends_with": [each.session_id for each in server.end(wait).sessions],
        "sql": list(server.kills(wait)),
    }


def _session(session: LockSession) -> dict[str, Any]:
    return {
        "session_id": session.session_id,
        "user": session.user or None,
        "host": session.host or None,
        "command": session.command,
        "state": session.state or None,
        "seconds": session.seconds,
        "query": session.query or None,
        "transaction_seconds": session.transaction_seconds,
        "transaction_rows": session.transaction_rows,
        "gtid": session.gtid or None,
        "channel": session.channel,
        "worker": session.worker,
        "statements": list(session.statements),
    }
