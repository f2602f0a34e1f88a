"""Shows who waits for which lock, who holds it, and what ends the wait."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from gtid.counted_nouns import counted
from gtid_audit.views.report_parts import QUIET, line_of
from gtid_audit.views.report_text import headline, labelled, show
from gtid_audit.views.server_locks import ServerLocks, verdict_of_locks
from topology.locks.lock_waits import LockSession, LockWait

WAITS_SHOWN_MAX: Final = 20
_STATEMENTS_SHOWN_MAX: Final = 5
_QUERY_CHARACTERS_MAX: Final = 300
_WITHOUT_SESSION: Final = (
    "a holder without a session: a prepared XA transaction, a transaction that InnoDB rolls back"
    " after a crash, or a background thread"
)
_END_IT: Final = (
    "XA RECOVER CONVERT XID lists prepared transactions: the application ends its own by XA COMMIT"
    " or XA ROLLBACK. A rollback after a crash ends by itself"
)
_HIDDEN: Final = "this server does not show who holds the lock"
_REPLICATION: Final = (
    "a thread of replication holds it: it commits when its own wait ends. Do not KILL it: a"
    " parallel applier can leave gaps"
)
_CANDIDATES: Final = "find out which one owns the next GTID of the channel, and end that session"
_LOOK: Final = "SHOW FULL PROCESSLIST: look for LOCK TABLES, FLUSH TABLES, and idle sessions"
_HIDDEN_END: Final = (
    "the last session of the chain waits itself, and this server does not show for whom: SHOW FULL"
    " PROCESSLIST has its state"
)
_EACH_OTHER: Final = (
    "the sessions wait for each other: KILL one of them that is no thread of replication"
)


def show_locks(servers: Sequence[ServerLocks]) -> None:
    """Show every wait of every server."""
    parts: list[RenderableType] = [headline(verdict_of_locks(servers), locks_headline(servers))]
    for server in servers:
        if server.waits or server.unread:
            parts += [Text(), line_of(server.server)]
        for wait in server.waits[:WAITS_SHOWN_MAX]:
            parts.append(labelled(_rows(server, wait)))
        if len(server.waits) > WAITS_SHOWN_MAX:
            rest = len(server.waits) - WAITS_SHOWN_MAX
            parts.append(Text(f"… and {counted(rest, 'more wait')}; --json has all", style=QUIET))
        parts += [
            line_of(f"  not read: {fact.fact}: {fact.reason.value}: {fact.detail}")
            for fact in server.unread
        ]
    show(*parts)


def locks_headline(servers: Sequence[ServerLocks]) -> str:
    """Return what stands after the verdict."""
    count = sum(len(each.waits) for each in servers)
    said = f"{counted(count, 'session')} {'waits' if count == 1 else 'wait'} for a lock"
    return f"{counted(len(servers), 'server')} · {said if count else 'no lock wait'}"


def _rows(server: ServerLocks, wait: LockWait) -> list[tuple[str, RenderableType]]:
    session = wait.session
    where = f" on {wait.place}" if wait.place else ""
    rows: list[tuple[str, RenderableType]] = [
        ("waits", line_of(f"{_name(session)}: {wait.lock}{where}{_for(session.seconds)}"))
    ]
    rows += _details(session)
    label = "one of" if wait.may_be_one_of else "for"
    for blocker in wait.blockers:
        rows.append((label, line_of(f"{_name(blocker)}{_state(blocker)}")))
        rows += _details(blocker)
    if wait.is_without_session:
        rows.append(("for", line_of(_WITHOUT_SESSION)))
    if wait.is_hidden:
        rows.append(("for", line_of(_HIDDEN)))
    rows.append(("do", line_of(_advice(server, wait))))
    return rows


def _advice(server: ServerLocks, wait: LockWait) -> str:
    end = server.end(wait)
    if not end.is_certain:
        return _CANDIDATES
    said = []
    kills = server.kills(wait)
    if kills:
        said.append(f"{' '.join(kills)} (rolls back the open transaction of that session)")
    if any(each.is_replication for each in end.sessions):
        said.append(_REPLICATION)
    if end.is_without_session:
        said.append(_END_IT)
    if end.is_hidden and wait.blockers:
        said.append(_HIDDEN_END)
    if not said and wait.blockers:
        said.append(_EACH_OTHER)
    return ". ".join(said) or _LOOK


def _name(session: LockSession) -> str:
    gtid = f", owns {session.gtid}" if session.gtid else ""
    if not session.is_replication:
        return f"session {session.session_id}, {session.user}@{session.host}{gtid}"
    channel = f" of channel {session.channel!r}" if session.channel else ""
    thread = "replication thread" if session.worker is None else f"applier worker {session.worker}"
    return f"session {session.session_id}, {thread}{channel}{gtid}"


def _state(session: LockSession) -> str:
    open_for, rows = session.transaction_seconds, session.transaction_rows
    transaction = "" if open_for is None else f", transaction open{_for(open_for)}"
    if rows:
        transaction += f" with {counted(rows, 'changed row')}"
    return f": {session.state or session.command}{_for(session.seconds)}{transaction}"


def _for(seconds: int | None) -> str:
    return "" if seconds is None else f" for {seconds:,} s"


def _details(session: LockSession) -> list[tuple[str, RenderableType]]:
    rows: list[tuple[str, RenderableType]] = []
    if session.query:
        text = " ".join(session.query.split())
        cut = text[:_QUERY_CHARACTERS_MAX] + ("…" if len(text) > _QUERY_CHARACTERS_MAX else "")
        rows.append(("", line_of(cut)))
    elif session.statements and not session.is_replication:
        recent = session.statements[-_STATEMENTS_SHOWN_MAX:]
        rows.append(("", Text("executed: " + "; ".join(recent), style=QUIET)))
    return rows
