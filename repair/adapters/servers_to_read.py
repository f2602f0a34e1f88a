"""The servers that a plan reads again: connections and binary logs, by the name of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CR

from binlog.adapters.heads_server import logged_before
from binlog.adapters.stream import ServerLogs
from binlog.errors import BinlogError
from gtid import GtidSet
from topology.adapters.connection import connect, way_to
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot
from topology.readings.target import ServerTarget

_Answer = TypeVar("_Answer")


def logs_of(target: ServerTarget, *, seconds_max: float) -> ServerLogs:
    """Return the binary logs of a server, which are read over new connections."""
    return ServerLogs(way_to(target, seconds_max=seconds_max), timeout_seconds_max=seconds_max)


@dataclass(frozen=True, slots=True)
class ServersToRead:
    """The servers of a snapshot. Those with a target can be read again.

    A server to which a connection failed is not tried again: each try may last `seconds_max`, and a
    plan asks many questions.
    """

    readings: Mapping[str, ServerSnapshot]  # every server of the snapshot, as last read
    targets: Mapping[str, ServerTarget]
    seconds_max: float  # for a connection and for each of its answers
    lost: dict[str, str] = field(default_factory=dict)  # why, by server

    @classmethod
    def of(
        cls, snapshot: ClusterSnapshot, targets: Mapping[str, ServerTarget], seconds_max: float
    ) -> ServersToRead:
        """Return the servers of a snapshot."""
        lost = {
            server.name: each.detail
            for server in snapshot.last
            for each in server.unread
            if each.fact == "connection"
        }
        readings = {server.name: server for server in snapshot.last}
        return cls(readings, targets, seconds_max, lost)

    def executed(self, name: str) -> GtidSet:
        """Return gtid_executed of a server as last read; empty if it was not read."""
        return self.readings[name].gtid_executed or GtidSet()

    def connect(self, name: str) -> Connection[Any]:
        """Return a new connection to a server. Raises MySQLError, OSError."""
        if name in self.lost:
            raise pymysql.err.OperationalError(CR.CR_SERVER_LOST, self.lost[name])
        try:
            return connect(self.targets[name], timeout_seconds_max=self.seconds_max)
        except (pymysql.MySQLError, OSError) as error:
            self.lost[name] = str(error)
            raise

    def logs(self, name: str) -> ServerLogs:
        """Return the binary logs of a server."""
        return logs_of(self.targets[name], seconds_max=self.seconds_max)

    def logged_before(self, name: str, wanted: GtidSet) -> GtidSet:
        """Return what a server logged before the file in which `wanted` begins.

        Nothing if that cannot be read: then the order is not known.
        """
        if name not in self.targets:
            return GtidSet()
        try:
            return logged_before(lambda: self.connect(name), wanted)
        except BinlogError:
            return GtidSet()

    def answers(
        self, names: Iterable[str], ask: Callable[[str, Connection[Any]], _Answer]
    ) -> dict[str, _Answer]:
        """Return what a question to each server returns. A server that cannot be read is left out.

        The caller must not take a missing answer for a good one: another reading must show it.
        """
        found: dict[str, _Answer] = {}
        for name in names:
            try:
                with closing(self.connect(name)) as connection:
                    found[name] = ask(name, connection)
            except (pymysql.MySQLError, OSError):
                continue
        return found
