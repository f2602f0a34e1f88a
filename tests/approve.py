"""Write the approved transcripts anew: python -m tests.approve; then read `git diff` line by line.

The examples of `explain` and docs/catalogue.md are written, too.

Each line that changes is something that an operator will read otherwise, or a step that is planned
otherwise. A change that you did not intend is a defect.
"""

from gtid_audit import catalogue_page, finding_examples
from tests.gtid_audit import examples_of_scenarios, readme_picture
from tests.repair import changed_scripts, script_cases
from tests.simulation import digests, history_digests, transcripts
from tests.tidy import decision_tables
from tests.topology import approved_findings, changed_facts, fact_digests


def main() -> None:
    """Write every transcript."""
    readme_picture.PICTURE.write_text(readme_picture.text())
    finding_examples.EXAMPLES_FILE.write_text(examples_of_scenarios.text())
    examples_of_scenarios.PAGE.write_text(catalogue_page.catalogue_page())
    approved_findings.APPROVED.write_text(approved_findings.text())
    changed_facts.APPROVED.write_text(changed_facts.text())
    transcripts.APPROVED.write_text(transcripts.text())
    decision_tables.APPROVED.write_text(decision_tables.text())
    digests.APPROVED.write_text(digests.text())
    history_digests.APPROVED.write_text(history_digests.text())
    fact_digests.APPROVED.write_text(fact_digests.text())
    changed_scripts.APPROVED.write_text(changed_scripts.text())
    (transcripts.APPROVED.parents[1] / "repair/scripts.txt").write_text(script_cases.transcript())


if __name__ == "__main__":
    main()
