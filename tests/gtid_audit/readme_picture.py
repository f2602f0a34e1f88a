"""The picture of README.md: what `gtid-audit pair --format svg` draws of a pair with a hole."""

from pathlib import Path
from typing import Final

from gtid_audit.operands.servers_in_commands import ServersInCommands
from gtid_audit.output_form import OutputForm
from gtid_audit.views.drawn_answer import drawn_answer
from gtid_audit.views.report import Engine, report_of
from gtid_audit.views.report_text import show_report
from tests.gtid_audit.build import holed
from topology.audit_cluster import audit_cluster
from topology.readings.snapshot import ClusterSnapshot

_NAMED: Final = ServersInCommands(
    {name: f"mysql://auditor@{name}.example/?ssl=required" for name in ("a", "b")}
)
_UNREACHED: Final = ServersInCommands()
PICTURE: Final = Path(__file__).parents[2] / "docs/pictures/pair.svg"


def drawn(
    snapshot: ClusterSnapshot,
    form: OutputForm = OutputForm.SVG,
    servers: ServersInCommands = _UNREACHED,
) -> str:
    """Return the picture of an audit."""
    report = report_of(Engine.LOCAL, [audit_cluster(snapshot)])
    title = f"gtid-audit: {report.verdict.value}"
    return drawn_answer(
        lambda: show_report(report, snapshots=[snapshot], named=lambda _: servers),
        form,
        title=title,
    )


def text() -> str:
    """Return the picture of README.md."""
    return drawn(holed("pair"), servers=_NAMED)
