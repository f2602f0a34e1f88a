"""S1 and S2: DDL that one server has executed and another has not, and definitions that differ.

Not in RULES: the rules on definitions need the other findings. What a hole, an error or a purge
keeps from a replica is their finding, also if it is DDL. The evidence is there only if the audit
was asked for it (topology/readings/definition_reading.py).

Benign and malign causes that look the same:

* **DDL is missing on a replica (S1).** A backlog that moves (T1, T2, T3 as info) makes the same
  picture as a stopped channel. While it moves, S1 is info. It is a warning if the DDL waits for
  longer than `ddl_wait_seconds_max` of the policy, beyond SOURCE_DELAY, or if more than one DDL
  transaction is missing and no finding explains how they will arrive. DDL that another finding
  keeps from the replica (a hole, a purge, a stopped or blocked thread) is not S1.
* **An object differs (S2).** DDL on its way makes the same picture. pair_drift.py compares the sets
  around both readings, so no transaction that is on its way can explain a `proved` difference. An
  object that DDL on its way may explain is not S2; S1 lists it. If not all of these transactions
  were searched, it is UNKNOWN. One transaction is in no set: the last one that a receiver of 5.6
  had received before it connected again. While the applier is busy and nothing moves, S2 is likely.
* **A replication filter, another source of the replica.** Both leave objects different on purpose.
  They are info, and named.
* **An applier that stopped with an error that such a difference causes** (1054, 1146, 1677 and
  their kind). The object is then S2 even if DDL behind the error concerns it: that DDL does not
  arrive, and the difference may be why.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from gtid import GtidSet
from gtid.counted_nouns import counted
from topology.catalogue.findings import Evidence, Finding, Grade, Severity, Unknown
from topology.facts.applier_facts import may_end_uncounted
from topology.facts.cluster_facts import ClusterFacts
from topology.readings.definition_reading import (
    ComparedDefinitions,
    DefinitionReading,
    DifferingObject,
)
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.snapshot import ChannelSnapshot
from topology.rules.build import finding, lasting
from topology.rules.definition_causes import ApplierError, applier_errors, error_after

APART_MAX: Final = 1  # more DDL transactions apart are a warning, unless they are on their way
SCHEMA_VERSION: Final = "schema version"  # the facts of an `Unknown`
DEFINITIONS: Final = "definitions"
DRIFT_COMMAND: Final = "definitions and SQL"  # the fact with the command that prints both
DDL_SHOWN_MAX: Final = 5
OBJECTS_SHOWN_MAX: Final = 10
_STATEMENT_CHARACTERS_MAX: Final = 200
_MOVING: Final = frozenset({"T1", "T2", "T3", "T4"})
_KEPT_BACK: Final = frozenset("HEPA")  # families that explain why a transaction does not arrive


def schema_findings(facts: ClusterFacts, others: Collection[Finding]) -> tuple[Finding, ...]:
    """Return S1 and S2. `others` are the other findings of the audit."""
    reading = facts.snapshot.definitions
    if reading is None:
        return ()
    found: list[Finding] = []
    for pair in reading.pairs:
        if not {pair.source, pair.replica} <= facts.last.keys():
            continue
        found += _versions_apart(facts, reading, pair, others)
        found += _drift(facts, reading, pair)
    return tuple(found)


def undecided_schemas(facts: ClusterFacts) -> Iterator[Unknown]:
    """Yield what is not known about definitions, and about DDL that servers are apart by."""
    reading, cluster = facts.snapshot.definitions, facts.snapshot.cluster
    if reading is None:
        return
    for each in reading.unread:
        yield Unknown(cluster, each.server, f"{DEFINITIONS}: {each.fact}", each.reason)
    for pair in reading.pairs:
        if pair.unsearched:
            yield Unknown(cluster, pair.replica, SCHEMA_VERSION, pair.unsearched)
        if objects := _undecided(facts, pair):
            verb = "differs" if len(objects) == 1 else "differ"
            reason = (
                f"{_named(objects)} {verb} from {pair.source}, and not all transactions that only"
                " one of the two had executed were searched: DDL on its way may explain it"
            )
            yield Unknown(cluster, pair.replica, DEFINITIONS, reason)


# -- S1 -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Missing:
    """The DDL transactions of one server that another has not executed."""

    source: str
    replica: str
    ddl: tuple[LoggedDdl, ...]


def _versions_apart(
    facts: ClusterFacts,
    reading: DefinitionReading,
    pair: ComparedDefinitions,
    others: Collection[Finding],
) -> Iterator[Finding]:
    if not pair.has_channel:
        return  # what servers without a channel have is J1, J2 or J3
    ways = [_Missing(pair.source, pair.replica, pair.behind)]
    if pair.is_mutual:
        ways.append(_Missing(pair.replica, pair.source, pair.ahead))
    for each in ways:
        made = _apart(facts, reading, pair, each, others)
        if made is not None:
            yield made


def _apart(
    facts: ClusterFacts,
    reading: DefinitionReading,
    pair: ComparedDefinitions,
    missing: _Missing,
    others: Collection[Finding],
) -> Finding | None:
    about = [each for each in others if _is_about(each, missing)]
    if any(each.code[0] == "A" and each.severity is not Severity.INFO for each in about):
        return None  # nothing arrives until its cause is removed
    kept_back = GtidSet.union_of(each.gtid_set for each in about if _keeps_back(each))
    ddl = tuple(each for each in missing.ddl if each.gtid not in kept_back)
    if not ddl:
        return None
    ways_there = [each for each in about if each.code in _MOVING]
    moving = GtidSet.union_of(each.gtid_set for each in ways_there)
    without_way = [each for each in ddl if each.gtid not in moving]
    channel = _channel_of(facts, missing.source, missing.replica)
    limit = _limit(facts, channel)
    late = [each for each in ddl if (age := _age(facts, each)) is not None and age > limit]
    is_loud = bool(late) or len(without_way) > APART_MAX
    gtids = GtidSet.of(each.gtid for each in ddl)
    waiting = [each for each in pair.differing if not each.pending.is_disjoint(gtids)]
    return finding(
        facts,
        "S1",
        source=missing.source,
        replica=missing.replica,
        channel=None if channel is None else channel.name,
        gtid_set=gtids,
        severity=Severity.WARNING if is_loud else None,
        grade=Grade.PROVED,
        strategies=() if is_loud else None,
        proof=tuple(_ddl_evidence("DDL not applied", ddl, missing.source, reading.read_at)),
        explanation=" ".join(
            (
                f"{missing.replica} has not applied {_count(ddl)} of {missing.source}.",
                *_way_text(without_way, late, limit, _reported_by(ways_there, gtids)),
                *([f"Until then, {_named(waiting)} may differ."] if waiting else []),
            )
        ),
    )


def _is_about(each: Finding, missing: _Missing) -> bool:
    """Return whether a finding is about the way of these transactions, or calls them errant."""
    if each.code[0] == "E" and (each.source, each.replica) == (missing.replica, missing.source):
        return True
    return each.replica == missing.replica and each.source in (missing.source, None)


def _keeps_back(each: Finding) -> bool:
    """Return whether a finding explains why its transactions do not arrive by themselves."""
    is_known = each.code in _MOVING or each.code[0] in _KEPT_BACK
    return is_known and each.severity is not Severity.INFO


def _limit(facts: ClusterFacts, channel: ChannelSnapshot | None) -> timedelta:
    delay = channel.delay_seconds or 0 if channel is not None else 0
    return timedelta(seconds=facts.policy.ddl_wait_seconds_max + delay)


def _age(facts: ClusterFacts, ddl: LoggedDdl) -> timedelta | None:
    """Return how long ago a transaction was committed, by the clock of the server that did it."""
    if ddl.committed_at is None:
        return None
    now = facts.snapshot.read_ended
    for server in facts.last.values():
        if server.server_uuid == ddl.gtid.tsid.uuid and server.server_clock is not None:
            now = server.server_clock
    return None if now is None else now - ddl.committed_at


def _reported_by(ways_there: Iterable[Finding], gtids: GtidSet) -> str:
    """Return the codes of the findings that report these transactions as on their way."""
    found = [each for each in ways_there if not each.gtid_set.is_disjoint(gtids)]
    doubt = "" if all(each.grade is Grade.PROVED for each in found) else ", likely"
    return f"{', '.join(sorted({each.code for each in found}))}{doubt}"


def _way_text(
    without_way: Collection[LoggedDdl],
    late: Collection[LoggedDdl],
    limit: timedelta,
    reported_by: str,
) -> Iterator[str]:
    seconds = int(limit.total_seconds())
    if late:
        verb = "waits" if len(late) == 1 else "wait"
        yield f"{_count(late)} {verb} for more than {lasting(seconds)}."
    elif without_way:
        yield "No finding of this audit shows how it will arrive."
    else:
        yield f"It is on its way ({reported_by})."


def _count(ddl: Collection[LoggedDdl]) -> str:
    return counted(len(ddl), "DDL transaction")


# -- S2 -------------------------------------------------------------------------------------------


def _drift(
    facts: ClusterFacts, reading: DefinitionReading, pair: ComparedDefinitions
) -> Iterator[Finding]:
    errors = applier_errors(facts.last[pair.replica])
    objects = [each for each in pair.differing if is_drift(each, errors)]
    if not objects:
        return
    if hidden := _unlisted(facts, pair):
        objects = [
            replace(each, is_proved=False, causes=(*each.causes, hidden)) for each in objects
        ]
    severities = {each.label: _severity(pair, each) for each in objects}
    worst = max(severities.values(), key=list(Severity).index)
    decisive = [each for each in objects if severities[each.label] is worst]
    channel = _channel_of(facts, pair.source, pair.replica)
    is_proved = any(_is_proved(each) for each in decisive)
    yield finding(
        facts,
        "S2",
        source=pair.source,
        replica=pair.replica,
        channel=None if channel is None else channel.name,
        severity=worst,
        grade=Grade.PROVED if is_proved else Grade.LIKELY,
        strategies=() if worst is Severity.INFO else None,
        proof=tuple(_drift_evidence(reading, pair, objects)),
        explanation=" ".join(_drift_text(pair, objects, decisive, errors)),
    )


def _unlisted(facts: ClusterFacts, pair: ComparedDefinitions) -> str:
    """Return why the applier of a replica may be at DDL that no set lists; "" if it is not."""
    server = facts.last[pair.replica]
    appliers = (each for (name, _), each in facts.appliers.items() if name == pair.replica)
    for applier in appliers:
        if applier.waits and not applier.moved and may_end_uncounted(server, applier.channel):
            return (
                f"the applier of {pair.replica} is busy, and 5.6 does not list the last transaction"
                " that it had received before its receiver connected again: it may change it"
            )
    return ""


def is_drift(each: DifferingObject, errors: Collection[ApplierError]) -> bool:
    """Return whether a difference is S2: it stays, as far as what was read shows.

    `errors` are those with which appliers of the replica stopped.
    """
    if each.is_filtered or error_after(each, errors) is not None:
        return True
    return each.is_searched and not each.pending


def _undecided(facts: ClusterFacts, pair: ComparedDefinitions) -> list[DifferingObject]:
    server = facts.last.get(pair.replica)
    errors = () if server is None else applier_errors(server)
    return [each for each in pair.differing if not (each.is_searched or is_drift(each, errors))]


def _is_proved(each: DifferingObject) -> bool:
    return each.is_proved and not each.pending


def _severity(pair: ComparedDefinitions, each: DifferingObject) -> Severity:
    if each.is_filtered or each.may_be_of_another_source:
        return Severity.INFO
    is_critical = each.is_severe and _is_proved(each) and pair.has_channel
    return Severity.CRITICAL if is_critical else Severity.WARNING


def _drift_text(
    pair: ComparedDefinitions,
    objects: Collection[DifferingObject],
    decisive: Collection[DifferingObject],
    errors: Collection[ApplierError],
) -> Iterator[str]:
    verb = "is" if len(objects) == 1 else "are"
    yield (
        f"{_counted(objects)} {verb} not defined on {pair.replica} as on {pair.source}:"
        f" {_named(objects, classes=True)}."
    )
    if not pair.has_channel:
        yield "No channel connects the two servers."
    if rows := dict.fromkeys(f"{each.label}: {each.rows}" for each in decisive if each.is_severe):
        yield f"Rows of the source: {next(iter(rows))}."
    met = {one.number for each in objects if (one := error_after(each, errors)) is not None}
    for number in sorted(met):
        yield (
            f"The applier of {pair.replica} stopped with error {number}, and such a difference"
            " leads to it."
        )
    likely = [each for each in objects if not _is_proved(each)]
    causes = dict.fromkeys(cause for each in likely for cause in each.causes)
    if causes:
        about = "It" if len(likely) == len(objects) == 1 else _named(likely)
        yield f"{about} may be harmless: {'; or '.join(list(causes)[:3])}."


def _drift_evidence(
    reading: DefinitionReading,
    pair: ComparedDefinitions,
    objects: list[DifferingObject],
) -> Iterator[Evidence]:
    for each in objects[:OBJECTS_SHOWN_MAX]:
        grade = Grade.PROVED if _is_proved(each) else Grade.LIKELY
        words = f"{', '.join(each.classes)}; {_severity(pair, each).value}, {grade.value}"
        errors = f"; errors {', '.join(map(str, each.errors))} may follow" if each.errors else ""
        changes = f"; {' | '.join(each.changes)}" if each.changes else ""
        value = f"{words}{errors}{changes}"
        yield Evidence(each.label, value, pair.replica, reading.read_at)
        yield from _ddl_evidence(
            f"{each.label} made by", each.made_by, pair.replica, reading.read_at
        )
    if len(objects) > OBJECTS_SHOWN_MAX:
        more = f"{len(objects) - OBJECTS_SHOWN_MAX:,}"
        yield Evidence("more objects that differ", more, pair.replica, reading.read_at)
    yield Evidence(DRIFT_COMMAND, _command(pair, objects), pair.replica, reading.read_at)


def _command(pair: ComparedDefinitions, objects: Collection[DifferingObject]) -> str:
    """Return the command that shows both definitions, and the SQL that repairs them."""
    ends = " ".join(f'"{each}"' for each in pair.dsns)
    schemas = sorted({each.schema for each in objects})
    only = f" --schema {schemas[0]}" if len(schemas) == 1 and schemas[0].isidentifier() else ""
    return f"gtid-audit schema drift {ends}{only}"


# -- both -----------------------------------------------------------------------------------------


def _channel_of(facts: ClusterFacts, source: str, replica: str) -> ChannelSnapshot | None:
    """Return the only channel from a source to a replica; None if there is none, or several."""
    found = [
        each.channel
        for each in facts.graph.edges
        if (each.source, each.replica) == (source, replica)
    ]
    return found[0] if len(found) == 1 else None


def _ddl_evidence(
    fact: str, ddl: Collection[LoggedDdl], server: str, read_at: datetime
) -> Iterator[Evidence]:
    for each in list(ddl)[:DDL_SHOWN_MAX]:
        when = f", {each.committed_at:%Y-%m-%d %H:%M:%S} UTC" if each.committed_at else ""
        text = " ".join(each.statement.split()) or "its content could not be read"
        cut = "…" if len(text) > _STATEMENT_CHARACTERS_MAX else ""
        value = f"{each.gtid}{when}: {text[:_STATEMENT_CHARACTERS_MAX]}{cut}"
        yield Evidence(fact, value, server, read_at)
    if len(ddl) > DDL_SHOWN_MAX:
        yield Evidence(f"{fact}, more", f"{len(ddl) - DDL_SHOWN_MAX:,}", server, read_at)


def _counted(objects: Collection[DifferingObject]) -> str:
    return counted(len(objects), "object")


def _named(objects: Iterable[DifferingObject], *, classes: bool = False) -> str:
    """Return the first objects by kind and name, and the number of the others."""
    every = list(objects)
    shown = [
        f"{each.label} ({', '.join(each.classes)})" if classes else each.label
        for each in every[:DDL_SHOWN_MAX]
    ]
    if len(every) > len(shown):
        shown.append(f"{len(every) - len(shown):,} more")
    return ", ".join(shown)
