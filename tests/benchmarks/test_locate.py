"""The logs that B8 searches are logs, and hold what is said of them."""

from __future__ import annotations

from pathlib import Path

from benchmarks.generate.logs import write_logs
from benchmarks.locate import _draw
from binlog.adapters.heads_files import locate_in_files
from binlog.adapters.ledger_files import ledger_of_file
from binlog.adapters.previous_gtids import previous_gtids_of
from binlog.ledger.ledger_columns import LedgerRequest
from binlog.ledger.ledger_sets import gtids_of
from gtid import GtidSet


def test_made_logs_are_sound_and_hold_what_is_said(tmp_path: Path) -> None:
    paths, held = write_logs(tmp_path, count=3, transactions=4)
    found = GtidSet()
    for path in paths:
        ledger = ledger_of_file(path, LedgerRequest(verify=True))
        assert ledger.error is None
        assert ledger.rows.num_rows == 4
        assert previous_gtids_of(path) == found
        found |= gtids_of(ledger.rows)
    assert found == held


def test_what_is_drawn_is_held_and_the_same_each_time(tmp_path: Path) -> None:
    paths, held = write_logs(tmp_path, count=5, transactions=7)
    drawn = _draw(held, 9)
    assert drawn == _draw(held, 9)
    for wanted in drawn:
        assert locate_in_files(paths, wanted).found == wanted
