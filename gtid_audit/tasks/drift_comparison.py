"""Compares the definitions of replicas with those of their sources, pair by pair.

1. Objects whose digests differ are read in full: on the replica first, then on its source. What
   both then print alike is no difference.
2. Transactions that only one of the two had executed may explain a difference. Their DDL is
   searched in the logs (topology/definitions/pair_drift.py).
3. In a dual-primary pair the rows of each server arrive on the other one. So both directions are
   compared (drift_directions.py selects).
4. If DDL that is on its way concerns an object, the pair is read again, a few times: under a load
   of DDL most such differences are gone after a moment.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gtid import GtidSet
from gtid_audit.tasks.ddl_of_others import (
    OtherServers,
    executed_above,
    on_the_way_from,
    search_ddl,
    servers_above,
)
from gtid_audit.tasks.definition_servers import DefinitionServer
from topology.adapters.connection import way_to
from topology.adapters.content_filters import filters_of
from topology.adapters.ddl_reads import DdlSearchLimits
from topology.adapters.definition_reads import ReadDefinitions
from topology.definitions.compared_pairs import ComparedPair, pairs_of
from topology.definitions.ddl_searches import DdlSearch, on_the_way
from topology.definitions.object_drift import (
    ObjectPair,
    PairDrift,
    PairFacts,
    ServerSide,
)
from topology.definitions.pair_drift import differing, drift_between
from topology.definitions.schema_objects import ObjectKey, ObjectKind, SetsAround
from topology.readings.replication_filters import ServerFilters
from topology.readings.snapshot import ChannelSnapshot

READINGS_MAX: Final = 4
PAUSE_SECONDS: Final = 1.0
# Errors of a receiver whose source does not have what it received: 1236, since 8.0 13114.
_REFUSED: Final = (1236, 13114)
_OTHER_VERSION: Final = (
    "the relay log of the replica may have other transactions than its source under the same GTIDs"
)
_WITH_TABLES: Final = (ObjectKind.TABLE, ObjectKind.VIEW)


def compare_servers(
    servers: Sequence[DefinitionServer],
    *,
    limits: DdlSearchLimits,
    say: Callable[[str], None],
    readings_max: int = READINGS_MAX,
) -> Iterator[list[tuple[ComparedPair, PairDrift]]]:
    """Compare servers whose objects were read, pair by pair; in a dual-primary pair both ways.

    `readings_max`: how often a pair is read in full, while DDL on its way may explain a difference.
    """
    read = [each for each in servers if each.state is not None and each.objects is not None]
    for pair in pairs_of([each.connected() for each in read]) if read else ():
        say(f"comparing {pair.replica} with {pair.source}")
        found = [(pair, compare_pair(pair, servers, limits=limits, readings_max=readings_max))]
        if pair.is_mutual and found[0][1].differences:
            back = replace(pair, source=pair.replica, replica=pair.source)
            found.append(
                (back, compare_pair(back, servers, limits=limits, readings_max=readings_max))
            )
        yield found


def compare_pair(
    pair: ComparedPair,
    servers: Sequence[DefinitionServer],
    *,
    limits: DdlSearchLimits,
    readings_max: int,
) -> PairDrift:
    """Compare one pair of servers whose objects were read."""
    by_name = {each.name: each for each in servers}
    others = servers_above(pair, servers)
    return _Comparing(
        pair,
        by_name[pair.source],
        by_name[pair.replica],
        others,
        executed_above(pair, servers),
        limits,
    ).result(readings_max)


@dataclass(slots=True)
class _Comparing:
    """One pair while it is read in full."""

    pair: ComparedPair
    source: DefinitionServer
    replica: DefinitionServer
    others: OtherServers
    executed_above: GtidSet  # by servers that deliver to the source, but not over the replica
    limits: DdlSearchLimits

    def result(self, readings_max: int) -> PairDrift:
        assert self.source.objects is not None
        assert self.replica.objects is not None
        objects = differing(self.source.objects, self.replica.objects)
        if not objects:
            side = ServerSide(self.source.objects), ServerSide(self.replica.objects)
            return drift_between(*side, (), PairFacts(on_the_way(GtidSet(), ())))
        filters = self._filters()
        for number in range(readings_max):
            found = self._read_in_full(objects, filters)
            left = {each.key for each in found.differences}
            objects = tuple(each for each in objects if {each.source, each.replica} & left)
            if number + 1 == readings_max or not any(each.pending for each in found.differences):
                break
            time.sleep(PAUSE_SECONDS)
        return found

    def _read_in_full(
        self, objects: Sequence[ObjectPair], filters: ServerFilters | None
    ) -> PairDrift:
        """Read the replica, then the source, and compare."""
        theirs = self.replica.reader.read_definitions([each.replica for each in objects])
        ours = self.source.reader.read_definitions([each.source for each in objects])
        sides = (self._side(self.source, ours), self._side(self.replica, theirs))
        if ours is None or theirs is None:
            return drift_between(*sides, objects, PairFacts(on_the_way(GtidSet(), ())))
        facts = self._facts(objects, ours, theirs, filters)
        return drift_between(*sides, objects, facts)

    def _side(self, server: DefinitionServer, read: ReadDefinitions | None) -> ServerSide:
        assert server.objects is not None
        settings = server.reader.settings
        conversions = settings.get(
            "replica_type_conversions", settings.get("slave_type_conversions")
        )
        unread = read.unread if read is not None else server.reader.unread
        return ServerSide(
            server.objects.with_unread(unread),
            read.definitions if read is not None else {},
            has_gtids=settings.get("gtid_mode") == "ON",
            conversions=conversions,
        )

    def _facts(
        self,
        objects: Sequence[ObjectPair],
        ours: ReadDefinitions,
        theirs: ReadDefinitions,
        filters: ServerFilters | None,
    ) -> PairFacts:
        """Search what only one of the two had executed, and read what else may explain it."""
        # What waits in a relay log is applied, also if the other server lost it since, by a RESET.
        received = _received(self.replica, self.source) - theirs.sets.before
        returned = _received(self.source, self.replica) - ours.sets.before
        behind = received | (ours.sets.after - theirs.sets.before)
        extra = returned | (theirs.sets.after - ours.sets.before)
        doubtful = _doubtful(self.replica, self.source, received - ours.sets.before, received)
        doubtful |= _doubtful(self.source, self.replica, returned - theirs.sets.before, returned)
        tables = frozenset(
            (key.schema, key.name)
            for each, read in ((each, read) for each in objects for read in (ours, theirs))
            for key in (each.source, each.replica)
            if key.kind is ObjectKind.TABLE and read.definitions.get(key, ...) is None
        )
        searches = [
            self._search(self.source, behind - doubtful, ours.sets, tables),
            self._search(self.replica, extra - doubtful, theirs.sets, tables),
        ]
        if doubtful:
            searches.insert(0, DdlSearch(self.source.name, GtidSet(), why_unread=_OTHER_VERSION))
        assert self.source.state is not None
        assert self.replica.state is not None
        wanted = behind | self._returning(extra)
        source_uuid = self.source.state.server_uuid
        others = tuple(
            f"{each.source_host}:{each.source_port}"
            for each in self.replica.state.channels or ()
            if each.source_uuid != source_uuid
        )
        return PairFacts(
            way=on_the_way(wanted, searches),
            from_others=on_the_way_from(
                self.others,
                (self.source, self.replica),
                wanted | (ours.sets.before & theirs.sets.before),
                lambda server, left: search_ddl(server, left, held=server.held, limits=self.limits),
            ),
            unread_above=self.others.unread,
            of_replica=searches[-1].within(extra),
            filtered=self._filtered(objects, filters),
            other_sources=others if self.pair.has_channel else (),
            has_channel=self.pair.has_channel,
            event_status=self.replica.event_status(has_channel=self.pair.has_channel),
        )

    def _returning(self, extra: GtidSet) -> GtidSet:
        """Return what only the replica had executed, and may still arrive on its source.

        The replica may have it by a faster way, or the source had it and lost it in a crash.
        """
        assert self.source.state is not None
        assert self.replica.state is not None
        if self.pair.may_return or self.source.state.group is not None:
            return extra
        if self.pair.source_receives:
            own = extra & self.executed_above  # came there while the replica had another source
            return extra.without_uuid(self.replica.state.server_uuid) | own
        return GtidSet()

    def _search(
        self,
        server: DefinitionServer,
        wanted: GtidSet,
        sets: SetsAround,
        tables: frozenset[tuple[str, str]],
    ) -> DdlSearch:
        assert server.state is not None
        held = (server.state.gtid_executed | sets.after) - server.state.gtid_purged
        return search_ddl(server, wanted, held=held, limits=self.limits, tables=tables)

    def _filters(self) -> ServerFilters | None:
        """Return the filters on the way: of the source's binary log and the replica's channels."""
        seconds = self.limits.answer_seconds_max
        ours = filters_of(way_to(self.source.target, seconds_max=seconds))
        theirs = filters_of(way_to(self.replica.target, seconds_max=seconds))
        if ours is None or theirs is None:
            return None
        return ServerFilters(ours.binary_log, theirs.channels)

    def _filtered(
        self, objects: Iterable[ObjectPair], filters: ServerFilters | None
    ) -> frozenset[ObjectKey] | None:
        if filters is None or self.source.state is None:
            return None
        uuid = self.source.state.server_uuid
        keys = {key for each in objects for key in (each.source, each.replica)}
        return frozenset(
            key
            for key in keys
            if filters.explain([(key.schema, key.name if key.kind in _WITH_TABLES else "")], uuid)
        )


def _received(server: DefinitionServer, source: DefinitionServer) -> GtidSet:
    """Return what a server had received from a source when the audit read it."""
    return GtidSet.union_of(each.gtid_retrieved for each in _channels(server, source))


def _doubtful(
    server: DefinitionServer, source: DefinitionServer, early: GtidSet, received: GtidSet
) -> GtidSet:
    """Return what of a relay log may be another transaction than its source has now.

    That is what the source had not executed (`early`). If it refused the server's set, it may have
    another history: then it is all of `received`.
    """
    is_refused = any(each.receiver_errno in _REFUSED for each in _channels(server, source))
    return received if is_refused else early


def _channels(server: DefinitionServer, source: DefinitionServer) -> Iterator[ChannelSnapshot]:
    assert server.state is not None
    assert source.state is not None
    for channel in server.state.channels or ():
        if channel.source_uuid == source.state.server_uuid:
            yield channel
