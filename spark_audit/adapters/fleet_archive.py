"""The archive that takes a fleet file's clusters and policy to the driver of a Spark cluster.

    gtid-audit-fleet.zip   for `spark-submit --py-files`, beside gtid-audit.zip
        gtid_audit_fleet/__init__.py
        gtid_audit_fleet/fleet.json    spark_audit/expected_fleet.py

1. It is an archive of modules because `--py-files` arrives in every deploy mode in which our own
   code arrives. Spark's own option for files does not reach a driver in YARN's client mode.
2. They are not in the command line: Linux limits it to 2 MB, and 10,000 clusters with their
   accepted findings need more.
3. It has no accounts. The same fleet gives the same bytes.
"""

import io
import zipfile
from importlib import import_module, resources
from pathlib import Path
from typing import Final

from spark_audit.adapters.package import add_file, replace_file
from spark_audit.expected_fleet import ExpectedCluster, ExpectedFleet, ExpectedServer
from topology.adapters.inventory.fleet import Roster
from topology.documents.record_codec import MalformedRecord

ENDING: Final = "-fleet.zip"  # in place of the ending of the package's archive
_MODULE: Final = "gtid_audit_fleet"
_FILE: Final = "fleet.json"
_DOCSTRING: Final = '"""The clusters and the policy of a fleet file, without accounts."""\n'


class FleetNotSent(Exception):
    """The archive did not arrive, or another version of gtid-audit wrote it."""


def expected_of(roster: Roster) -> ExpectedFleet:
    """Return the contents of a fleet file that an audit of stored runs needs."""
    return ExpectedFleet(
        tuple(
            ExpectedCluster(
                each.name,
                tuple(ExpectedServer(one.name, one.dsn.host, one.dsn.port) for one in each.servers),
                tuple(one.name for one in each.consumers),
                each.labels,
            )
            for each in roster.clusters
        ),
        roster.policy,
    )


def write_fleet_archive(archive: Path, fleet: ExpectedFleet) -> None:
    """Write the archive, or replace it. Raises OSError."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        add_file(packed, f"{_MODULE}/__init__.py", _DOCSTRING.encode())
        add_file(packed, f"{_MODULE}/{_FILE}", fleet.to_text().encode())
    replace_file(archive, held.getvalue())


def sent_fleet() -> ExpectedFleet:
    """Return the fleet of the archive that came with this program. Raises FleetNotSent."""
    try:
        module = import_module(_MODULE)
    except ModuleNotFoundError as error:
        raise FleetNotSent(
            f"no {_MODULE} in --py-files; `gtid-audit spark package --fleet FILE` writes it"
        ) from error
    try:
        return ExpectedFleet.from_text(resources.files(module).joinpath(_FILE).read_text("utf-8"))
    except MalformedRecord as problem:
        raise FleetNotSent(
            f"{_MODULE}/{_FILE}: {problem}. Write it with the gtid-audit of this package"
        ) from problem
