"""Every finding of scenarios.txt in full: evidence, explanation, strategies.

`python -m tests.approve` writes approved_findings.txt: read the difference before you keep it.
"""

from pathlib import Path

from tests.finding_words import audit_in_words, wrapped
from tests.topology.transcript import Scenario, read_scenarios
from topology.audit_cluster import audit_cluster

STORIES = Path(__file__).with_name("scenarios.txt")
APPROVED = Path(__file__).with_name("approved_findings.txt")
_BETWEEN = "\n\n"


def title_of(scenario: Scenario) -> str:
    """Return the line by which a story is found."""
    return f"# {scenario.title}"


def in_words(scenario: Scenario) -> str:
    """Return the title of a story, and what the audit reports."""
    audit = audit_cluster(scenario.snapshot, scenario.policy)
    return f"{title_of(scenario)}\n{wrapped(audit_in_words(audit))}"


def read_approved() -> dict[str, str]:
    """Return what was approved, by the title of its story."""
    blocks = APPROVED.read_text().strip().split(_BETWEEN)
    return {block.partition("\n")[0]: block for block in blocks}


def text() -> str:
    """Return the text of the file, as the product is now."""
    return _BETWEEN.join(map(in_words, read_scenarios(STORIES.read_text()))) + "\n"
