"""The ledger: one row per transaction of a log, as Arrow columns."""
