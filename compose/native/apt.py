"""Unpacks Debian packages into a folder, with a separate apt state.

1. From the machine's package configuration only the mirrors are read. Ubuntu's has none of Debian:
   GTID_AUDIT_DEBIAN_MIRROR names one. Debian's keyring, which Ubuntu has too, verifies it.
2. No hook of the machine's apt configuration runs; its proxy and certificates are still used.
3. apt verifies signatures and hashes, exactly as the machine is configured.
4. This module does not know what the packages are.
"""

import os
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from compose.native.cache import Progress
from compose.native.installation import ProviderMissing, require_tool

_SUITES = frozenset(
    {"sid", "unstable", "testing", "stable", "oldstable"}
    | {"bullseye", "bookworm", "trixie", "forky", "duke"}
)
_NAMED_MIRROR = "GTID_AUDIT_DEBIAN_MIRROR"
DEBIAN_KEYRING: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<rest>.+)")
_INSTALL = re.compile(r"^Inst (?P<name>\S+) \((?P<version>\S+) ", re.MULTILINE)

_CONFIGURATION = """\
#clear APT::Update;
#clear APT::Default-Release;
#clear APT::Sandbox::User;
#clear DPkg;
APT::Sandbox::User "root";
Dir::State "{state}/state";
Dir::State::status "/dev/null";
Dir::Cache "{state}/cache";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "{state}/sources";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Acquire::Languages "none";
Acquire::Retries "3";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
"""
# The hooks are cleared because they change the machine (some images delete its package cache).
# The sandbox user may not be able to enter the project's folder, so apt keeps its own user.


@dataclass(frozen=True, slots=True)
class Mirror:
    """A Debian mirror that the machine already trusts, with its signature settings."""

    uri: str
    trust: tuple[tuple[str, str], ...] = ()
    """``Signed-By`` and ``Trusted`` exactly as configured; keys may be a path or a whole key."""

    def source_for(self, suite: str) -> str:
        """Return a deb822 source entry for the main component of a suite."""
        fields = [("Types", "deb"), ("URIs", self.uri), ("Suites", suite), ("Components", "main")]
        return "".join(f"{name}: {value}\n" for name, value in [*fields, *self.trust])


def configured_mirrors(etc: Path = Path("/etc/apt")) -> list[Mirror]:
    """Read the machine's apt sources, in both formats; return its Debian mirrors, best first."""
    found: dict[str, Mirror] = {}
    one_line = [etc / "sources.list", *sorted((etc / "sources.list.d").glob("*.list"))]
    for path in one_line:
        for mirror in parse_one_line(path.read_text() if path.is_file() else ""):
            found.setdefault(mirror.uri, mirror)
    for path in sorted((etc / "sources.list.d").glob("*.sources")):
        for mirror in parse_deb822(path.read_text()):
            found.setdefault(mirror.uri, mirror)
    # Others also publish for Debian's suites. Debian's own archive is the folder named debian.
    return sorted(found.values(), key=lambda mirror: not mirror.uri.endswith("/debian"))


def named_mirror(environ: Mapping[str, str], keyring: Path = DEBIAN_KEYRING) -> Mirror | None:
    """Return the mirror that the environment names, verified by Debian's keyring. None if none is.

    Raises ProviderMissing if the keyring is not installed.
    """
    uri = environ.get(_NAMED_MIRROR)
    if not uri:
        return None
    if not keyring.is_file():
        raise ProviderMissing(
            f"{keyring} verifies {_NAMED_MIRROR}; try: apt-get install {keyring.stem}"
        )
    return Mirror(uri.rstrip("/"), (("Signed-By", str(keyring)),))


def parse_one_line(text: str) -> list[Mirror]:
    """Return the Debian mirrors of a ``sources.list``: ``deb [options] uri suite component…``."""
    mirrors = []
    for line in text.splitlines():
        entry = _ONE_LINE.match(line.split("#", 1)[0].strip())
        if entry is None:
            continue
        suite, *components = entry["rest"].split()
        options = dict(
            option.split("=", 1) for option in (entry["options"] or "").split() if "=" in option
        )
        trust = _trust({name.lower(): value for name, value in options.items()})
        mirrors += _debian([entry["uri"]], [suite], components, trust)
    return mirrors


def parse_deb822(text: str) -> list[Mirror]:
    """Return the Debian mirrors of a ``.sources`` file; continuation lines belong to a field."""
    mirrors = []
    for stanza in re.split(r"\n\s*\n", text):
        fields: dict[str, str] = {}
        last = ""
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            if line[:1].isspace() and last:
                fields[last] += "\n" + line
            elif ":" in line:
                name, value = line.split(":", 1)
                last = name.strip().lower()
                fields[last] = value.strip()
        if fields.get("enabled", "yes").lower() in {"no", "false"}:
            continue
        if "deb" in fields.get("types", "").split():
            mirrors += _debian(
                fields.get("uris", "").split(),
                fields.get("suites", "").split(),
                fields.get("components", "").split(),
                _trust(fields),
            )
    return mirrors


def _trust(fields: dict[str, str]) -> tuple[tuple[str, str], ...]:
    names = (("signed-by", "Signed-By"), ("trusted", "Trusted"))
    return tuple((shown, fields[name]) for name, shown in names if name in fields)


def _debian(
    uris: Iterable[str],
    suites: Iterable[str],
    components: Sequence[str],
    trust: tuple[tuple[str, str], ...],
) -> list[Mirror]:
    if "main" not in components or not _SUITES & set(suites):
        return []
    return [Mirror(uri.rstrip("/"), trust) for uri in uris]


def unpack_packages(
    packages: Sequence[str], *, suite: str, into: Path, work: Path, progress: Progress
) -> None:
    """Unpack packages and all their dependencies, including the C library, below ``into``.

    ``work`` keeps apt's state and the downloads; complete packages in it are not fetched again.
    Raises ProviderMissing if a tool, a mirror or a package is not available.
    """
    for tool, package in (("apt-get", "apt"), ("dpkg-deb", "dpkg")):
        require_tool(tool, brought_by=f"a Debian system ({package})", needed_for=packages[0])
    named = named_mirror(os.environ)
    mirrors = configured_mirrors() if named is None else [named]
    if not mirrors:
        raise ProviderMissing(
            "no Debian mirror in the machine's apt sources: set GTID_AUDIT_DEBIAN_MIRROR to the URI"
            f" of one (needs the package {DEBIAN_KEYRING.stem}), or GTID_AUDIT_MYSQLD to a MySQL"
            " server"
        )
    refusals = []
    for mirror in mirrors:
        try:
            archives = _fetch(packages, mirror=mirror, suite=suite, work=work, progress=progress)
        except ProviderMissing as refusal:
            refusals.append(str(refusal))
            continue
        progress(f"unpacking {len(archives)} packages")
        for archive in archives:
            _run(["dpkg-deb", "--extract", str(archive), str(into)])
        return
    raise ProviderMissing("\n".join(refusals))


def _fetch(
    packages: Sequence[str], *, mirror: Mirror, suite: str, work: Path, progress: Progress
) -> list[Path]:
    """Return the archives of the dependency closure; none is installed on the machine."""
    for folder in ("state/lists/partial", "cache/archives/partial", "sources", "archives"):
        (work / folder).mkdir(parents=True, exist_ok=True)
    (work / "sources" / "suite.sources").write_text(mirror.source_for(suite))
    configuration = work / "apt.conf"
    configuration.write_text(_CONFIGURATION.format(state=work))
    apt = ["apt-get", "--config-file", str(configuration), "--quiet=2"]
    progress(f"reading the package lists of Debian {suite}")
    _run([*apt, "update"])
    simulated = _run([*apt, "install", "--simulate", "--no-install-recommends", *packages])
    wanted = [f"{found['name']}={found['version']}" for found in _INSTALL.finditer(simulated)]
    if not wanted:
        raise ProviderMissing(f"Debian {suite} at this machine's mirror has no {packages[0]}")
    progress(f"fetching {len(wanted)} packages")
    archives = work / "archives"
    kept = {path.name: path for path in archives.glob("*.deb")}
    _run([*apt, "download", *wanted], cwd=archives)
    fetched = sorted(archives.glob("*.deb"))
    # An interrupted run may have left archives of an older closure here.
    names = {entry.split("=", 1)[0].split(":", 1)[0] for entry in wanted}
    versions = {entry.split("=", 1)[1].replace(":", "%3a") for entry in wanted}
    chosen = [
        path
        for path in fetched
        if path.name.split("_")[0] in names and path.name.split("_")[1] in versions
    ]
    assert len(chosen) >= len(names), (len(chosen), len(names), len(kept))
    return chosen


def _run(command: list[str], *, cwd: Path | None = None) -> str:
    answer = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise ProviderMissing(f"{' '.join(command[:1])} failed: {answer.stderr.strip()}")
    return answer.stdout
