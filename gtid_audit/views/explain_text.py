"""Shows the meaning of an error text or a code to the operator."""

from collections.abc import Sequence

from rich.console import RenderableType

from gtid_audit.views.report_parts import line_of
from gtid_audit.views.report_text import labelled, show
from topology.catalogue.explanations import READ_INSTEAD, Explanation
from topology.rules.build import many


def show_explanation(explanation: Explanation) -> None:
    """Show what a text or a code means, its causes and what to do."""
    title = line_of(explanation.title)
    title.stylize("bold")
    rows: list[tuple[str, RenderableType]] = [
        ("means", line_of(explanation.meaning)),
        ("arises", line_of(explanation.cause)),
    ]
    rows += _listed("do", explanation.advice)
    for label, sets in (
        ("quotes", explanation.gtid_sets),
        ("computed", explanation.computed_sets),
    ):
        rows += [
            (label, line_of(f"{what}: {gtids.shortened() or 'none'} ({many(gtids)})"))
            for what, gtids in sets
        ]
    show(title, labelled(rows))


def show_unexplained(reason: str) -> None:
    """Show that a text is not known, and what to read instead."""
    show(line_of(reason), labelled(_listed("read", READ_INSTEAD)))


def _listed(label: str, texts: Sequence[str]) -> list[tuple[str, RenderableType]]:
    return [("" if number else label, line_of(text)) for number, text in enumerate(texts)]
