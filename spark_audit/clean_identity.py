"""The condition of clean_clusters.py on server_ids, evaluated on whole columns."""

import numpy as np
import pyarrow as pa

from gtid.kernels.eight_bytes import Flags, Numbers
from spark_audit.arrow_arrays import filled


def keep_distinct_ids(starts: Numbers, server_id: pa.Array, clean: Flags) -> None:
    """Keep the clusters whose servers have different server_ids; the rules evaluate the others."""
    ids = filled(server_id, 0)
    cluster = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    halves = np.diff(starts) // 2
    is_last = np.arange(len(ids)) >= (starts[:-1] + halves)[cluster]
    rows = np.flatnonzero(is_last & (ids != 0))
    rows = rows[np.argsort(ids[rows], kind="stable")]  # equal ids of one cluster stay neighbours
    twice = (np.diff(ids[rows]) == 0) & (np.diff(cluster[rows]) == 0)
    clean[cluster[rows[1:][twice]]] = False
