"""Writes requested transactions as one SQL script that redoes or undoes them, or none at all."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import closing
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Final, TypeAlias

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.output import progress, warn, write_json, written_answer
from topology.catalogue.findings import Verdict

if TYPE_CHECKING:
    from gtid_audit.tasks.requested_transactions import RequestedTransactions

# A script in JSON is in memory, and one on its own in a temporary file until all of it is written.
JSON_SCRIPT_BYTES_MAX: Final = 256 * 1024**2
_SPOOLED_BYTES: Final = 8 * 1024**2
_PART_BYTES: Final = 1024**2
_PART_CHARACTERS: Final = 256 * 1024

_Script: TypeAlias = "SpooledTemporaryFile[bytes]"


def write_script(
    run: RequestedTransactions, *, is_undo: bool, keeps_gtids: bool, as_json: bool
) -> int:
    """Write all transactions as SQL, or report why that is not possible; return the exit status."""
    from gtid_audit.tasks.scripted_transactions import ScriptedTransactions
    from repair.sql.replay_script import Direction, script_lines

    direction = Direction.UNDO if is_undo else Direction.REDO
    transactions = ScriptedTransactions(run, is_undo=is_undo, keeps_gtids=keeps_gtids)
    is_whole = bool(transactions) and not transactions.problems and not run.missing
    with closing(transactions), SpooledTemporaryFile(_SPOOLED_BYTES) as script:
        if is_whole:
            with progress("reading logs"):
                fill(script, script_lines(direction, transactions, caveats=run.definitions.caveats))
        problems = transactions.problems
        for label, problem in problems:
            warn(f"{label}: {direction.value} is not possible: {problem}")
        is_whole = is_whole and not problems
        if as_json:
            listed = [{"gtid": label, "problem": each} for label, each in transactions.labels]
            document: dict[str, Any] = {"direction": direction.value, "wanted": str(run.wanted)}
            document |= {"missing": str(run.missing), "transactions": listed}
            document |= {"script": _text_of(script) if is_whole else None, "misfits": run.misfits}
            write_json(document)
        elif is_whole:
            _write(script)
    if problems:
        run.report_misfits()
    if not is_whole:
        warn("no script was written: it must contain all transactions that were requested")
    return exits.status_of(Verdict.UNKNOWN) if problems else run.status()


def fill(script: IO[bytes], lines: Iterable[str]) -> None:
    """Write lines unchanged: a statement may contain bytes that are not UTF-8."""
    part: list[str] = []
    characters = 0
    for line in lines:
        part.append(line)
        characters += len(line)
        if characters >= _PART_CHARACTERS:
            script.write("\n".join((*part, "")).encode("utf-8", errors="surrogateescape"))
            part.clear()
            characters = 0
    script.write("\n".join((*part, "")).encode("utf-8", errors="surrogateescape"))


def _text_of(script: _Script) -> str:
    if script.tell() > JSON_SCRIPT_BYTES_MAX:
        raise UsageProblem(
            f"the script is longer than {JSON_SCRIPT_BYTES_MAX:,} bytes, too long for JSON: leave"
            " out --json"
        )
    script.seek(0)
    return script.read().decode("utf-8", errors="surrogateescape")


def _write(script: _Script) -> None:
    script.seek(0)
    with written_answer():
        sys.stdout.flush()
    while part := script.read(_PART_BYTES):
        with written_answer():
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
