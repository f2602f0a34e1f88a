"""What a shell may complete beyond the names of commands and options: codes, and strategies.

The tables are imported when the shell asks.
"""

from collections.abc import Iterator


def codes(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the codes of the catalogue with their names, in the case that the operator typed."""
    from topology.catalogue.verdict_table import CATALOGUE

    is_lower = incomplete[:1].islower()
    for code, entry in CATALOGUE.items():
        yield (code.lower() if is_lower else code), entry.name


def strategies(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield CODE=NAME for each strategy of each code, with what the strategy does."""
    from topology.catalogue.verdict_table import CATALOGUE

    code, _, _ = incomplete.upper().partition("=")
    for entry in CATALOGUE.values():
        if entry.code.startswith(code):
            for strategy in entry.strategies:
                yield f"{entry.code}={strategy.name}", strategy.why
