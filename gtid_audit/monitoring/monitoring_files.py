"""Every file that Prometheus, Alertmanager and Grafana need: names, texts, and writing them.

`make docs` writes those of the repository. They are in gtid_audit/monitoring/files, which the stack
of compose/ mounts, and belong to the package. A test compares them with the tables.
"""

import sys
from pathlib import Path
from typing import Final

from gtid_audit.exits import UsageProblem
from gtid_audit.monitoring.alert_rules import RUNBOOK_URL, alertmanager_file, rules_file
from gtid_audit.monitoring.dashboards import HOME, dashboards

FILES: Final = Path(__file__).parent / "files"
DASHBOARDS: Final = "grafana/dashboards"
# Where Grafana's image mounts them; provisioned dashboards are read again after a change.
GRAFANA_FOLDER: Final = "/var/lib/grafana/dashboards"
_PROVIDER: Final = f"""\
# Grafana reads it from /etc/grafana/provisioning/dashboards. Home dashboard: {HOME}
apiVersion: 1
providers:
  - name: gtid-audit
    folder: GTID audit
    type: file
    allowUiUpdates: false
    options:
      path: {GRAFANA_FOLDER}
"""


def monitoring_files(runbook: str = RUNBOOK_URL) -> dict[str, str]:
    """Return the text of each file, by its path below the chosen directory."""
    return {
        "prometheus/gtid-audit.rules.yml": rules_file(runbook),
        "alertmanager/alertmanager.yml": alertmanager_file(),
        "grafana/provisioning/dashboards/gtid-audit.yml": _PROVIDER,
        **{f"{DASHBOARDS}/{name}": text for name, text in dashboards(runbook).items()},
    }


def write_files(directory: Path, runbook: str = RUNBOOK_URL) -> list[Path]:
    """Write every file below a directory; files of an earlier version are replaced.

    Raises UsageProblem if one cannot be written.
    """
    written = []
    for name, text in monitoring_files(runbook).items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageProblem(f"{path}: {error.strerror or error}") from error
        written.append(path)
    return written


if __name__ == "__main__":
    sys.stdout.writelines(f"{path}\n" for path in write_files(FILES))
