"""Brings Prometheus, promtool and Alertmanager onto the machine without installing anything.

They come from Debian's packages, unpacked like those of MySQL (provision.py), with their own C
library. The tests use them to check alert rules, dashboards and routes as they will run.

``python -m compose.native.monitoring_programs`` fetches them. If they cannot be fetched, it prints
why, and the tests that need them are skipped by name: everything else works without them.
"""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compose.native.apt import unpack_packages
from compose.native.cache import Progress, build_once, cache_root, silent
from compose.native.installation import ProviderMissing
from compose.native.provision import loader_of

PROGRAMS: Final = ("prometheus", "promtool", "prometheus-alertmanager", "amtool")
_PACKAGES: Final = ("prometheus", "promtool", "prometheus-alertmanager")


@dataclass(frozen=True, slots=True)
class MonitoringPrograms:
    """Prometheus, Alertmanager and their tools, as commands that run on this machine."""

    folder: Path
    loader: tuple[str, ...]

    def command(self, name: str) -> list[str]:
        """Return the command line of one of PROGRAMS."""
        assert name in PROGRAMS
        return [*self.loader, str(self.folder / name)]


def provision_monitoring(*, progress: Progress = silent) -> MonitoringPrograms:
    """Return the programs, fetching them on first use: 55 MB, 15 seconds.

    Raises ProviderMissing with what is missing.
    """

    def build(folder: Path) -> None:
        work = cache_root() / "download" / "apt-monitoring"
        unpack_packages(_PACKAGES, suite="sid", into=folder, work=work, progress=progress)
        shutil.rmtree(work)

    prefix = build_once("prometheus-debian", build, progress=progress)
    return MonitoringPrograms(prefix / "usr" / "bin", loader_of(prefix))


def main() -> None:
    """Fetch the programs, or print why that is not possible."""
    try:
        found = provision_monitoring(progress=lambda line: print(f"Prometheus: {line}", flush=True))
    except ProviderMissing as refusal:
        print(f"Prometheus: missing: {refusal}; its tests are skipped", file=sys.stderr)
    else:
        print(f"Prometheus: {found.folder}")


if __name__ == "__main__":
    main()
