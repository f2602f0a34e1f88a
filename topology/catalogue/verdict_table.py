"""Every verdict of the auditor: the one table behind the docs, `explain`, labels and alerts.

1. A code is stable once released. Its row holds the meaning, the cause and the next step.
2. `has_rule` is true if this version has a rule for the code. Rows without one keep the meaning of
   their code, and `explain` can answer. No audit reports them.
3. The table holds texts only. The rules (rules/) decide which code applies.
"""

from dataclasses import dataclass

from topology.catalogue.catalogue_rows import ROWS
from topology.catalogue.findings import Severity, Strategy
from topology.catalogue.strategy_table import proposed_for, unknown_codes


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One row of the catalogue."""

    code: str
    name: str
    severity: Severity
    has_rule: bool
    means: str
    arises: str
    proof: str
    strategies: tuple[Strategy, ...]

    @property
    def family(self) -> str:
        """Return the heading under which the code is listed."""
        return FAMILIES[self.code[0]]


class UnknownCode(KeyError):
    """A code that is in no row."""

    def __str__(self) -> str:
        return f"no catalogue entry {self.args[0]!r}; the families are {', '.join(FAMILIES)}"


FAMILIES: dict[str, str] = {
    "T": "Differences that clear by themselves",
    "H": "Holes",
    "E": "Extra transactions",
    "J": "Servers that could join",
    "P": "Purge and error 1236",
    "A": "Stopped or blocked threads",
    "C": "Configuration that makes the rest possible",
    "S": "Schema consistency",
    "F": "Hygiene",
    "U": "What we do not know",
}

CATALOGUE: dict[str, CatalogueEntry] = {
    row.code: CatalogueEntry(
        code=row.code,
        name=row.name,
        severity=Severity(row.severity),
        has_rule=row.has_rule,
        means=row.means,
        arises=row.arises,
        proof=row.proof,
        strategies=proposed_for(row.code),
    )
    for row in ROWS
}
assert len(CATALOGUE) == len(ROWS), "every code once"
assert not unknown_codes(CATALOGUE.keys()), "strategies answer codes of the catalogue"


def entry_of(code: str) -> CatalogueEntry:
    """Return the row of a code, in any letter case.

    Raises:
        UnknownCode: no row has it.
    """
    try:
        return CATALOGUE[code.strip().upper()]
    except KeyError:
        raise UnknownCode(code) from None
