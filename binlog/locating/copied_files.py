"""Which files of an archive are copies of others, under whatever name. Pure.

How it works
------------
Files are ordered by the second in which they were made, then by the number in their names. A copy
has the second of its original. If other files are of that second too, its name alone decides, and
a wrong name puts it behind files that continue it:

    binlog.000002   previous 1-7    has 8-12
    binlog.000003   previous 1-12   has 13-17
    binlog.000090   previous 1-7    has 8-12     seems to have lost 13-17: a new history

So copies are left out before histories are evaluated (histories.py).

1. A file is a copy if another one was made by the same server in the same second, has the same
   previous GTIDs, and all of its transactions, compared one by one: within a second, a server may
   be reset and use GTIDs again. It may be shorter: it was copied while the server wrote.
2. The place of the file is that of the name that fits: before the files of the second that
   continue it, behind those that it continues. If all fit, it is that of the lowest number. Of
   files with the same transactions, the one with this name stays; otherwise the longest one.
3. A file without transactions is a copy if its name has the number of the other one. Files without
   transactions, of one second and with the same previous GTIDs, look alike. They may be two files:
   all but one are left out of the evaluation, and not reported as copies.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from binlog.locating.histories import (
    ArchiveFile,
    LogOrigin,
    RepeatedGtids,
    number_in,
    place_of,
)
from gtid import GtidSet


@dataclass(frozen=True, slots=True)
class FileCopy:
    """A file whose transactions another file has; `number` is its place in the archive."""

    number: int
    file: str
    of: str


@dataclass(frozen=True, slots=True)
class DistinctFiles:
    """The files of an archive, each once, and the copies."""

    files: tuple[ArchiveFile, ...]
    copies: tuple[FileCopy, ...]


def distinct_files(
    files: Sequence[ArchiveFile], repeated: Sequence[RepeatedGtids]
) -> DistinctFiles:
    """Return the files without copies, in the given order, and the copies."""
    same = {frozenset(each.files): each.same for each in repeated}
    seconds: defaultdict[LogOrigin, list[ArchiveFile]] = defaultdict(list)
    for each in files:
        seconds[each.origin].append(each)
    kept: dict[int, ArchiveFile] = {}
    copies: list[FileCopy] = []
    for of_second in seconds.values():
        for group in _alike(of_second, same):
            named = _best_named(group, of_second)
            original = named if named.gtids == group[0].gtids else group[0]
            kept[original.number] = replace(original, name=named.name)
            copies += [
                FileCopy(each.number, each.name, original.name)
                for each in group
                if each.number != original.number and (each.gtids or _has_number_of(each, named))
            ]
    return DistinctFiles(
        tuple(kept[each.number] for each in files if each.number in kept),
        tuple(sorted(copies, key=lambda each: each.number)),
    )


def _alike(
    files: Sequence[ArchiveFile], same: Mapping[frozenset[int], GtidSet]
) -> list[list[ArchiveFile]]:
    """Return the files of one second in groups: the first of a group has all that the others have.

    Files without transactions are in a group of their own, or beside one with their number.
    """
    groups: defaultdict[GtidSet, list[list[ArchiveFile]]] = defaultdict(list)
    for each in sorted(files, key=lambda file: -file.gtids.gtid_count):
        for group in groups[each.previous]:
            first = group[0]
            common = same.get(frozenset((each.number, first.number)), GtidSet())
            is_empty_like = not first.gtids or _has_number_of(each, first)
            if each.gtids <= common if each.gtids else is_empty_like:
                group.append(each)
                break
        else:
            groups[each.previous].append([each])
    return [group for of_header in groups.values() for group in of_header]


def _has_number_of(file: ArchiveFile, other: ArchiveFile) -> bool:
    return number_in(file.name) == number_in(other.name)


def _best_named(group: Sequence[ArchiveFile], of_second: Sequence[ArchiveFile]) -> ArchiveFile:
    """Return the file of a group whose name fits best among the files of its second."""
    if len({number_in(each.name) for each in group}) == 1:
        return max(group, key=lambda each: each.gtids.gtid_count)
    members = {each.number for each in group}
    others = [each for each in of_second if each.number not in members]
    return min(group, key=lambda each: (_misfits(each, others), place_of(each)))


def _misfits(file: ArchiveFile, others: Sequence[ArchiveFile]) -> int:
    """Return how many files have a name that contradicts the previous GTIDs of the two."""
    here = number_in(file.name)
    count = 0
    for each in others:
        there = number_in(each.name)
        earlier, later = (each, file) if there < here else (file, each)
        is_continued = earlier.previous | earlier.gtids <= later.previous
        count += there != here and not is_continued
    return count
