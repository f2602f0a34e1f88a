"""Conditions of clean.py on server_ids and settings: whole columns, no cluster alone.

A value that is not known to be harmless leaves the cluster to the rules.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gtid.kernels.words import Flags, Numbers
from spark_audit.flags import filled, is_there, is_true

# Values of the settings that rules look at, with which they report nothing.
_HARMLESS: Final = {
    "replica_skip_errors": ("", "OFF"),
    "replica_exec_mode": ("STRICT",),
    "replica_type_conversions": ("", "ALL_NON_LOSSY"),
    "wsrep_on": ("OFF",),
}


def harmless_settings(column: pa.Array) -> Flags:
    """Return which rows have no setting that a rule reports; one it does not know is left to it."""
    ok = np.ones(len(column), np.bool_)
    lengths = filled(pc.list_value_length(column), 0)
    row = np.repeat(np.arange(len(lengths)), lengths)
    setting = column.flatten()
    name, value = pc.struct_field(setting, "name"), pc.struct_field(setting, "value")
    ok[row[~(is_there(setting) & is_there(name) & is_there(value))]] = False
    looked_at = np.flatnonzero(is_true(pc.is_in(name, pa.array(list(_HARMLESS)))))
    names, values = name.take(pa.array(looked_at)), value.take(pa.array(looked_at))
    for known, harmless in _HARMLESS.items():
        is_other = is_true(pc.equal(names, known)) & ~is_true(pc.is_in(values, pa.array(harmless)))
        ok[row[looked_at[is_other]]] = False
    return ok


def keep_distinct_ids(starts: Numbers, server_id: pa.Array, clean: Flags) -> None:
    """Keep the clusters whose servers have a server_id each: equal ones are left to the rules."""
    ids = filled(server_id, 0)
    cluster = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    halves = np.diff(starts) // 2
    is_last = np.arange(len(ids)) >= (starts[:-1] + halves)[cluster]
    rows = np.flatnonzero(is_last & (ids != 0))
    rows = rows[np.lexsort((ids[rows], cluster[rows]))]
    twice = (np.diff(ids[rows]) == 0) & (np.diff(cluster[rows]) == 0)
    clean[cluster[rows[1:][twice]]] = False
