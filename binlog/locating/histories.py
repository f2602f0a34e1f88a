"""Whether the files of an archive are of one history, or the GTIDs of a server began anew. Pure.

How it works
------------
RESET BINARY LOGS AND GTIDS, a crash that lost the end of a log, and a restored backup let a server
use GTIDs again for other transactions. Then a GTID in one file does not show that the transaction
is there that another file's header lists. Two facts show it:

    binlog.000003   previous 1-12   has 13-17
    binlog.000005   previous (none) has 1-30     the set of the server shrank: 1-17 are lost
    both files have 13, committed at different times                two transactions

1. Within the files of one server, in the order in which they were made, the previous GTIDs of a
   file contain those of the file before and its transactions. What is missing there is `lost`.
2. `lost` proves nothing by itself. These are not a new history:
   * the later files have and list none of the GTIDs before: the server was built anew (CLONE writes
     no header for the GTIDs that it copied), or it has another UUID since;
   * a file without transactions, and then a header that has all of them again: RESET, followed by
     SET gtid_purged;
   * every lost GTID that comes again is the same transaction: a restored server received it again,
     or one file was copied twice.
3. A receiver forgets what it had received (relay_log_recovery, RESET REPLICA) and fetches it again.
   So in relay logs only a lost GTID that comes again counts.

A server is known by the server_id in its files: they do not have its UUID. The order is that of the
time in the first event of each file, then of the number in its name, because files may be renamed.
Copies of a file are left out before (copied_files.py).
"""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gtid import GtidSet

DIGITS_MIN: Final = 6  # mysqld writes at least six: binlog.000001


@dataclass(frozen=True, slots=True)
class LogOrigin:
    """Who wrote a file, and when: the header of its first event."""

    server_id: int = 0
    made_at_seconds: int = 0
    is_relay_log: bool = False


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """What one file says about its history; `number` is its place in the archive."""

    number: int
    name: str
    origin: LogOrigin
    previous: GtidSet
    gtids: GtidSet


@dataclass(frozen=True, slots=True)
class RepeatedGtids:
    """GTIDs that two files have. In neither set: the files do not show which."""

    files: tuple[int, int]  # their numbers
    same: GtidSet  # one transaction in both files
    different: GtidSet  # two transactions under one GTID


@dataclass(frozen=True, slots=True)
class NewHistory:
    """A file where GTIDs begin anew."""

    file: str
    before: str  # a file of the history before
    lost: GtidSet  # what the files before have or list, and the header of this one does not
    reused: GtidSet  # what stands, or may stand, for two transactions
    is_proved: bool = False  # two files have `reused`, and not as one transaction


@dataclass(frozen=True, slots=True)
class Histories:
    """The files by history, and where each but the first of a server begins."""

    of_files: tuple[tuple[ArchiveFile, ...], ...]
    begins: tuple[NewHistory, ...]

    def hole_after(self, start: GtidSet) -> GtidSet:
        """Return what a history lists, and neither the set nor its own files have.

        hole = (previous of the history) - start - (GTIDs of its files) - inherited
        inherited = (previous of its first file) & (GTIDs of the server's files before)

        The first header of a new history lists what the server kept, or what was restored.
        """
        holes = []
        before: dict[LogOrigin, GtidSet] = {}
        for files in self.of_files:
            key = server_of(files[0])
            inside = GtidSet.union_of(each.gtids for each in files)
            listed = GtidSet.union_of(each.previous for each in files)
            older = before.get(key, GtidSet())
            holes.append(listed - start - inside - (files[0].previous & older))
            before[key] = older | inside
        return GtidSet.union_of(holes)


def histories_of(files: Sequence[ArchiveFile], repeated: Sequence[RepeatedGtids]) -> Histories:
    """Return the histories of an archive's files."""
    servers: defaultdict[LogOrigin, list[ArchiveFile]] = defaultdict(list)
    for each in files:
        servers[server_of(each)].append(each)
    same = GtidSet.union_of(each.same for each in repeated)
    different = GtidSet.union_of(each.different for each in repeated)
    parts: list[tuple[ArchiveFile, ...]] = []
    begins: list[NewHistory] = []
    for of_server in servers.values():
        found = _of_server(sorted(of_server, key=place_of), same - different, different)
        parts += found.of_files
        begins += found.begins
    begins += _of_two_servers(files, repeated, begins)
    return Histories(tuple(parts), tuple(begins))


def _of_server(files: list[ArchiveFile], same: GtidSet, different: GtidSet) -> Histories:
    """Split the files of one server, in their order, where its GTIDs begin anew."""
    later = _from_each_on(files)
    parts: list[list[ArchiveFile]] = [[]]
    begins: list[NewHistory] = []
    known, waiting, before = GtidSet(), None, ""
    for at, each in enumerate(files):
        used, inside = later[at]
        lost = GtidSet.union_of((known - each.previous).from_uuid(uuid) for uuid in used.uuids)
        again = lost & (inside if each.origin.is_relay_log else used)
        if lost and not each.gtids and at + 1 < len(files):
            waiting = waiting or each
            parts[-1].append(each)
            continue
        if not lost:
            known |= each.previous | each.gtids
        elif _is_one_history(each, known & used, again, same):
            known = each.previous | each.gtids
        else:
            proved = again & different
            name = (waiting or each).name
            begins.append(NewHistory(name, before, lost, proved or again, is_proved=bool(proved)))
            parts.append([])
            known = each.previous | each.gtids
        parts[-1].append(each)
        waiting, before = None, each.name
    return Histories(tuple(tuple(each) for each in parts if each), tuple(begins))


def _is_one_history(each: ArchiveFile, common: GtidSet, again: GtidSet, same: GtidSet) -> bool:
    """Return whether the lost GTIDs have a harmless reason: see *How it works*, 2 and 3."""
    if not again:
        return each.origin.is_relay_log or not common
    return again <= same


def _from_each_on(files: Sequence[ArchiveFile]) -> list[tuple[GtidSet, GtidSet]]:
    """Return for each file what it and the later ones have or list, and what they have."""
    used, inside = GtidSet(), GtidSet()
    found = []
    for each in reversed(files):
        inside |= each.gtids
        used |= each.gtids | each.previous
        found.append((used, inside))
    return found[::-1]


def _of_two_servers(
    files: Sequence[ArchiveFile], repeated: Sequence[RepeatedGtids], found: Sequence[NewHistory]
) -> list[NewHistory]:
    """Return the files that have other transactions under GTIDs of another server's file."""
    known = GtidSet.union_of(each.reused for each in found)
    by_number = {each.number: each for each in files}
    begins = []
    for each in repeated:
        new = each.different - known
        if new and all(number in by_number for number in each.files):
            before, file = sorted((by_number[number] for number in each.files), key=place_of)
            begins.append(NewHistory(file.name, before.name, GtidSet(), new, is_proved=True))
            known |= new
    return begins


def server_of(file: ArchiveFile) -> LogOrigin:
    """Return what the files of one server have in common."""
    origin = file.origin
    return LogOrigin(server_id=origin.server_id, is_relay_log=origin.is_relay_log)


def place_of(file: ArchiveFile) -> tuple[int, int, int, int]:
    """Return the place of a file; of two copies of one file, the shorter one is first."""
    counts = file.previous.gtid_count, file.gtids.gtid_count
    return file.origin.made_at_seconds, number_in(file.name), *counts


def number_in(name: str) -> int:
    """Return the number in the name of a log, 0 without one: the first with six digits or more.

    Others may be of a host name or an address; a date may be behind it.
    """
    found = re.findall(r"\.(\d+)", name)
    return int(next((each for each in found if len(each) >= DIGITS_MIN), (*found, "0")[0]))
