"""--watch: the same audit again and again, until Ctrl-C.

1. On a terminal, text is repainted in place, cut to the height of the terminal. Otherwise, and in
   every other form, each answer follows the one before.
2. An audit that fails shows UNKNOWN with the reason, and the next one follows. Only a usage problem
   of the first audit ends the command: it would fail in the same way again.
3. Ctrl-C ends with the exit status of the last audit that was shown, also where a shell started
   the command in the background with SIGINT ignored.
"""

import signal
import sys
from collections.abc import Callable, Sequence
from shutil import get_terminal_size
from time import sleep
from typing import Final, TypeAlias

from gtid_audit import exits
from gtid_audit.exits import UsageProblem
from gtid_audit.output import OutputLost, ReaderGone, held_output, without_credentials, write
from gtid_audit.output_form import OutputForm
from gtid_audit.views.verdict_answers import VerdictAnswer, write_answer

_SECONDS_MIN: Final = 0.1
_SECONDS_MAX: Final = 86_400
_HOME, _CLEAR_LINE, _CLEAR_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"
_CLEAR: Final = "\x1b[2J"

# Writes an answer, and returns its exit status.
Say: TypeAlias = Callable[[VerdictAnswer], int]
# Audits once, and says the answer while what it is read from is open.
AuditOnce: TypeAlias = Callable[[Say], int]


def audited(audit: AuditOnce, *, form: OutputForm, watch: str | None) -> int:
    """Audit once, or with --watch until Ctrl-C, and return the exit status."""

    def say(answer: VerdictAnswer) -> int:
        return write_answer(answer, form)

    seconds = _watch_seconds(watch)
    if seconds is not None and form in (OutputForm.SVG, OutputForm.HTML):
        raise UsageProblem(f"--watch: --format {form.value} is one picture")
    return audit(say) if seconds is None else _watched(audit, say, seconds=seconds, form=form)


def _watch_seconds(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not _SECONDS_MIN <= seconds <= _SECONDS_MAX:  # also rejects nan
        raise UsageProblem(f"--watch: expected {_SECONDS_MIN} to {_SECONDS_MAX:,} seconds")
    return seconds


def _watched(audit: AuditOnce, say: Say, *, seconds: float, form: OutputForm) -> int:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    paints = form is OutputForm.TEXT and sys.stdout.isatty()
    status: int | None = None
    try:
        while True:
            if paints:
                with held_output() as pieces:
                    now = _one(audit, say, is_first=status is None)
                footer = f"every {seconds:g} s, Ctrl-C ends"
                _paint("".join(pieces), footer, is_first=status is None)
            else:
                if status is not None and form is OutputForm.TEXT:
                    write("\n")
                now = _one(audit, say, is_first=status is None)
            status = now
            sleep(seconds)
    except KeyboardInterrupt:
        return exits.INTERRUPTED if status is None else status


def _one(audit: AuditOnce, say: Say, *, is_first: bool) -> int:
    """Audit once. What fails is UNKNOWN, and not the end."""
    try:
        return audit(say)
    except (ReaderGone, OutputLost):
        raise
    except exits.USAGE_PROBLEMS as problem:
        if is_first:
            raise
        return say(_failed("; ".join(problem.problems)))
    except Exception as defect:  # noqa: BLE001 - the next audit may succeed; the reason is shown
        return say(_failed(f"{type(defect).__name__}: {defect}"))


def _failed(reason: str) -> VerdictAnswer:
    """Return the answer of an audit that did not end: UNKNOWN, and why."""
    from gtid_audit.views.audit_results import InMemory
    from gtid_audit.views.report import Engine, report_of
    from topology.catalogue.findings import ClusterAudit, Unknown, Verdict

    unknown = Unknown("audit", "", "audit", without_credentials(reason))
    failed = ClusterAudit("audit", Verdict.UNKNOWN, (), (), (unknown,), None)
    return InMemory(report_of(Engine.LOCAL, [failed]))


def _paint(text: str, footer: str, *, is_first: bool) -> None:
    """Replace what the terminal shows. Lines that do not fit are counted."""
    columns, height = get_terminal_size()
    lines = text.splitlines()
    shown = lines[: _count_that_fits(lines, columns=columns, rows=max(height - 2, 1))]
    if len(shown) < len(lines):
        footer = f"… {len(lines) - len(shown):,} more lines; {footer}"
    painted = "".join(f"{line}{_CLEAR_LINE}\n" for line in (*shown, footer))
    write((_CLEAR if is_first else "") + _HOME + painted + _CLEAR_BELOW)


def _count_that_fits(lines: Sequence[str], *, columns: int, rows: int) -> int:
    """Return how many lines fit; a terminal wraps one that is longer than it has columns."""
    from rich.text import Text

    for count, line in enumerate(lines):
        rows -= max(-(-Text.from_ansi(line).cell_len // columns), 1)
        if rows < 0:
            return count
    return len(lines)
