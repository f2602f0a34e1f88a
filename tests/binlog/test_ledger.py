"""The ledger's kernels against the decoder of every event, on logs of servers and made by hand."""

from __future__ import annotations

from pathlib import Path

from binlog.adapters.ledger_files import ledger_of_file
from binlog.ledger import FileLedger
from tests.binlog.ledger_twin import twin_of
from tests.binlog.material import Written


def same(path: Path) -> FileLedger:
    """Hold both ways to each other, and give the ledger."""
    slow = twin_of(path)
    for verify in (False, True):
        fast = ledger_of_file(path, verify=verify)
        assert fast.rows.schema == slow.rows.schema
        fast.rows.validate(full=True)
        assert fast.rows.to_pylist() == slow.rows.to_pylist()
        assert str(fast.error) == str(slow.error)
        assert type(fast.error) is type(slow.error)
        assert (fast.file, fast.head, fast.end) == (slow.file, slow.head, slow.end)
    return slow


def test_logs_of_servers(written: Written) -> None:
    for path in written.files:
        assert same(path).rows.num_rows
