"""Loops over the raw arrays of many GTID sets, compiled by Numba: no object per set or interval.

The layout, shared by every kernel and owned by gtid/columns.py:

    row_runs    int64[rows + 1]      where the runs of each row begin
    keys        uint64[runs, 6]      UUID (2 words), tag (4 words, padded with zeros), big-endian
    run_bounds  int64[runs + 1]      where the boundaries of each run begin
    bounds      int64[...]           start, end, start, end, ...; ends exclusive

1. A run is one TSID's boundaries. Keys ascend within a row, as MySQL orders them; boundaries ascend
   strictly within a run, and no run is empty. So equal rows have equal arrays.
2. The words of a key compare as the bytes of UUID and tag do: the first that differ decide.
3. A kernel writes to arrays that its caller has made large enough, and says how far it came.
4. The grammar is that of gtid/text.py, which is the definition; a property test holds both to it.
"""
