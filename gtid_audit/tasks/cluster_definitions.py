"""Compares the definitions of one live cluster for an audit, if it was asked for.

1. It is opt-in: a reading of definitions takes longer than the audit of a healthy pair. The modules
   for it are imported only if it was asked for.
2. The replication states are those of the audit. A server that was not read completely is left out
   here: the audit reports it.
3. DDL that servers are apart by is searched in the logs, also if all definitions are alike. If a
   replica already has what it makes, made by hand, it stops the applier when it arrives.
4. In a dual-primary pair each server is the replica of the other. What differs is reported once,
   in the direction in which it stops an applier, or can stop it.
5. Only what the audit's first reading of a server has, and a later reading of the other has not,
   is searched. A healthy channel leaves nothing of it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from gtid import GtidSet
from gtid_audit.operands.cluster_to_read import ClusterToRead
from topology.facts.memberships import uuid_of_group
from topology.readings.definition_reading import (
    ComparedDefinitions,
    DefinitionReading,
    DifferingObject,
    UnreadDefinitions,
)
from topology.readings.logged_ddl import LoggedDdl
from topology.readings.snapshot import ClusterSnapshot, UnreadFact, UnreadReason

if TYPE_CHECKING:
    from gtid_audit.tasks.definition_servers import DefinitionServer
    from topology.adapters.ddl_reads import DdlSearchLimits
    from topology.definitions.compared_pairs import ComparedPair
    from topology.definitions.definition_scope import DefinitionScope
    from topology.definitions.object_drift import ObjectDrift, PairDrift

READINGS_MAX: Final = 2  # of a pair: DDL that is then still on its way is S1
CHANGES_MAX: Final = 6  # changed clauses that are kept of an object
CLAUSE_CHARACTERS_MAX: Final = 200
_NO_GTIDS: Final = "gtid_mode is not ON: DDL on its way is not known"


def look_at_definitions(
    snapshot: ClusterSnapshot,
    cluster: ClusterToRead,
    *,
    say: Callable[[str], None],
    scope: "DefinitionScope | None" = None,
) -> DefinitionReading:
    """Read and compare the definitions of the servers of a cluster that was just read.

    `scope`: only the objects of one schema, or of one table.
    """
    from gtid_audit.tasks.definition_servers import DEFINITION_SECONDS_MAX, definition_servers
    from gtid_audit.tasks.drift_comparison import compare_servers
    from gtid_audit.tasks.drift_directions import worse_direction
    from topology.adapters.ddl_reads import DdlSearchLimits

    limits = DdlSearchLimits(DEFINITION_SECONDS_MAX)
    with definition_servers(
        cluster,
        () if scope is None else (scope.schema,),
        seconds_max=DEFINITION_SECONDS_MAX,
        say=say,
        states=snapshot.last_read,
    ) as servers:
        by_name = {each.name: each for each in servers}
        pairs, unread = [], [(each.name, fact) for each in servers for fact in each.unread]
        for looked in compare_servers(servers, limits=limits, say=say, readings_max=READINGS_MAX):
            for _, each in looked:
                unread += each.unknown
            worse = worse_direction(looked, servers)
            pairs.append(_Looked(snapshot, *worse, by_name, limits, scope).compared())
        unread += [] if scope is None else _absent(scope, servers)
    return DefinitionReading(
        read_at=datetime.now(UTC),
        pairs=tuple(pairs),
        unread=tuple(sorted({_unread(server, fact) for server, fact in unread})),
    )


def _absent(
    scope: "DefinitionScope", servers: "Sequence[DefinitionServer]"
) -> list[tuple[str, UnreadFact]]:
    """Return that no server shows the table of a scope: a wrong name would be alike everywhere."""
    read = [each for each in servers if each.objects is not None]
    shown = (key for each in read if each.objects is not None for key in each.objects.objects)
    if not scope.table or not read or any(key.name and scope.includes(key) for key in shown):
        return []
    why = "no server shows a table or view of this name"
    return [(read[0].name, UnreadFact(f"table {scope}", UnreadReason.ERROR, why))]


def _unread(server: str, fact: UnreadFact) -> UnreadDefinitions:
    detail = f": {fact.detail}" if fact.detail else ""
    return UnreadDefinitions(server, fact.fact, f"{fact.reason.value}{detail}")


@dataclass(frozen=True, slots=True)
class _Looked:
    """One pair whose definitions were compared, while the DDL that it is apart by is searched."""

    snapshot: ClusterSnapshot
    pair: "ComparedPair"
    drift: "PairDrift"
    servers: "Mapping[str, DefinitionServer]"
    limits: "DdlSearchLimits"
    scope: "DefinitionScope | None"

    def compared(self) -> ComparedDefinitions:
        pair = self.pair
        is_group = _in_one_group(self.servers[pair.source], self.servers[pair.replica])
        behind, why_behind = self._apart(pair.source, pair.replica)
        is_mutual = pair.is_mutual or is_group
        ahead, why_ahead = self._apart(pair.replica, pair.source) if is_mutual else ((), "")
        return ComparedDefinitions(
            source=pair.source,
            replica=pair.replica,
            dsns=(self.servers[pair.source].dsn, self.servers[pair.replica].dsn),
            has_channel=pair.has_channel or is_group,
            is_mutual=is_mutual,
            object_count=self.drift.compared_count,
            differing=tuple(self._differing()),
            behind=behind,
            ahead=ahead,
            unsearched=why_behind or why_ahead,
        )

    def _apart(self, source: str, replica: str) -> tuple[tuple[LoggedDdl, ...], str]:
        """Return the DDL that a server has executed and another has not, and why not all of it."""
        from gtid_audit.tasks.ddl_of_others import search_ddl

        held, objects = self.servers[source], self.servers[replica].objects
        first = self.snapshot.first_read.get(source)
        assert objects is not None, "the pair was compared"
        if first is None:
            return (), f"{source} was not read completely at first"
        wanted = first.gtid_executed - objects.sets.before
        search = search_ddl(held, wanted, held=held.held, limits=self.limits)
        found = search.within(wanted)
        unread = GtidSet.of(each.gtid for each in found if each.is_unread)
        why = "" if wanted <= search.searched else search.why_unread
        if unread:
            why = why or f"the content of {unread.shortened()} could not be read"
        scope = self.scope
        defining = (each for each in found if each.defines)
        wanted_ddl = (each for each in defining if scope is None or scope.concerns(each))
        return tuple(sorted(wanted_ddl, key=_age)), why

    def _differing(self) -> Iterator[DifferingObject]:
        sources = self._other_sources()
        for each in self.drift.differences:
            if self.scope is not None and not self.scope.includes(
                each.key, each.source, each.replica
            ):
                continue
            is_more = all(one.value.endswith(" more") for one in each.classes)
            if is_more and any(one.has(each.key) or self._drops(one, each) for one in sources):
                continue  # another source of the replica has it, or has just dropped it
            yield _in_short(
                each,
                self.drift,
                has_gtids=self._have_gtids(),
                may_be_of_another_source=is_more and self._has_unread_source(sources),
            )

    def _drops(self, source: "DefinitionServer", each: "ObjectDrift") -> bool:
        """Return whether DDL of another source concerns an object and is on its way (S1)."""
        from gtid_audit.tasks.ddl_of_others import on_its_way_from

        return on_its_way_from(source, self.servers[self.pair.replica], each, limits=self.limits)

    def _other_sources(self) -> "list[DefinitionServer]":
        """Return the other servers of the audit from which the replica receives."""
        replica = self.servers[self.pair.replica].state
        assert replica is not None, "the pair was compared"
        uuids = {each.source_uuid for each in replica.channels or ()}
        return [
            each
            for each in self.servers.values()
            if each.name != self.pair.source
            and each.state is not None
            and each.state.server_uuid in uuids
        ]

    def _has_unread_source(self, read: "Collection[DefinitionServer]") -> bool:
        others = self.drift.facts.other_sources
        return len(others) > sum(each.objects is not None for each in read)

    def _have_gtids(self) -> bool:
        names = (self.pair.source, self.pair.replica)
        modes = [self.servers[name].reader.settings.get("gtid_mode") for name in names]
        return all(mode == "ON" for mode in modes)


def _in_short(
    each: "ObjectDrift", drift: "PairDrift", *, has_gtids: bool, may_be_of_another_source: bool
) -> DifferingObject:
    from topology.catalogue.findings import Grade

    key = each.key
    return DifferingObject(
        kind=key.kind.value,
        schema=key.schema,
        name=key.name,
        classes=each.class_words,
        is_proved=each.grade is Grade.PROVED,
        is_filtered=each.is_filtered,
        may_be_of_another_source=may_be_of_another_source,
        is_severe=each.rows.is_severe,
        rows=each.rows_text,
        errors=each.errors,
        causes=each.causes if has_gtids else (*each.causes, _NO_GTIDS),
        pending=GtidSet.of(ddl.gtid for ddl in each.pending),
        is_searched=drift.facts.way.is_complete and has_gtids,
        made_by=each.made_by,
        changes=tuple(_changes(each))[:CHANGES_MAX],
    )


def _changes(each: "ObjectDrift") -> Iterator[str]:
    if each.replica_key is not None:
        yield f"on the replica: {each.replica_key}"
    for change in each.changes:
        if change.source is not None:
            yield f"- {change.source.raw[:CLAUSE_CHARACTERS_MAX]}"
        if change.replica is not None:
            yield f"+ {change.replica.raw[:CLAUSE_CHARACTERS_MAX]}"


def _in_one_group(one: "DefinitionServer", other: "DefinitionServer") -> bool:
    first, second = (each.state.group if each.state else None for each in (one, other))
    if first is None or second is None:
        return False
    return uuid_of_group(first.group_name) == uuid_of_group(second.group_name)


def _age(ddl: LoggedDdl) -> tuple[datetime, str, int]:
    never = datetime.min.replace(tzinfo=UTC)
    return (ddl.committed_at or never, str(ddl.gtid.tsid), ddl.gtid.gno)
