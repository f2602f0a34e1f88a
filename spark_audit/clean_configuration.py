"""The conditions of clean_clusters.py on settings, clocks and versions, on whole columns.

They are at least as strict as topology/rules/risky_settings.py: a cluster that fails one is left to
the rules, which know the policy and who replicates from whom.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gtid.kernels.eight_bytes import Flags, Numbers
from spark_audit.arrow_arrays import filled, is_there, is_true
from topology.policy import CLOCK_SECONDS_LEAST
from topology.readings.notable_settings import AUTO_INCREMENT
from topology.readings.version import ServerVersion, UnreadableVersion, series_of

_WRITABLE: Final = f"^(?:{AUTO_INCREMENT}=(?P<step>[0-9]{{1,5}})/(?P<first>[0-9]{{1,5}}))?$"
_OF_A_PAIR: Final = 2
_CLOCKS_APART: Final = CLOCK_SECONDS_LEAST * 1_000_000  # microseconds, as times are stored


def keep_configured(
    starts: Numbers, notable: pa.Array, channel_starts: Numbers, clean: Flags
) -> None:
    """Keep the clusters without a notable setting, but for servers that are writable.

    If several are, they must generate different keys: the same step, and each its own first value
    within that step. A writable server that has a source must be one of a pair, in which both have
    a channel.
    """
    cluster = _clusters(starts)
    found = pc.extract_regex(notable, _WRITABLE)
    clean[cluster[~is_there(found)]] = False
    step, first = (
        filled(pc.cast(pc.replace_substring_regex(part, "^$", "0"), pa.int64()), 0)
        for part in (pc.struct_field(found, "step"), pc.struct_field(found, "first"))
    )
    halves = np.diff(starts) // 2
    has_channel = np.diff(channel_starts) > 0
    without = np.zeros(len(clean), np.bool_)
    without[cluster[~has_channel]] = True
    is_pair = (halves == _OF_A_PAIR) & ~without
    clean[cluster[(step > 0) & has_channel & ~is_pair[cluster]]] = False
    in_phase = np.arange(len(cluster)) >= (starts[:-1] + halves)[cluster]
    rows = np.flatnonzero((step > 0) & in_phase)
    order = np.lexsort((first[rows], step[rows], cluster[rows]))
    rows = rows[order]
    several = np.diff(cluster[rows]) == 0  # this one and the next are of one cluster
    alike = (np.diff(step[rows]) == 0) & (np.diff(first[rows]) > 0)
    clean[cluster[rows[1:][several & ~alike]]] = False
    beyond = first > step
    shared = np.zeros(len(clean), np.bool_)
    shared[cluster[rows[1:][several]]] = True
    clean[cluster[rows[beyond[rows]]]] &= ~shared[cluster[rows[beyond[rows]]]]
    # Values that changed between the readings are left to the rules.
    pairs = np.arange(len(cluster)) + halves[cluster]
    pairs = np.where(in_phase, np.arange(len(cluster)), pairs)
    changed = (step != step[pairs]) | (first != first[pairs])
    clean[cluster[changed]] = False


def keep_clocks_together(
    starts: Numbers, server_clock: pa.Array, read_ended: Numbers, clean: Flags
) -> None:
    """Keep the clusters whose clocks differ by at most the least that a policy can allow."""
    cluster = _clusters(starts)
    has_clock = is_there(server_clock)
    ahead = filled(server_clock.cast(pa.int64()), 0) - read_ended
    highest = np.full(len(clean), np.iinfo(np.int64).min)
    lowest = np.full(len(clean), np.iinfo(np.int64).max)
    np.maximum.at(highest, cluster[has_clock], ahead[has_clock])
    np.minimum.at(lowest, cluster[has_clock], ahead[has_clock])
    read = highest >= lowest
    clean[read] &= (highest[read] - lowest[read]) <= _CLOCKS_APART


def keep_one_series(starts: Numbers, version: pa.Array, clean: Flags) -> None:
    """Keep the clusters in which every server has a version of one release series."""
    encoded = version.dictionary_encode()
    series = np.array([_series(text) for text in encoded.dictionary.to_pylist()], np.int64)
    if not len(series):
        return
    of_row = series[filled(encoded.indices, 0)]
    first = of_row[np.minimum(starts[:-1], len(of_row) - 1)]
    cluster = _clusters(starts)
    clean[cluster[(of_row != first[cluster]) | ~is_true(pc.is_valid(version))]] = False


def _series(text: str) -> int:
    try:
        return series_of(ServerVersion.parse(text))
    except UnreadableVersion:
        return -1  # such a row is not complete: no cluster with it is clean


def _clusters(starts: Numbers) -> Numbers:
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))
