"""A real finding of each code that an audit can report: for `explain` and docs/catalogue.md.

1. finding_examples.json has them, in the order of the catalogue. `python -m tests.approve` writes
   it: a line `example CODE` in tests/topology/scenarios.txt selects the audit from which the
   finding of that code is taken. A test compares the two.
2. The texts are those of a report, with a letter for each server_uuid: `A:41-43` is not the text
   of a GTID set. `what` is the whole sentence, not cut to a width.
3. A code without a rule has no example, because no audit reports it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from topology.catalogue.findings import Grade, Severity

EXAMPLES_FILE: Final = Path(__file__).with_name("finding_examples.json")


@dataclass(frozen=True, slots=True)
class FindingExample:
    """What a report shows of one finding: its heading, where it is, and what happened."""

    severity: Severity
    grade: Grade
    where: str
    what: str
    set: str | None  # None: the finding is not about transactions

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> "FindingExample":
        """Return the example that `record` describes."""
        severity, grade = Severity(record["severity"]), Grade(record["grade"])
        return cls(severity, grade, record["where"], record["what"], record["set"])

    def record(self) -> dict[str, str | None]:
        """Return the example as an item of a JSON document."""
        return {
            "severity": self.severity.value,
            "grade": self.grade.value,
            "where": self.where,
            "what": self.what,
            "set": self.set,
        }


def read_examples() -> dict[str, FindingExample]:
    """Return every example, by its code."""
    records = json.loads(EXAMPLES_FILE.read_text(encoding="utf-8"))
    return {code: FindingExample.of_record(record) for code, record in records.items()}
