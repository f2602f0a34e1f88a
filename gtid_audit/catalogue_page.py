"""Writes docs/catalogue.md from the catalogue: `python -m gtid_audit.catalogue_page`.

The page is generated: do not edit it by hand. A test compares it with the catalogue.
"""

import sys
from collections.abc import Iterator

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
    for family, heading in FAMILIES.items():
        yield ""
        yield f"## {family}: {heading}"
        for entry in CATALOGUE.values():
            if entry.code.startswith(family):
                yield from _entry(entry)


def _entry(entry: CatalogueEntry) -> Iterator[str]:
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


if __name__ == "__main__":
    sys.stdout.write(catalogue_page())
