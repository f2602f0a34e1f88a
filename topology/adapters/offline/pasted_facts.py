"""Makes the reading of one server from its pasted output. Pure.

1. The result is what adapters/mysql.py reads of a live server. The same functions parse channels,
   workers and sets, so pasted output takes the path of a live answer.
2. A fact that the file does not contain is unread. Its reason is the statement that shows it.
   Nothing is assumed: a server without SHOW REPLICA STATUS in its file does not count as one
   without channels. A setting that was not shown does not count as one that the server does not
   have.
3. A malformed set ends the reading (PastedSetProblem). Any other part that cannot be parsed is
   unread, with its line.
4. The times of the reading are those that `date -u` printed around the statements, on the machine
   where the output was collected. Without them the server's clock cannot be compared with another
   one's, so it is unread.
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from binlog.log_times import EPOCH
from gtid import GtidSet
from topology.adapters.offline.facts_of_file import FactsOfFile, PastedFile
from topology.adapters.offline.pasted_output import LoggedError, PastedOutput
from topology.adapters.offline.pasted_sets import (
    ExecutedSet,
    PastedSetProblem,
    check_whole,
    executed_in,
    is_before_end,
    last_value,
    owned_in,
    parse_set,
)
from topology.adapters.offline.pasted_settings import settings_in
from topology.adapters.offline.pasted_workers import typed_row, workers_in
from topology.adapters.offline.recognised import CLOCK, EXECUTED_COLUMN, PastedKind, kind_of
from topology.adapters.offline.statements_to_paste import (
    CLOCK_LINES,
    channels_statement,
    log_end_statement,
    statement_of,
)
from topology.adapters.status import (
    binary_log_from_row,
    channel_from_row,
    group_from_rows,
    parse_owned,
)
from topology.adapters.vendor_facts import as_vendor_gives, vendor_of_row, why_refused
from topology.readings.dialect import BINARY_LOG, LOG_CLOSED, STATUS_COLUMNS
from topology.readings.group_view import GroupSnapshot
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    LogPosition,
    ServerSnapshot,
    UnreadReason,
)
from topology.readings.version import ServerVersion, UnreadableVersion

_PORT: Final = 3306
_NO_BINARY_LOGGING: Final = 1381  # ER_NO_BINARY_LOGGING


def reading_of(output: PastedOutput, source: PastedFile, *, phase: int) -> ServerSnapshot:
    """Return the reading that a file shows. Raises PastedSetProblem."""
    facts = FactsOfFile(output)
    version = _version(facts)
    settings = _settings(facts, version)
    values: dict[str, Any] = {**_identity(facts, version), "version": version}
    values["uptime_seconds"] = _uptime(facts)
    executed = executed_in(output, version)
    if _is_evaluated(facts, values, dict(settings or ()), version):
        values |= _sets(facts, executed)
        values["channels"] = _channels(facts, version)
        values |= _logs(facts, version, executed)
        settings = _with_log_state(facts, settings, values["binary_logs"])
        values["group"] = _group(facts, settings)
    for table in output.cut:
        if not table.columns:
            facts.note("a table", UnreadReason.UNPARSEABLE, f"line {table.line}: {table.cut}")
    known = dict(settings or ())
    started, ended = _times(facts, values.get("server_clock"), source)
    if len(output.times) < 2:  # noqa: PLR2004 - before and after the statements
        values["server_clock"] = None
        facts.note("server_clock", UnreadReason.NOT_PASTED, CLOCK_LINES)
    reading = ServerSnapshot(
        cluster=source.cluster,
        name=source.server,
        host=known.get("hostname") or source.server,
        port=_port(known.get("port")),
        phase=phase,
        read_started=started,
        read_ended=ended,
        settings=settings,
        unread=tuple(facts.unread),
        **values,
    )
    return as_vendor_gives(reading)


def clock_in(output: PastedOutput) -> datetime | None:
    """Return the last time that the server's own clock shows; None without one."""
    value = last_value(output.results, CLOCK)
    return None if value is None else _clock(value.text)


# -- identity -------------------------------------------------------------------------------------


def _version(facts: FactsOfFile) -> ServerVersion | None:
    value = last_value(facts.output.results, "version")
    texts = [(each.text, each.line) for each in facts.output.dump_versions]
    if value is not None:
        texts.append((value.text, value.line))
    if not texts:
        facts.note("version", UnreadReason.NOT_PASTED, f"run {statement_of('version')}")
        return None
    text, line = texts[-1]
    try:
        return ServerVersion.parse(text)
    except UnreadableVersion as error:
        facts.note("version", UnreadReason.UNPARSEABLE, f"line {line}: {error}")
        return None


def _identity(facts: FactsOfFile, version: ServerVersion | None) -> dict[str, Any]:
    results = facts.output.results
    found: dict[str, Any] = {}
    text, comment = last_value(results, "version"), last_value(results, "version_comment")
    found["version_text"] = text.text if text is not None else None
    if text is not None and comment is not None:
        basedir = last_value(results, "basedir")
        texts = {"version": text.text, "version_comment": comment.text}
        if basedir is not None:
            texts["basedir"] = basedir.text
        found["vendor"] = vendor_of_row(texts)
    elif version is not None:
        facts.note("vendor", UnreadReason.NOT_PASTED, f"run {statement_of('version_comment')}")
    for name, convert in (("server_uuid", UUID), ("server_id", int), (CLOCK, _clock)):
        value = last_value(results, name)
        if value is None:
            facts.missing(PastedKind.VALUES, statement_of(name), name)
        else:
            found[name] = facts.take(name, value.line, partial(convert, value.text))
    return found


def _is_evaluated(
    facts: FactsOfFile,
    values: dict[str, Any],
    settings: dict[str, str],
    version: ServerVersion | None,
) -> bool:
    """Return whether gtid-audit evaluates servers of this kind; note why not."""
    if why := why_refused(values.get("vendor"), version):
        detail = f"{values['version_text']} {why}"
        facts.note("gtid_executed", UnreadReason.UNSUPPORTED, detail)
        return False
    value = last_value(facts.output.results, "gtid_mode")
    mode = value.text if value is not None else settings.get("gtid_mode", "")
    if not mode:
        facts.note("gtid_mode", UnreadReason.NOT_PASTED, f"run {statement_of('gtid_mode')}")
    if mode.upper().startswith("OFF"):
        detail = f"gtid_mode is {mode}: new transactions get no GTID"
        facts.note("gtid_executed", UnreadReason.UNSUPPORTED, detail)
        return False
    return True


def _sets(facts: FactsOfFile, executed: ExecutedSet | None) -> dict[str, GtidSet | None]:
    found: dict[str, GtidSet | None] = {}
    if executed is None:
        facts.missing(PastedKind.VALUES, statement_of("gtid_executed"), "gtid_executed")
    found["gtid_executed"] = executed.gtids if executed is not None else None
    purged = last_value(facts.output.results, "gtid_purged")
    if purged is None:
        facts.missing(PastedKind.VALUES, statement_of("gtid_purged"), "gtid_purged")
    found["gtid_purged"] = None if purged is None else parse_set(purged, "gtid_purged")
    owned = owned_in(facts.output, executed)
    if owned is None:
        facts.missing(PastedKind.VALUES, statement_of("gtid_owned"), "gtid_owned")
        found["gtid_owned"] = None
    else:
        text = owned.text
        check_whole(text, "gtid_owned", line=owned.line)
        found["gtid_owned"] = facts.take("gtid_owned", owned.line, lambda: parse_owned(text))
    return found


def _uptime(facts: FactsOfFile) -> int | None:
    for result in reversed(facts.output.results):
        if kind_of(result.table.columns) is not PastedKind.VARIABLES:
            continue
        for row in result.table.rows:
            text = row["Value"]
            if row["Variable_name"] == "Uptime" and text is not None:
                return facts.take("uptime_seconds", result.table.line, partial(int, text))
    facts.note("uptime_seconds", UnreadReason.NOT_PASTED, f"run {statement_of('uptime')}")
    return None


def _clock(text: str) -> datetime:
    """Parse UTC_TIMESTAMP() or seconds since 1970. Raises ValueError."""
    number = text.replace(".", "", 1)
    if number.isascii() and number.isdigit():
        return EPOCH + timedelta(seconds=float(text))
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _times(
    facts: FactsOfFile, clock: datetime | None, source: PastedFile
) -> tuple[datetime, datetime]:
    """Return when the output was printed: by `date -u`, the server's clock, or the file."""
    times = [datetime.fromisoformat(each.text) for each in facts.output.times]
    if len(times) > 1:
        if times[-1] < times[0]:
            line = facts.output.times[-1].line
            raise PastedSetProblem(line, f"the time {times[-1]} is before the first one")
        return times[0], times[-1]
    moment = times[0] if times else clock or source.saved_at
    return moment, moment


def _port(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else _PORT


# -- channels, logs, settings, group --------------------------------------------------------------


def _channels(
    facts: FactsOfFile, version: ServerVersion | None
) -> tuple[ChannelSnapshot, ...] | None:
    found = facts.last(PastedKind.CHANNELS)
    if found is None:
        facts.missing(PastedKind.CHANNELS, f"{channels_statement(version)}{_in_log(facts)}")
        return None
    _, result = found
    line, rows = result.table.line, result.table.rows
    workers = workers_in(facts, rows, version) if rows else {}
    for row in rows:
        for name in STATUS_COLUMNS["gtid_retrieved"]:
            check_whole(row.get(name) or "", name, line=line)

    def read() -> tuple[ChannelSnapshot, ...]:
        channels = (channel_from_row(row, workers) for row in rows)
        return tuple(sorted(channels, key=lambda channel: channel.name))

    return facts.take("channels", line, read)


def _in_log(facts: FactsOfFile) -> str:
    """Return what the error log shows instead, if anything: a thread stopped, at some time."""
    last: dict[tuple[bool, str], LoggedError] = {}
    for each in facts.output.logged:
        last[each.is_applier, each.channel] = each
    texts = (
        f"; line {each.line} of the file: the {'applier' if each.is_applier else 'receiver'} of"
        f" channel {each.channel!r} stopped at {each.at} with error {each.errno}"
        f" (gtid-audit explain {each.errno})"
        for each in last.values()
    )
    return "".join(texts)


def _logs(
    facts: FactsOfFile, version: ServerVersion | None, executed: ExecutedSet | None
) -> dict[str, Any]:
    found = facts.last(PastedKind.LOG_END)
    end: LogPosition | None = None
    if found is None:
        facts.missing(PastedKind.LOG_END, log_end_statement(version))
    elif found[1].table.rows:
        at, result = found
        row = result.table.rows[-1]
        if is_before_end(executed, at=at, status_set=row.get(EXECUTED_COLUMN)):
            end = facts.take("log_end", result.table.line, lambda: _position(row))
        else:
            detail = f"run {log_end_statement(version)} after gtid_executed"
            facts.note("log_end", UnreadReason.NOT_PASTED, detail)
    return {"log_end": end, "binary_logs": _binary_logs(facts)}


def _position(row: Any) -> LogPosition | None:  # noqa: ANN401 - a row
    return LogPosition.of(file=str(row["File"]), position=int(row["Position"]))


def _binary_logs(facts: FactsOfFile) -> tuple[BinaryLog, ...] | None:
    found = facts.last(PastedKind.BINARY_LOGS)
    if found is None:
        if any(each.errno == _NO_BINARY_LOGGING for each in facts.output.refused):
            return ()
        facts.missing(PastedKind.BINARY_LOGS, "SHOW BINARY LOGS")
        return None
    table = found[1].table
    return facts.take(
        "binary_logs",
        table.line,
        lambda: tuple(map(binary_log_from_row, table.rows)),
    )


def _settings(
    facts: FactsOfFile, version: ServerVersion | None
) -> tuple[tuple[str, str], ...] | None:
    found = settings_in(facts.output.results, version)
    if found.missing:
        names = ", ".join(found.missing)
        facts.missing(PastedKind.VARIABLES, f"SHOW GLOBAL VARIABLES (not shown: {names})")
    if found.has_no_sources:
        facts.missing(
            PastedKind.SOURCES_OF_VALUES, "the statement `sources_of_values` of --questions"
        )
    for problem in found.problems:
        facts.note("settings", UnreadReason.UNPARSEABLE, problem)
    return found.settings


def _with_log_state(
    facts: FactsOfFile,
    settings: tuple[tuple[str, str], ...] | None,
    binary_logs: Sequence[BinaryLog] | None,
) -> tuple[tuple[str, str], ...] | None:
    """Add that the server closed its log: log_bin is ON, and it shows none."""
    end = facts.last(PastedKind.LOG_END)
    shows_none = end is not None and not end[1].table.rows and binary_logs == ()
    known = dict(settings or ())
    if settings is None or not shows_none or known.get("log_bin") not in ("ON", "1"):
        return settings
    return tuple(sorted({**known, BINARY_LOG: LOG_CLOSED}.items()))


def _group(
    facts: FactsOfFile, settings: tuple[tuple[str, str], ...] | None
) -> GroupSnapshot | None:
    name = dict(settings or ()).get("group_replication_group_name")
    if not name:
        return None
    found = facts.last(PastedKind.GROUP)
    if found is None:
        facts.missing(PastedKind.GROUP, "the statement `group` of --questions")
        return None
    table = found[1].table
    rows = [typed_row(row) for row in table.rows]
    own = next((row for row in rows if row.get("is_this")), None)
    if own is None:
        return None
    workers = facts.last(PastedKind.WORKERS)
    if workers is None:
        facts.missing(PastedKind.WORKERS, "the statement `workers` of --questions")
    of_workers = [typed_row(row) for row in workers[1].table.rows] if workers is not None else []
    return facts.take("group", table.line, lambda: group_from_rows(name, own, rows, of_workers))
