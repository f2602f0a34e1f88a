"""What `audit --fleet` writes beside its answer: a baseline, and a file of metrics.

Both need the local engine. Whether they can be written is checked before any server is read.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gtid.counted_nouns import counted
from gtid_audit.output import hint
from gtid_audit.tasks.written_baseline import require_new, write_baseline

if TYPE_CHECKING:
    from gtid_audit.views.report import Engine
    from gtid_audit.views.verdict_answers import VerdictAnswer
    from topology.policy import Policy


@dataclass(frozen=True, slots=True)
class AuditOutputs:
    """The files to write; None: the operator did not ask for it."""

    baseline: Path | None
    metrics: Path | None

    def require(self, engine: "Engine") -> None:
        """Raise UsageProblem for a file that cannot be written."""
        require_new(self.baseline, engine)
        if self.metrics is not None:
            from gtid_audit.service.metrics_file import require_metrics_file

            require_metrics_file(self.metrics, engine)

    def write(self, answer: "VerdictAnswer", policy: "Policy") -> None:
        """Write the files. Raises UsageProblem."""
        if self.baseline is not None:
            written = write_baseline(answer, self.baseline)
            left = ", ".join(written.left_out)
            hint(
                f"{self.baseline}: {counted(written.count, 'finding')} written. Delete what is to"
                " be repaired, add reasons and last days, and copy the entries to their clusters in"
                " the fleet file" + (f". {left} cannot be accepted: repair them" if left else "")
            )
        if self.metrics is not None:
            from gtid_audit.service.metrics_file import write_metrics

            write_metrics(answer, policy, self.metrics)
