"""Compiled loops over the clusters of a batch (gtid/jit.py).

A cluster is the rows starts[c] up to starts[c + 1]. The first half has the first readings of its
servers, the second half the last ones. Kernels only clear flags of `clean`, and never set one.
"""

import numpy as np

from gtid.jit import kernel
from gtid.kernels.eight_bytes import Flags, Numbers, Words, load_byte

_DOT, _ZERO, _NINE = 46, 48, 57


@kernel
def numbered(address: int, offsets: Numbers, ok: Flags) -> None:
    """Keep the rows whose text is a file name that ends in a number, as LogPosition.of requires."""
    for row in range(len(ok)):
        begin, at = address + offsets[row], address + offsets[row + 1]
        end = at
        while at > begin and _ZERO <= load_byte(at - 1) <= _NINE:
            at -= 1
        ok[row] = ok[row] and at < end and (at == begin or load_byte(at - 1) == _DOT)


@kernel
def _compare(address: int, offsets: Numbers, left: int, right: int) -> int:
    """Compare two rows of a text column bytewise, which is by characters. Return -1, 0 or 1."""
    at, other = address + offsets[left], address + offsets[right]
    end, other_end = address + offsets[left + 1], address + offsets[right + 1]
    while at < end and other < other_end:
        if load_byte(at) != load_byte(other):
            return -1 if load_byte(at) < load_byte(other) else 1
        at += 1
        other += 1
    if at == end and other == other_end:
        return 0
    return -1 if at == end else 1


@kernel
def arranged(
    starts: Numbers,
    phases: Numbers,
    address: int,
    name_offsets: Numbers,
    begun: Numbers,
    ended: Numbers,
    row_ok: Flags,
    clean: Flags,
) -> None:
    """Keep the clusters whose rows are all ok, and that are two readings of the same servers.

    Names must ascend, and no last reading may begin before every first reading has ended.
    """
    for cluster in range(len(clean)):
        first, end = starts[cluster], starts[cluster + 1]
        half = (end - first) // 2
        ok = clean[cluster] and half > 0 and 2 * half == end - first
        barrier = ended[first]
        for row in range(first, first + half):
            if not ok:
                break
            last = row + half
            ok = row_ok[row] and row_ok[last] and phases[row] == 1 and phases[last] == 2
            ok = ok and begun[row] <= ended[row] and begun[last] <= ended[last]
            ok = ok and _compare(address, name_offsets, row, last) == 0
            if row > first:
                ok = ok and _compare(address, name_offsets, row - 1, row) < 0
            barrier = max(barrier, ended[row])
        if ok:
            for row in range(first + half, end):
                ok = ok and begun[row] >= barrier
        clean[cluster] = ok


@kernel
def differing(starts: Numbers, address: int, offsets: Numbers, differs: Flags) -> None:
    """Set for each row whether its text differs from the first reading of its server.

    First readings count as different; so does every row of a cluster with an odd number of rows.
    """
    for cluster in range(len(starts) - 1):
        first, end = starts[cluster], starts[cluster + 1]
        half = (end - first) // 2
        for row in range(first, end):
            differs[row] = (
                row < first + half
                or 2 * half != end - first
                or _compare(address, offsets, row - half, row) != 0
            )


@kernel
def linked(
    starts: Numbers,
    high: Words,
    low: Words,
    channel_starts: Numbers,
    source_high: Words,
    source_low: Words,
    ids: Numbers,
    source_ids: Numbers,
    clean: Flags,
) -> None:
    """Keep the clusters whose servers have different UUIDs and are all linked by channels.

    Only channels of the last readings count. The source of each must be another server of the
    cluster, by UUID and server_id (0: unknown). Otherwise the cluster is not kept: a rule reports
    the source (J4).
    """
    for cluster in range(len(clean)):
        if not clean[cluster]:
            continue
        first, end = starts[cluster], starts[cluster + 1]
        half = (end - first) // 2
        group = np.arange(half)
        ok = True
        for row in range(first + half, end):
            ok = ok and high[row] == high[row - half] and low[row] == low[row - half]
            for other in range(row + 1, end):
                ok = ok and not (high[row] == high[other] and low[row] == low[other])
            for channel in range(channel_starts[row], channel_starts[row + 1]):
                is_here = False
                for other in range(first + half, end):
                    if source_high[channel] == high[other] and source_low[channel] == low[other]:
                        source_id = source_ids[channel]
                        is_here = other != row and source_id in (0, ids[other])
                        ours, theirs = group[row - first - half], group[other - first - half]
                        for server in range(half):
                            if group[server] == theirs:
                                group[server] = ours
                ok = ok and is_here
        for server in range(half):
            ok = ok and group[server] == group[0]
        clean[cluster] = ok


@kernel
def within_logs(
    starts: Numbers,
    high: Words,
    low: Words,
    channel_starts: Numbers,
    source_high: Words,
    source_low: Words,
    place_file: Numbers,
    place_at: Numbers,
    end_file: Numbers,
    end_at: Numbers,
    clean: Flags,
) -> None:
    """Keep the clusters whose receivers are within their source's log, unless they have moved.

    Files are numbers: equal for equal names, and negative where there is no position.
    """
    for cluster in range(len(clean)):
        if not clean[cluster]:
            continue
        first, end = starts[cluster], starts[cluster + 1]
        half = (end - first) // 2
        ok = True
        for row in range(first + half, end):
            for channel in range(channel_starts[row], channel_starts[row + 1]):
                file, at = place_file[channel], place_at[channel]
                stays = False
                for before in range(channel_starts[row - half], channel_starts[row - half + 1]):
                    stays = stays or (place_file[before] == file and place_at[before] == at)
                if file < 0 or not stays:
                    continue
                for other in range(first + half, end):
                    is_source = (
                        source_high[channel] == high[other] and source_low[channel] == low[other]
                    )
                    if is_source and end_file[other] >= 0:
                        ok = ok and file == end_file[other] and at <= end_at[other]
        clean[cluster] = ok


@kernel
def cross_pairs(starts: Numbers, clean: Flags, firsts: Numbers, lasts: Numbers) -> int:
    """List each first reading with the last reading of every other server of its cluster.

    Return the number of pairs. If the arrays are too short, only the number is complete.
    """
    count = 0
    for cluster in range(len(clean)):
        if not clean[cluster]:
            continue
        begin, half = starts[cluster], (starts[cluster + 1] - starts[cluster]) // 2
        for server in range(half):
            for other in range(half):
                if server != other:
                    if count < len(firsts):
                        firsts[count], lasts[count] = begin + server, begin + half + other
                    count += 1
    return count


@kernel
def spread(
    firsts: Numbers, lasts: Numbers, channel_starts: Numbers, left: Numbers, right: Numbers
) -> int:
    """List, for pairs of rows, every channel of the first with the second, as cross_pairs does."""
    count = 0
    for pair in range(len(firsts)):
        for channel in range(channel_starts[firsts[pair]], channel_starts[firsts[pair] + 1]):
            if count < len(left):
                left[count], right[count] = channel, lasts[pair]
            count += 1
    return count
