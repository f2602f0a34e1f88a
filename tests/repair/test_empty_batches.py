"""Many empty transactions are sent in batches, in order, and the journal has all of each."""

from __future__ import annotations

from gtid import GtidSet
from repair.adapters.journal import _TEXT_CHARACTERS_MAX
from repair.applying.script_reader import ScriptReader
from repair.sql.script import BATCHES_FROM, EMPTY_EACH, empty_transactions

UUID = "aaaaaaaa-0000-0000-0000-000000000000"
MANY = GtidSet.parse(f"{UUID}:1-3:5-120,{UUID}:tag:1-2")
STATEMENTS = 3  # of one transaction


def sent(gtids: GtidSet) -> list[str]:
    """Return what a client sends for these transactions."""
    reader, found = ScriptReader("\n".join(empty_transactions(gtids))), []
    while (statement := reader.next(backslash_escapes=True)) is not None:
        found.append(statement)
    return found


def test_few_are_sent_one_statement_at_a_time() -> None:
    few = MANY.first(BATCHES_FROM - 1)
    assert len(sent(few)) == STATEMENTS * few.gtid_count


def test_many_are_sent_in_batches() -> None:
    batches = sent(MANY)
    assert [each.count("BEGIN;") for each in batches] == [EMPTY_EACH] * 4 + [21]
    lines = [line for each in batches for line in each.splitlines()]
    assert lines == [
        f"SET SESSION gtid_next = IF(@go, '{gtid}', 'AUTOMATIC'); BEGIN; COMMIT;"
        for gtid in MANY.gtids()
    ]


def test_the_script_shows_how_far_it_is() -> None:
    comments = [line for line in empty_transactions(MANY) if line.startswith("--")]
    assert comments[0] == f"-- {EMPTY_EACH} of {MANY.gtid_count} are executed"
    assert comments[-1] == f"-- {MANY.gtid_count} of {MANY.gtid_count} are executed"


def test_the_journal_keeps_all_of_a_batch() -> None:
    tag, last_gno = "t" * 32, (1 << 63) - 2
    last = GtidSet.parse(f"{UUID}:{tag}:{last_gno - BATCHES_FROM}-{last_gno}")
    assert max(map(len, sent(last))) <= _TEXT_CHARACTERS_MAX
