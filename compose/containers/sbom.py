"""Prints what an image contains, as a CycloneDX document: Python and Debian packages.

It runs inside the image that it describes, so it imports the standard library only. The output has
no time and no random number: the same image gives the same bytes.
"""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from urllib.parse import quote

DEBIAN_LIST = Path("/usr/share/gtid-audit/debian-packages.txt")
"""Of images made from packages: ``name version`` a line. Other images have dpkg's status file."""
_DPKG_STATUS = Path("/var/lib/dpkg/status")


def sbom_of(folder: Path, *, debian_list: Path, dpkg_status: Path) -> dict[str, Any]:
    """Return the CycloneDX document of the distributions in ``folder`` and of the system below."""
    found = sorted({*_python_packages(folder), *_debian_packages(debian_list, dpkg_status)})
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "container", "name": "gtid-audit"}},
        "components": [
            {"type": "library", "name": name, "version": version, "purl": purl, "bom-ref": purl}
            for purl, name, version in found
        ],
    }


def _python_packages(folder: Path) -> Iterator[tuple[str, str, str]]:
    for each in distributions(path=[str(folder)]):
        name = each.metadata["Name"]
        wanted = name.lower().replace("_", "-").replace(".", "-")  # the purl form of PyPI
        yield f"pkg:pypi/{wanted}@{quote(each.version)}", name, each.version


def _debian_packages(debian_list: Path, dpkg_status: Path) -> Iterator[tuple[str, str, str]]:
    if debian_list.exists():
        pairs = [line.split() for line in debian_list.read_text().splitlines()]
    elif dpkg_status.exists():
        stanzas = dpkg_status.read_text(errors="replace").split("\n\n")
        fields = [
            dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line)
            for stanza in stanzas
        ]
        pairs = [[each["Package"], each["Version"]] for each in fields if "Version" in each]
    else:
        pairs = []
    for name, version in pairs:
        yield f"pkg:deb/debian/{quote(name)}@{quote(version)}", name, version


if __name__ == "__main__":
    document = sbom_of(Path(sys.argv[1]), debian_list=DEBIAN_LIST, dpkg_status=_DPKG_STATUS)
    json.dump(document, sys.stdout, indent=1)
