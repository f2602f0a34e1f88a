"""Loops over the raw arrays of many GTID sets, compiled by Numba: no object per set or interval.

Every kernel uses this layout. gtid/layout.py allocates the arrays, and gtid/columns.py owns them:

    row_runs    int64[rows + 1]      where the runs of each row begin
    keys        uint64[runs, 6]      UUID (2 words), tag (4 words, padded with zeros), big-endian
    run_bounds  int64[runs + 1]      where the boundaries of each run begin
    bounds      int64[...]           start, end, start, end, ...; ends exclusive

1. A run is the boundaries of one TSID. Keys ascend within a row in MySQL's order. Boundaries ascend
   strictly within a run, and no run is empty. So equal rows have equal arrays.
2. Comparing the words of a key, in order, is the same as comparing the bytes of UUID and tag.
3. A kernel writes to arrays that its caller has made large enough, and reports how much it wrote.
4. gtid/gtid_text.py defines the grammar; a property test compares the kernels with it.
"""
