"""Writes requested transactions as one SQL script that redoes or undoes them, or none at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.output import warn, write_json
from topology.catalogue.findings import Verdict

if TYPE_CHECKING:
    from gtid_audit.tasks.requested_transactions import RequestedTransactions
    from repair.sql.replay import Replayed

SCRIPT_CHARACTERS_MAX: Final = 1024**3


def write_script(
    run: RequestedTransactions, *, is_undo: bool, keeps_gtids: bool, as_json: bool
) -> int:
    """Write all transactions as SQL, or report why that is not possible; return the exit status."""
    from repair.sql.replay_script import Direction, script_lines

    direction = Direction.UNDO if is_undo else Direction.REDO
    replayed = _replayed(run, is_undo=is_undo, keeps_gtids=keeps_gtids, as_json=as_json)
    problems = [each for each in replayed if each.problem]
    for each in problems:
        warn(f"{each.label}: {direction.value} is not possible: {each.problem}")
    is_whole = bool(replayed) and not problems and not run.missing
    lines = script_lines(direction, replayed, caveats=run.definitions.caveats) if is_whole else ()
    if as_json:
        script = "\n".join(lines) + "\n" if is_whole else None
        transactions = [{"gtid": each.label, "problem": each.problem} for each in replayed]
        document: dict[str, Any] = {"direction": direction.value, "wanted": str(run.wanted)}
        document |= {"missing": str(run.missing), "transactions": transactions, "script": script}
        document["misfits"] = run.misfits
        write_json(document)
    else:
        _write_lines(lines)
    if problems:
        run.report_misfits()
    if not is_whole:
        warn("no script was written: it must contain all transactions that were requested")
    return exits.status_of(Verdict.UNKNOWN) if problems else run.status()


def _replayed(
    run: RequestedTransactions, *, is_undo: bool, keeps_gtids: bool, as_json: bool
) -> list[Replayed]:
    """Write each transaction as SQL; a large one goes to a temporary file."""
    from binlog.adapters.spooled import Spooled
    from repair.sql.redo_sql import redo
    from repair.sql.undo_sql import undo

    write = undo if is_undo else partial(redo, keeps_gtid=keeps_gtids)
    replayed: list[Replayed] = []
    characters = 0
    for group, items in run.contents():
        is_spooled = isinstance(group.events, Spooled)
        if is_spooled and as_json:
            raise UsageProblem(
                f"{group.transaction.gtid} is too long for a script in JSON: leave out --json"
            )
        done = write(group, items, make_lines=Spooled if is_spooled else list)
        characters += 0 if is_spooled else sum(map(len, done.lines))
        if characters > SCRIPT_CHARACTERS_MAX:
            raise UsageProblem(
                f"the script is longer than {SCRIPT_CHARACTERS_MAX:,} characters: select fewer"
                " transactions"
            )
        replayed.append(done)
    return replayed


def _write_lines(lines: Iterable[str]) -> None:
    """Write a script unchanged: a statement may contain bytes that are not UTF-8."""
    from gtid_audit.output import ReaderGone

    try:
        sys.stdout.flush()
        for line in lines:
            sys.stdout.buffer.write(line.encode("utf-8", errors="surrogateescape") + b"\n")
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise ReaderGone from None
