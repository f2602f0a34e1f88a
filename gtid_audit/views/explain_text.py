"""Shows the meaning of an error text or a code to the operator."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from gtid_audit.finding_examples import FindingExample
from gtid_audit.views.report_parts import QUIET, line_of
from gtid_audit.views.report_text import finding_title, labelled, show
from topology.catalogue.explanations import READ_INSTEAD, Explanation
from topology.catalogue.verdict_table import CatalogueEntry
from topology.rules.build import many

NO_EXAMPLE: Final = "No example: no audit reports this code."


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


def show_example(entry: CatalogueEntry, example: FindingExample | None) -> None:
    """Show what a report has for a code, or that there is no example."""
    if example is None:
        show(Text(), Text(NO_EXAMPLE, style=QUIET))
    else:
        heading = "Example from a report (a letter stands for a server_uuid):"
        show(Text(), Text(heading, style=QUIET), *example_parts(entry, example))


def example_parts(entry: CatalogueEntry, example: FindingExample) -> list[RenderableType]:
    """Return the first lines of a finding, as a report has them."""
    rows: list[tuple[str, RenderableType]] = [
        ("where", line_of(example.where)),
        ("what", line_of(example.what)),
    ]
    if example.set is not None:
        rows.append(("set", line_of(example.set)))
    title = finding_title(entry.code, entry.name, example.severity, example.grade)
    return [title, labelled(rows)]


def show_unexplained(reason: str) -> None:
    """Show that a text is not known, and what to read instead."""
    show(line_of(reason), labelled(_listed("read", READ_INSTEAD)))


def _listed(label: str, texts: Sequence[str]) -> list[tuple[str, RenderableType]]:
    return [("" if number else label, line_of(text)) for number, text in enumerate(texts)]
