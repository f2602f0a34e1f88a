r"""One line for monitoring systems that run plugins: status, summary, performance data. Pure.

The form is that of the Monitoring Plugins Development Guidelines, sections "Plugin Output" and
"Performance data":

    GTID CRITICAL - pair: 2 servers, 1 critical; H1 … | critical=1;;0;0 warning=0;0;;0

1. A pipe ends the summary, and a line end ends the line. Both are written as `\x7c` and `\n`.
2. A label has neither `=` nor `'`. If it has a space, it is in single quotes.
3. A threshold is a range: `0` means that every value above 0 raises the alarm. This program has
   evaluated already: the thresholds only state where a graph draws its lines.
"""

import re
from dataclasses import dataclass
from typing import Final

from topology.catalogue.findings import Verdict

SUMMARY_CHARACTERS_MAX: Final = 1000  # Nagios reads 4 KiB, with the performance data
_ESCAPED: Final = {"\n": r"\n", "\r": r"\r", "\t": " ", "|": r"\x7c"}
_ESCAPE: Final = str.maketrans(_ESCAPED)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_LABEL: Final = re.compile(r"[^=']+")


@dataclass(frozen=True, slots=True)
class PerformanceCount:
    """A count of one run. `warning`, `critical`: the largest value that raises no alarm."""

    label: str
    value: int
    warning: int | None = None
    critical: int | None = None

    def __post_init__(self) -> None:
        if not _LABEL.fullmatch(self.label):
            raise ValueError("a label has a character, and neither = nor '")

    def __str__(self) -> str:
        """Return `label=value;warning;critical;minimum`."""
        label = f"'{self.label}'" if " " in self.label else self.label
        limits = ["" if each is None else str(each) for each in (self.warning, self.critical)]
        return f"{label}={self.value};{';'.join(limits)};0"


@dataclass(frozen=True, slots=True)
class PluginLine:
    """The answer of a run, as a plugin prints it."""

    verdict: Verdict
    summary: str
    counts: tuple[PerformanceCount, ...] = ()

    def __str__(self) -> str:
        """Return the line, without its end."""
        summary = escaped(self.summary)
        if len(summary) > SUMMARY_CHARACTERS_MAX:
            summary = f"{summary[: SUMMARY_CHARACTERS_MAX - 1]}…"
        line = f"GTID {self.verdict.value} - {summary}"
        return f"{line} | {' '.join(map(str, self.counts))}" if self.counts else line


def escaped(text: str) -> str:
    """Return a text without pipes, line ends and other control characters."""
    escaped_text = text.translate(_ESCAPE)
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), escaped_text)
