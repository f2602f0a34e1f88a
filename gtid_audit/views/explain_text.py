"""Shows the meaning of an error text or a code to the operator."""

from rich.console import RenderableType

from gtid_audit.views.report_text import labelled, line_of, show
from topology.catalogue.explanations import Explanation


def show_explanation(explanation: Explanation) -> None:
    """Show what a text or a code means, its causes and what to do."""
    title = line_of(explanation.title)
    title.stylize("bold")
    rows: list[tuple[str, RenderableType]] = [
        ("means", line_of(explanation.meaning)),
        ("arises", line_of(explanation.cause)),
    ]
    for number, advice in enumerate(explanation.advice):
        rows.append(("" if number else "do", line_of(advice)))
    show(title, labelled(rows))
