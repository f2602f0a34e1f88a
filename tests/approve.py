"""Write the approved transcripts anew: python -m tests.approve; then read `git diff` line by line.

Each line that changes is something that an operator will read otherwise, or a step that is planned
otherwise. A change that you did not intend is a defect.
"""

from tests.repair import script_cases
from tests.simulation import transcripts
from tests.topology import approved_findings


def main() -> None:
    """Write every transcript."""
    approved_findings.APPROVED.write_text(approved_findings.text())
    transcripts.APPROVED.write_text(transcripts.text())
    (transcripts.APPROVED.parents[1] / "repair/scripts.txt").write_text(script_cases.transcript())


if __name__ == "__main__":
    main()
