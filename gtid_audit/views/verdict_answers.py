"""Writes the answer of a command in the form that --format selects."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gtid_audit import exits
from gtid_audit.global_options import GLOBAL_OPTIONS
from gtid_audit.output import json_text, write
from gtid_audit.output_form import OutputForm
from topology.catalogue.findings import Verdict


class VerdictAnswer(Protocol):
    """An answer with a verdict."""

    @property
    def verdict(self) -> Verdict:
        """Return the verdict, which determines the exit status."""

    def document(self) -> Iterator[str]:
        """Return the JSON document, in pieces."""

    def lines(self) -> Iterator[str]:
        """Return the JSON lines (json_lines.py)."""

    def plugin_line(self) -> str:
        """Return the line of a monitoring plugin (plugin_line.py), without its end."""

    def show(self) -> None:
        """Show the answer to the operator."""

    def show_verdict(self) -> None:
        """Show only the first line of it."""


def write_answer(answer: VerdictAnswer, form: OutputForm) -> int:
    """Write an answer, and return the exit status of its verdict."""
    show = answer.show_verdict if GLOBAL_OPTIONS.is_quiet else answer.show
    if form is OutputForm.TEXT:
        show()
    elif form in (OutputForm.SVG, OutputForm.HTML):
        from gtid_audit.views.drawn_answer import drawn_answer

        write(drawn_answer(show, form, title=f"gtid-audit: {answer.verdict.value}"))
    elif form is OutputForm.PLUGIN:
        write(answer.plugin_line() + "\n")
    else:
        for piece in answer.document() if form is OutputForm.JSON else answer.lines():
            write(piece)
    return exits.status_of(answer.verdict)


@dataclass(frozen=True, slots=True)
class DocumentAnswer:
    """An answer that fits into memory. `summary` stands after the verdict where one line is shown.

    `counts` are performance data; those in `warns` raise a WARNING if they are above 0.
    """

    verdict: Verdict
    summary: str
    make_document: Callable[[], Mapping[str, Any]]
    show_text: Callable[[], None]
    counts: Mapping[str, int]
    warns: frozenset[str] = frozenset()

    def document(self) -> Iterator[str]:
        """Return the JSON document, in pieces."""
        yield json_text(self.make_document())

    def lines(self) -> Iterator[str]:
        """Return the JSON lines."""
        from gtid_audit.views.json_lines import lines_of_document

        return lines_of_document(self.make_document())

    def plugin_line(self) -> str:
        """Return the line of a monitoring plugin."""
        from gtid_audit.views.plugin_line import PerformanceCount, PluginLine

        counts = tuple(
            PerformanceCount(label, value, 0 if label in self.warns else None)
            for label, value in self.counts.items()
        )
        return str(PluginLine(self.verdict, self.summary, counts))

    def show(self) -> None:
        """Show the answer to the operator."""
        self.show_text()

    def show_verdict(self) -> None:
        """Show only the first line of it."""
        from gtid_audit.views.report_text import headline, show

        show(headline(self.verdict, self.summary))
