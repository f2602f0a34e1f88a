"""Writes docs/catalogue.md from the catalogue: `python -m gtid_audit.catalogue_page`.

The page is generated: do not edit it by hand. A test compares it with the catalogue.
"""

import sys
from collections.abc import Iterator
from io import StringIO

from rich.console import Console

from gtid_audit.finding_examples import FindingExample, read_examples
from gtid_audit.views.explain_text import NO_EXAMPLE, example_parts
from gtid_audit.views.report_text import WIDTH_WITHOUT_TERMINAL
from topology.catalogue.verdict_table import CATALOGUE, FAMILIES, CatalogueEntry


def catalogue_page() -> str:
    """Return the whole page, in Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# The catalogue: every verdict, why it arises, what to do"
    yield ""
    yield "Generated from the table in the code (`make docs`). Codes are stable. A row marked"
    yield "*not reported* is for `gtid-audit explain` only, and names the codes that report what"
    yield "matters of it."
    yield ""
    yield "Each example has the first lines of a finding in a report. A test takes it from an audit"
    yield "(`python -m tests.approve`). `a`, `b`, `c` and `d` are servers. A letter stands for a"
    yield "server_uuid: `A` for that of `a`."
    examples = read_examples()
    for family, heading in FAMILIES.items():
        yield ""
        yield f"## {family}: {heading}"
        for entry in CATALOGUE.values():
            if entry.code.startswith(family):
                yield from _entry(entry, examples.get(entry.code))


def _entry(entry: CatalogueEntry, example: FindingExample | None) -> Iterator[str]:
    state = entry.severity.value if entry.has_rule else f"{entry.severity.value}, *not reported*"
    yield ""
    yield f"### {entry.code} {entry.name} ({state})"
    yield ""
    yield f"{entry.means}"
    yield ""
    yield f"* **Why:** {entry.arises}"
    yield f"* **Proof:** {entry.proof}"
    for strategy in entry.strategies:
        by_policy = " `reconcile` may apply it (`policy.reconcile`)." if strategy.automatic else ""
        yield f"* **{strategy.name}:** {strategy.why}. Risk: {strategy.risk}.{by_policy}"
    yield ""
    if example is None:
        yield NO_EXAMPLE
    else:
        yield "```"
        yield from _printed(entry, example)
        yield "```"


def _printed(entry: CatalogueEntry, example: FindingExample) -> Iterator[str]:
    """Yield the lines that a report prints where its output is not a terminal."""
    paper = StringIO()
    console = Console(
        file=paper, width=WIDTH_WITHOUT_TERMINAL, highlight=False, markup=False, emoji=False
    )
    console.print(*example_parts(entry, example), sep="\n")
    yield from (line.rstrip() for line in paper.getvalue().splitlines())


if __name__ == "__main__":
    sys.stdout.write(catalogue_page())
