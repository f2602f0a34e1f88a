"""The example of each code, as the scenario gives it that has a line `example CODE`.

`python -m tests.approve` writes gtid_audit/finding_examples.json and docs/catalogue.md: read the
difference before you keep it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace

from gtid_audit.finding_examples import FindingExample
from gtid_audit.views.failing_rows import short_explanation
from gtid_audit.views.report_text import where_of
from tests.finding_words import with_letters
from tests.tidy.test_tidy import ROOT
from tests.topology.approved_findings import STORIES
from tests.topology.transcript import Scenario, read_scenarios
from topology.audit_cluster import audit_cluster
from topology.catalogue.findings import ClusterAudit, Finding
from topology.catalogue.verdict_table import CATALOGUE

CLUSTER = "orders"
PAGE = ROOT / "docs/catalogue.md"


def scenarios_with_examples() -> Iterator[tuple[str, Scenario]]:
    """Yield each line `example CODE`: the code, and its scenario."""
    for scenario in read_scenarios(STORIES.read_text()):
        for code in scenario.examples:
            yield code, scenario


def audit_of(scenario: Scenario) -> ClusterAudit:
    """Return the audit of a scenario, whose cluster has a name that suits a reader."""
    first, last = (
        tuple(replace(each, cluster=CLUSTER) for each in reading)
        for reading in (scenario.snapshot.first, scenario.snapshot.last)
    )
    snapshot = replace(scenario.snapshot, cluster=CLUSTER, first=first, last=last)
    return audit_cluster(snapshot, scenario.policy)


def finding_of(code: str, scenario: Scenario) -> Finding:
    """Return the first finding of a code in the audit of a scenario."""
    found = [each for each in audit_of(scenario).findings if each.code == code]
    if not found:
        raise ValueError(f"scenarios.txt, line {scenario.line}: no finding {code} for an example")
    return found[0]


def example_of(finding: Finding) -> FindingExample:
    """Return what a report shows of a finding, in short."""
    return FindingExample(
        severity=finding.severity,
        grade=finding.grade,
        where=with_letters(where_of(finding, name_cluster=False).plain),
        what=with_letters(short_explanation(finding)),
        set=with_letters(finding.gtid_set.shortened()) or None,
    )


def text() -> str:
    """Return the text of gtid_audit/finding_examples.json, as the product is now."""
    found = {code: example_of(finding_of(code, each)) for code, each in scenarios_with_examples()}
    records = {code: found[code].record() for code in CATALOGUE if code in found}
    return json.dumps(records, indent=1, ensure_ascii=False) + "\n"
