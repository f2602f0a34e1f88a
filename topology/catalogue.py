"""Every verdict the auditor can give: the one table behind the docs, `explain`, labels and alerts.

1. A code is stable once released; its row says what it means, why it arises and what to do.
2. `judged` tells whether this version has a rule for it. A row without one is here so that the code
   keeps its meaning and `explain` can answer; no audit reports it.
3. The table holds words, not decisions: rules.py decides.
"""

from dataclasses import dataclass

from topology.catalogue_rows import ROWS
from topology.findings import Severity, Strategy
from topology.strategies import SELECTED_ONLY, STRATEGIES, VARIANTS


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One row of the catalogue."""

    code: str
    name: str
    severity: Severity
    judged: bool
    means: str
    arises: str
    proof: str
    strategies: tuple[Strategy, ...]

    @property
    def family(self) -> str:
        """Return the heading the code stands under."""
        return FAMILIES[self.code[0]]


class UnknownCode(KeyError):
    """A code that no row has."""

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
        judged=row.judged,
        means=row.means,
        arises=row.arises,
        proof=row.proof,
        strategies=tuple(STRATEGIES[name] for name in row.strategies),
    )
    for row in ROWS
}
assert len(CATALOGUE) == len(ROWS), "every code once"


def answers(code: str) -> tuple[str, ...]:
    """Return every strategy that can answer a code: its row's, and those only to be selected.

    This is the one registry: the rules propose from it, `repair plan` accepts choices from it.
    """
    names: list[str] = []
    proposed = (strategy.name for strategy in CATALOGUE[code].strategies)
    for name in (*proposed, *SELECTED_ONLY.get(code, ())):
        names += [name, *VARIANTS.get(name, ())]
    return tuple(dict.fromkeys(names))


def entry_of(code: str) -> CatalogueEntry:
    """Return the row of a code, in any letter case.

    Raises:
        UnknownCode: no row has it.
    """
    try:
        return CATALOGUE[code.strip().upper()]
    except KeyError:
        raise UnknownCode(code) from None
