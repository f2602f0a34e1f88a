"""Digests of what the product computes of kept histories, and of generated ones.

`python -m tests.approve` writes history_digests.txt. Oracles see wrong conclusions. These lines see
every other change: of a fact, of a finding before another one explains it, of a question to a log, of
a text of the default plan, of who could replicate from whom. One line for each history of scenarios/, and for each ten generated ones.
"""

from collections.abc import Iterator
from pathlib import Path

from repair.render import render_files
from tests.digests import digest, of_facts
from tests.simulation.history import History, generate, parse
from tests.simulation.transcripts import Story, reported
from topology.policy import Policy

APPROVED = Path(__file__).with_name("history_digests.txt")
KEPT = Path(__file__).with_name("scenarios")
GENERATED = 1000
_A_LINE = 10


def names() -> list[str]:
    """Return the names of all lines: of a kept history, or the first seed of ten."""
    kept = sorted(path.stem for path in KEPT.glob("*.txt"))
    return [*kept, *(str(first) for first in range(0, GENERATED, _A_LINE))]


def line_of(name: str) -> str:
    """Return the line of a name."""
    if not name.isdigit():
        return f"{name} {' '.join(_digests(parse((KEPT / f'{name}.txt').read_text())))}"
    ten = range(int(name), int(name) + _A_LINE)
    return f"{name} {digest([[*_digests(generate(seed)[0])] for seed in ten])}"


def _digests(history: History) -> Iterator[str]:
    found = reported(Story(history, {}))
    yield of_facts(found.snapshot, Policy())
    if found.default is not None:
        yield f"plan {digest(render_files(found.default.plan))}"


def text() -> str:
    """Return the text of the file as the product is now."""
    return "".join(f"{line_of(name)}\n" for name in names())
