"""`audit`: reads and evaluates servers, a fleet, or a stored run."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from gtid_audit.api.api_errors import say_nothing, translated
from gtid_audit.api.audit_result import AuditResult, result_of_stored
from gtid_audit.api.requested_servers import (
    RequestedServers,
    fleet_of,
    one_of,
    refuse,
    requested_servers,
)
from gtid_audit.tasks.kept_history import KeptHistory, history_at

MAX_AGE: Final = timedelta(hours=24)


def audit(
    *dsns: str,
    fleet: str | Path | None = None,
    cluster: str | None = None,
    stored: str | Path | None = None,
    discover: bool = False,
    password: str | None = None,
    timeout_seconds: float | None = None,
    allowed_uuids: Iterable[UUID | str] = (),
    content: bool | None = None,
    definitions: bool | None = None,
    history: str | Path | None = None,
    max_age: timedelta | None = MAX_AGE,
    progress: Callable[[str], None] = say_nothing,
) -> AuditResult:
    """Read servers and evaluate them, in this process.

    Args:
        dsns: the servers of one cluster, as `mysql://user@host:port/?option=value`.
        fleet: a fleet file, instead of DSNs; `cluster` selects one of its clusters.
        stored: a directory of stored runs, instead of servers: the latest run is evaluated.
        discover: also audit the servers that are linked with the DSNs.
        password: for servers without an option file. Without it, GTID_AUDIT_PASSWORD, then
            MYSQL_PWD of the environment.
        timeout_seconds: for one server, at most 3600. Default: 5.
        allowed_uuids: UUIDs whose extra transactions are not a fault (for DSNs; a fleet file has a
            policy).
        content: compare the content of transactions, or not. None: after a recent restart.
        definitions: compare the definitions of the servers. None: as the fleet file says, else not.
        history: a history file that records since when each finding exists.
        max_age: of a stored run; an older one is UNKNOWN. None: of any age.
        progress: called with one text for each step.

    Raises:
        InvalidRequest: the arguments, an account or a file is wrong.
        MissingPackage: a stored run needs PyArrow.
        UnreadableSource: the stored run is incomplete, damaged, or of another version.
    """
    with translated():
        source = one_of(dsns=dsns, fleet=fleet, stored=stored)
        named = requested_servers(
            dsns, password=password, timeout_seconds=timeout_seconds, allowed_uuids=allowed_uuids
        )
        if source != "dsns":
            named.refuse_settings()
            refuse("is for DSNs", discover=discover)
        if source != "fleet":
            refuse("is for a fleet file", cluster=cluster)
        if stored is not None:
            refuse("is for live servers", content=content, definitions=definitions, history=history)
            return result_of_stored(Path(stored).expanduser(), max_age)
        path = None if history is None else Path(history).expanduser()
        kept = history_at(path, of_servers=source == "dsns")
        asked = _Asked(content, definitions, kept, progress)
        if fleet is not None:
            return _of_fleet(fleet, cluster, asked)
        return _of_servers(named, asked, discover=discover)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What is compared beyond the sets, and where findings are recorded."""

    content: bool | None
    definitions: bool | None
    history: KeptHistory | None
    progress: Callable[[str], None]


def _of_fleet(fleet: str | Path, cluster: str | None, asked: _Asked) -> AuditResult:
    from gtid_audit.tasks.fleet_audit import audit_fleet

    answer = audit_fleet(
        fleet_of(fleet, cluster),
        say=asked.progress,
        content=asked.content,
        definitions=asked.definitions,
        history=asked.history,
    )
    return AuditResult.of_report(answer.report, answer)


def _of_servers(named: RequestedServers, asked: _Asked, *, discover: bool) -> AuditResult:
    from gtid_audit.tasks.named_servers import answer_of_servers

    to_read, unfound = named.discovered(asked.progress) if discover else (named.to_read(), ())
    answer = answer_of_servers(
        to_read,
        content=asked.content,
        definitions=bool(asked.definitions),
        say=asked.progress,
        also_unknown=unfound,
        history=asked.history,
    )
    return AuditResult.of_report(answer.report, answer)
