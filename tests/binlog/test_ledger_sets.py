"""Sets of rows and rows of sets, held to what Python says row by row."""

from __future__ import annotations

from uuid import UUID

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from binlog.ledger.ledger_columns import LEDGER_SCHEMA, rows_of_transactions
from binlog.ledger.ledger_sets import gtids_of, rows_in
from binlog.transactions import Transaction, TransactionKind
from gtid import Gtid, GtidSet, Tsid

TSIDS = [
    Tsid(UUID(f"{digit * 8}-0000-0000-0000-000000000000"), tag)
    for digit in "ab"
    for tag in ("", "x", "y")
]
GTIDS = st.none() | st.builds(Gtid, st.sampled_from(TSIDS), st.integers(1, 9) | st.just(2**63 - 2))
BATCHES = st.lists(st.lists(GTIDS, max_size=8), max_size=3)


def rows_with(gtids: list[Gtid | None]) -> pa.Table:
    return rows_of_transactions(
        Transaction(
            gtid=gtid,
            file="binlog.000001",
            start=number * 10,
            end=number * 10 + 10,
            server_id=1,
            kind=TransactionKind.DML,
            timestamp_seconds=0,
            original_commit_timestamp=None,
            immediate_commit_timestamp=None,
            logical_last_committed=None,
            logical_sequence_number=None,
            original_server_version=None,
            statements=(),
            tables=(),
            error_code=0,
        )
        for number, gtid in enumerate(gtids)
    )


@settings(deadline=None)
@given(batches=BATCHES, wanted=st.lists(GTIDS, max_size=8))
def test_rows_and_sets_agree_with_looking_at_each(
    batches: list[list[Gtid | None]], wanted: list[Gtid | None]
) -> None:
    """Each batch has a dictionary of its own, as the ledgers of files have."""
    rows = pa.concat_tables([LEDGER_SCHEMA.empty_table(), *map(rows_with, batches)])
    held = [gtid for batch in batches for gtid in batch]
    assert gtids_of(rows) == GtidSet.of(gtid for gtid in held if gtid)
    asked = GtidSet.of(gtid for gtid in wanted if gtid)
    assert rows_in(rows, asked).tolist() == [gtid is not None and gtid in asked for gtid in held]


def test_no_row_has_no_gtid() -> None:
    rows = LEDGER_SCHEMA.empty_table()
    assert gtids_of(rows) == GtidSet()
    assert rows_in(rows, GtidSet.of(Gtid(TSIDS[0], 1))).tolist() == []
