"""Writes the baseline of an audit to a new file."""

import os
from dataclasses import dataclass
from pathlib import Path

from gtid_audit.exits import UsageProblem
from gtid_audit.views.audit_results import InMemory
from gtid_audit.views.report import Engine
from gtid_audit.views.verdict_answers import VerdictAnswer


def require_new(path: Path | None, engine: Engine) -> None:
    """Raise UsageProblem if a baseline cannot be written to a path: nothing is overwritten."""
    if path is None:
        return
    if engine is not Engine.LOCAL:
        raise UsageProblem("--write-baseline is for --engine local")
    if path.exists() or path.is_symlink():
        raise UsageProblem(f"{path}: the file exists; --write-baseline overwrites none")
    if not path.absolute().parent.is_dir():
        raise UsageProblem(f"{path}: no such directory")


@dataclass(frozen=True, slots=True)
class WrittenBaseline:
    """What a baseline has, and has not."""

    count: int
    left_out: tuple[str, ...]  # codes above info that no entry can accept, in order


def write_baseline(outcome: VerdictAnswer, path: Path) -> WrittenBaseline:
    """Write the acceptable findings to a new file. Raises UsageProblem."""
    from gtid_audit.views.baseline import acceptable, baseline_text, not_acceptable

    assert isinstance(outcome, InMemory), "require_new refused the other engine"
    try:
        # Exclusive: a file that another process has just written stays.
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(baseline_text(outcome.report))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise UsageProblem(f"{path}: {error.strerror or error}") from error
    left = dict.fromkeys(each.code for each in not_acceptable(outcome.report))
    return WrittenBaseline(len(acceptable(outcome.report)), tuple(sorted(left)))
