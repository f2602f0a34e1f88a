"""Reads scenarios.txt: what the servers say on top, what the audit says below the line.

An upper-case letter before a colon stands for a UUID. What a line does not say is ordinary: both
threads run, auto-position is on, nothing is purged or owned, every log ends at 1000 and has been
read that far. Below `later` stands what the second reading shows otherwise.

`content a b A:1-3 different proved` says what the binary logs of a and b showed of these
transactions (different, empty or commit; proved or likely); `uncompared a "reason"`, what they did
not. Without either, contents were not compared.

`example H1` selects the first finding of H1 as the example of docs/catalogue.md and `explain`.

`consumer c set=A:1-3 server=a` is a consumer, whose set may change (`later=A:1-5`) or not
(`fixed=yes`), or was not read (`unread="reason"`). transcript_definitions.py has the lines about
definitions.
"""

import re
import shlex
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from gtid import Gtid, GtidSet
from tests.topology.transcript_definitions import ToldDefinitions
from tests.topology.transcript_groups import group_of
from tests.topology.transcript_words import gtids, uuid_of
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding
from topology.facts.cluster_facts import gather_facts
from topology.policy import Policy
from topology.readings.consumers import ConsumerReading, OfferedReading
from topology.readings.contents import (
    ContentDifference,
    ContentReading,
    Difference,
    TransactionVersion,
    UnreadContent,
)
from topology.readings.dialect import SOURCES_OF_VALUES, dialect_of
from topology.readings.history_evidence import (
    CommitRecord,
    HistoryEvidence,
    LogReach,
    LogSearch,
    LogStart,
)
from topology.readings.snapshot import (
    BinaryLog,
    ChannelSnapshot,
    ClusterSnapshot,
    LogPosition,
    ServerSnapshot,
    ThreadState,
    UnreadFact,
    UnreadReason,
)
from topology.readings.vendors import Vendor
from topology.readings.version import ServerVersion
from topology.readings.worker import WorkerSnapshot
from topology.rules import RULES

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
_UUID = re.compile(r"00000000-0000-0000-0000-0000000000([0-9a-f]{2})")
_STATES = {
    "read all": "Replica has read all relay log; waiting for more updates",
    "read all 5.6": "Slave has read all relay log; waiting for the slave I/O thread to update it",
    "delayed": "Waiting until SOURCE_DELAY seconds after source executed event",
    "no work": "Waiting for an event from Coordinator",
    "not seen": "",
}
_THREADS = {
    "running": ThreadState.RUNNING,
    "connecting": ThreadState.CONNECTING,
    "stopped": ThreadState.STOPPED,
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One story: its title, what was read, and what has to be said."""

    title: str
    snapshot: ClusterSnapshot
    policy: Policy
    expected: str
    line: int
    examples: tuple[str, ...] = ()  # codes


@cache
def read_scenarios(text: str) -> tuple[Scenario, ...]:
    """Read the whole file, once: stories are separated by a line of `====`."""
    found = []
    line = 1
    for block in text.split("\n====\n"):
        told, _, expected = block.partition("\n----")
        try:
            found.append(_scenario(told, expected.strip(), line))
        except Exception as error:
            raise ValueError(f"scenarios.txt, story at line {line}: {error}") from error
        line += block.count("\n") + 2
    return tuple(found)


def transcript_of(scenario: Scenario) -> str:
    """Return what the audit says, in the words of the file."""
    audit = audit_cluster(scenario.snapshot, scenario.policy)
    lines = [audit.verdict.value, *map(_line, audit.findings)]
    lines += [f"not told: {_line(finding)}" for finding in _not_told(scenario, audit)]
    lines += [f"unknown: {one.server}, {one.fact}: {_short(one.reason)}" for one in audit.unknown]
    return "\n".join(lines)


def _not_told(scenario: Scenario, audit: ClusterAudit) -> list[Finding]:
    facts = gather_facts(scenario.snapshot, scenario.policy)
    told = {finding.id for finding in audit.findings}
    found = [finding for rule in RULES for finding in rule(facts) if finding.id not in told]
    return sorted(found, key=lambda finding: finding.order)


def _line(finding: Finding) -> str:
    where = " -> ".join(name for name in (finding.source, finding.replica) if name is not None)
    words = [finding.code, finding.severity.value, finding.grade.value]
    text = " ".join(words) + (f", {where}" if where else "")
    text += f" by channel {finding.channel}" if finding.channel else ""
    text += f": {_short(str(finding.gtid_set))}" if finding.gtid_set else ""
    ways = [strategy.name for strategy in finding.strategies]
    return text + (f" ({', '.join(ways)})" if ways else "")


def _short(text: str) -> str:
    return _UUID.sub(lambda found: chr(int(found[1], 16)), text)


def _place(text: str) -> LogPosition | None:
    """Read `1000` or `2/50`: the offset, in the first file unless another is named."""
    if text == "none":
        return None
    number, _, offset = text.rpartition("/")
    return LogPosition.of(file=f"binlog.{int(number or 1):06}", position=int(offset))


# -- a story, line by line ------------------------------------------------------------------------


@dataclass
class _Told:
    """What a story says of one server in one reading."""

    facts: dict[str, str] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    channels: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # by "source" or "source/name"
    unread: list[UnreadFact] = field(default_factory=list)


def _scenario(told: str, expected: str, line: int) -> Scenario:
    titles: list[str] = []
    first: dict[str, _Told] = {}
    later: dict[str, _Told] = {}
    policy = Policy()
    differences: list[ContentDifference] = []
    uncompared: list[UnreadContent] = []
    consumers: list[ConsumerReading] = []
    examples: list[str] = []
    defined = ToldDefinitions(NOON)
    reading, server = first, _Told()
    for text in told.splitlines():
        words = shlex.split(text, comments=False) if not text.startswith("#") else []
        match words:
            case []:
                titles += [text.removeprefix("#").strip()] if text.startswith("#") else []
            case ["example", *codes]:
                examples += codes
            case ["policy", *pairs]:
                policy = _policy(_pairs(pairs))
            case ["later"]:
                reading = later
            case ["server", name, *pairs]:
                server = reading.setdefault(name, _Told())
                server.facts = _pairs(pairs)
            case ["from", source, *pairs]:
                server.channels[source] = _pairs(pairs)
            case ["logs", *pairs]:
                server.logs = _pairs(pairs)
            case ["unread", fact, reason, *detail]:
                server.unread.append(UnreadFact(fact, UnreadReason(reason), " ".join(detail)))
            case ["content", source, replica, which, kind, grade]:
                differences += _differences((source, replica), which, kind, grade)
            case ["consumer", name, *pairs]:
                consumers.append(_consumer(name, _pairs(pairs)))
            case ["uncompared", name, reason]:
                uncompared.append(UnreadContent(name, reason))
            case _:
                if not defined.hear(words):
                    raise ValueError(f"not understood: {text}")
    letters = {name: one.facts["uuid"] for name, one in first.items()}
    snapshot = ClusterSnapshot(
        "story",
        tuple(_server(name, first[name], _Told(), letters, 1) for name in sorted(first)),
        tuple(
            _server(name, first[name], later.get(name, _Told()), letters, 2)
            for name in sorted(first)
        ),
        consumers=tuple(sorted(consumers, key=lambda each: each.name)),
        definitions=defined.reading(),
    )
    title = " ".join(one for one in titles if one)
    if differences or uncompared:
        snapshot = snapshot.with_contents(
            ContentReading(NOON, 10, (), tuple(differences), tuple(uncompared))
        )
    return Scenario(title, snapshot, policy, expected, line, tuple(examples))


def _consumer(name: str, pairs: dict[str, str]) -> ConsumerReading:
    """Read `set=A:1-5 later=A:1-7 server=a fixed=yes`, or `unread="no answer"`."""
    unread = pairs.pop("unread", "")
    sets = [pairs.pop("set", "")] * 2
    sets[1] = pairs.pop("later", sets[1])
    first, last = (
        OfferedReading(NOON + timedelta(seconds=at), None if unread else gtids(text), unread)
        for at, text in zip((0, 3), sets, strict=True)
    )
    server, is_fixed = pairs.pop("server", None), pairs.pop("fixed", "no") == "yes"
    if pairs:
        raise ValueError(f"{name}: no such fact: {', '.join(pairs)}")
    return ConsumerReading(name, server, "offset.json", is_fixed, first, last)


_DIFFERENCES = {
    "different": Difference.CONTENT,
    "drift": Difference.DRIFT,
    "empty": Difference.EMPTY,
    "commit": Difference.COMMIT,
}


def _differences(
    names: tuple[str, str], which: str, kind: str, grade: str
) -> list[ContentDifference]:
    source, replica = (
        TransactionVersion(
            server=name,
            place="binlog.000001:157",
            committed_at=NOON + timedelta(microseconds=number) if grade == "proved" else None,
            logged_at=NOON,
            content="nothing" if kind == "empty" and number else "d.t: 1 inserted",
            is_empty=kind == "empty" and bool(number),
        )
        for number, name in enumerate(names)
    )
    return [
        ContentDifference(
            gtid, _DIFFERENCES[kind], grade == "proved", "they differ", source, replica
        )
        for gtid in _singly(which)
    ]


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(_pair(word) for word in words)


def _pair(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise ValueError(f"expected key=value, found {word!r}")
    return key, value


def _policy(pairs: dict[str, str]) -> Policy:
    external = pairs.pop("external", "")
    return Policy(
        allowed_uuids=frozenset(uuid_of(one) for one in pairs.pop("allowed", "").split(",") if one),
        external_sources=frozenset(one for one in external.split(",") if one),
        lock_wait_seconds_max=int(pairs.pop("lock", "10")),
        stall_seconds_max=int(pairs.pop("stall", "60")),
        runway_seconds_min=int(pairs.pop("runway", "86400")),
        intervals_max=int(pairs.pop("intervals", "1000")),
        ddl_wait_seconds_max=int(pairs.pop("ddl-wait", "300")),
        levels=tuple(
            (code, level)
            for code, _, level in (
                one.partition(":") for one in pairs.pop("levels", "").split(",") if one
            )
        ),
    )


def _server(
    name: str, first: _Told, later: _Told, letters: dict[str, str], phase: int
) -> ServerSnapshot:
    facts = {"executed": "", "purged": "", "owned": "", "log": "1000", "uptime": "900"}
    facts |= first.facts | later.facts
    started = NOON + timedelta(seconds=phase)
    empty = ServerSnapshot(
        cluster="story",
        name=name,
        host=f"{name}.example",
        port=3306,
        phase=phase,
        read_started=started,
        read_ended=started,
        unread=tuple(sorted({*first.unread, *later.unread})),
    )
    if any(fact.fact == "connection" for fact in empty.unread):
        return empty
    told = {
        key: {**first.channels.get(key, {}), **later.channels.get(key, {})}
        for key in sorted({*first.channels, *later.channels})
    }
    version = ServerVersion.parse(facts.pop("version", "9.7.4"))
    values: dict[str, Any] = {
        "server_uuid": uuid_of(facts.pop("uuid")),
        "version": version,
        "vendor": Vendor(facts.pop("vendor", "MySQL")),
        "gtid_executed": gtids(facts.pop("executed")),
        "gtid_purged": gtids(facts.pop("purged")),
        "gtid_owned": gtids(facts.pop("owned")),
        "log_end": _place(facts.pop("log")),
        "uptime_seconds": int(facts.pop("uptime")),
        "channels": tuple(_channel(key, words, letters) for key, words in told.items()),
        "server_clock": started + timedelta(seconds=int(facts.pop("clock", "0"))),
        "history_evidence": _logs(first.logs | later.logs) if phase > 1 else None,
        "settings": tuple(sorted({"hostname": name, **_kept(version), **_settings(facts)}.items())),
        "server_id": int(facts.pop("id", sum(map(ord, name)))),
        "group": group_of(facts, letters, started=started),
    }
    if "files" in facts:  # the binary logs that it still has, by number
        numbers = facts.pop("files").split(",")
        values["binary_logs"] = tuple(BinaryLog(f"binlog.{int(each):06}", 1000) for each in numbers)
    if facts:
        raise ValueError(f"{name}: no such fact: {', '.join(facts)}")
    for fact in empty.unread:
        values[fact.fact] = None
        if fact.reason is UnreadReason.UNSUPPORTED:  # then the reader asks nothing more
            values["channels"] = None
    return replace(empty, **values)


def _logs(words: dict[str, str]) -> HistoryEvidence | None:
    """Read what logs show, in seconds from noon.

    `first=1/-500`: log 1 was begun then. `A:98=-20#7`: a commit of server 7. `until:A:5-9=2/-600`:
    log 2 is the first that has any of these, and was last written to then. `absent=A:5`: searched
    for, and in no log. `before:b:A:5-9=A:5`: of these, only A:5 is before the position of b's
    channel.
    """
    if not words:
        return None
    commits, reaches, searches, absent = [], [], [], GtidSet()
    first = None
    for key, value in words.items():
        if key == "first":
            number, _, seconds = value.partition("/")
            begun = NOON + timedelta(seconds=float(seconds))
            first = LogStart(f"binlog.{int(number):06}", begun, GtidSet())
            continue
        if key == "absent":
            absent = gtids(value)
            continue
        if key.startswith("until:"):
            number, _, seconds = value.partition("/")
            closed = NOON + timedelta(seconds=float(seconds))
            reaches.append(LogReach(gtids(key[6:]), f"binlog.{int(number):06}", closed))
            continue
        if key.startswith("before:"):
            replica, _, wanted = key[7:].partition(":")
            searches.append(LogSearch(replica, "", "", gtids(wanted), gtids(value)))
            continue
        seconds, _, server_id = value.partition("#")
        at = NOON + timedelta(seconds=float(seconds))
        commits.append(
            CommitRecord(gtids(key), int(server_id or 1), at, is_exact=True, logged_at=at)
        )
    return HistoryEvidence(
        first, tuple(commits), searches=tuple(searches), reaches=tuple(reaches), absent=absent
    )


def _settings(facts: dict[str, str]) -> dict[str, str]:
    """Read `set.replica_exec_mode=IDEMPOTENT`."""
    return {key[4:]: facts.pop(key) for key in sorted(facts) if key.startswith("set.")}


def _kept(version: ServerVersion) -> dict[str, str]:
    """Return where a server has values from: nothing has changed them, where that is shown."""
    shown = SOURCES_OF_VALUES.values() if dialect_of(version).has_variables_info else ()
    return dict.fromkeys(shown, "EXPLICIT")


def _channel(key: str, words: dict[str, str], letters: dict[str, str]) -> ChannelSnapshot:
    source, _, name = key.partition("/")
    words = dict(words)
    receiver_errno, receiver_error = _error(words.pop("receiver-error", ""))
    applier_errno, applier_error = _error(words.pop("applier-error", ""))
    worker_errno, worker_error = _error(words.pop("worker-error", ""))
    letter = words.pop("uuid", letters.get(source, "Z"))
    lag = words.pop("lag", "")
    state = words.pop("state", "")
    delay, _, remaining = words.pop("delay", "0").partition("/")
    channel = ChannelSnapshot(
        name=name,
        source_host=f"{source}.example",
        source_port=int(words.pop("port", "3306")),
        source_uuid=None if letter == "none" else uuid_of(letter),
        auto_position=words.pop("auto-position", "on") == "on",
        gtid_retrieved=gtids(words.pop("retrieved", "")),
        receiver=_THREADS[words.pop("receiver", "running")],
        receiver_errno=receiver_errno,
        receiver_error=receiver_error,
        receiver_error_at="",
        applier=_THREADS[words.pop("applier", "running")],
        applier_errno=applier_errno,
        applier_error=applier_error,
        applier_error_at="",
        received_to=_place(words.pop("read-to", "1000")),
        applied_to=_place(words.pop("applied-to", "none")),
        lag_seconds=int(lag) if lag else None,
        workers=_workers(words, worker_errno, worker_error),
        applier_state=_STATES.get(state, state),
        relay_applied_to=_place(words.pop("relay", "none")),
        delay_seconds=int(delay),
        source_server_id=int(words.pop("source-id", "0")) or None,
        ignored_server_ids=tuple(int(each) for each in words.pop("ignored", "").split(",") if each),
        until=words.pop("until", ""),
        filters=tuple(each for each in words.pop("filters", "").split(";") if each),
        skip_counter=int(words.pop("skip-counter", "0")),
        delay_remaining_seconds=int(remaining) if remaining else None,
    )
    if words:
        raise ValueError(f"channel from {key}: no such fact: {', '.join(words)}")
    return channel


def _workers(words: dict[str, str], errno: int, error: str) -> tuple[WorkerSnapshot, ...]:
    """Read `applying=A:5 worker-state=… seconds=12 idle=3`: workers at work, then idle ones."""
    state, seconds = words.pop("worker-state", ""), words.pop("seconds", "")
    age = int(seconds) if seconds else None
    applying = [GtidSet.of(gtid) for gtid in _singly(words.pop("applying", ""))]
    waits = bool(state)
    state = _STATES.get(state, state) if state or errno else "Executing event"
    if waits and not applying:
        applying = [GtidSet()]  # it waits before it begins
    last = [GtidSet.of(gtid) for gtid in _singly(words.pop("applied", ""))]
    last += [GtidSet()] * (len(applying) - len(last))
    busy = [
        WorkerSnapshot(number, gtids, errno, error, state, age, last_applied)
        for number, (gtids, last_applied) in enumerate(zip(applying, last, strict=True), start=1)
    ]
    unused_for = words.pop("idle-seconds", "")
    unused = int(unused_for) if unused_for else None
    idle = [
        WorkerSnapshot(len(busy) + number, GtidSet(), 0, "", _STATES["no work"], unused)
        for number in range(1, int(words.pop("idle", "0")) + 1)
    ]
    return (*busy, *idle)


def _singly(text: str) -> list[Gtid]:
    return list(gtids(text).gtids())


def _error(text: str) -> tuple[int, str]:
    number, _, words = text.partition(" ")
    return (int(number), words) if number else (0, "")
