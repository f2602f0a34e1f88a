"""Builds the image of the auditor with the wheels of the lock, so that the build needs no network.

The wheels are fetched by pip on this machine, by version and hash. Registries, proxies and
certificates are those that pip is configured for here; none of them is in the image.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

from compose.containers.engine import docker_environment, docker_program
from compose.native.cache import Progress, build_once, cache_root, locked, silent
from compose.native.installation import ProviderMissing

AUDITOR_IMAGE = "gtid-audit:latest"
_ROOT = Path(__file__).resolve().parents[2]
_SOURCES = ("gtid", "binlog", "topology", "repair", "spark_audit", "gtid_audit")
_FILES = ("pyproject.toml", "README.md", "LICENSE", "requirements/lock.txt")
_INSTALLED = re.compile(r'"gtid-audit\[([a-z,]+)\]"')
_LOCKED = re.compile(r"^(?P<name>[A-Za-z0-9_.-]+)==[^\\\n]*(?:\\\n[^\\\n]*)*", re.MULTILINE)


def build_auditor_image(
    arguments: Mapping[str, str], *, name: str = AUDITOR_IMAGE, progress: Progress = silent
) -> None:
    """Build the image on the images in ``arguments`` (PYTHON_IMAGE, BUILD_IMAGE). Takes a minute.

    Raises ProviderMissing if wheels cannot be fetched or the engine does not build.
    """
    context = cache_root() / "image-auditor-context"
    with locked(cache_root() / "locks" / "image-auditor.lock", progress):
        shutil.rmtree(context, ignore_errors=True)
        _fill(context)
        progress("fetching wheels")
        shutil.copytree(_wheels(), context / "wheels")
        _run(
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"),
            *("--wheel-dir", str(context / "wheels"), str(context)),
        )
        progress(f"building {name}")
        options = [part for item in arguments.items() for part in ("--build-arg", "=".join(item))]
        revision = _run("git", "-C", str(_ROOT), "rev-parse", "HEAD").strip()
        _run(
            *(docker_program(), "build", "--quiet", "--network=none", "--tag", name),
            *("--file", str(context / "compose" / "Dockerfile"), *options),
            *("--build-arg", f"REVISION={revision}", str(context)),
            environment=docker_environment(),
        )
        shutil.rmtree(context)


def _fill(context: Path) -> None:
    """Copy what the Dockerfile uses: not every builder reads Dockerfile.dockerignore."""
    for folder in _SOURCES:
        shutil.copytree(
            _ROOT / folder, context / folder, ignore=shutil.ignore_patterns("__pycache__")
        )
    programs = [f"compose/containers/{name}.py" for name in ("sbom", "slim_packages")]
    for file in (*_FILES, "compose/Dockerfile", *programs):
        (context / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(_ROOT / file, context / file)


def _wheels() -> Path:
    """Return a folder with the wheels of the package's requirements, without its own."""
    lock = (_ROOT / "requirements" / "lock.txt").read_text()
    entries = {canonicalize_name(found["name"]): found[0] for found in _LOCKED.finditer(lock)}
    names = closure()
    unlocked = names - entries.keys()
    if unlocked:
        raise ProviderMissing(f"not in requirements/lock.txt: {', '.join(sorted(unlocked))}")
    wanted = "".join(f"{entries[name].rstrip()}\n" for name in sorted(names))

    def build(folder: Path) -> None:
        requirements = folder / "requirements.txt"
        requirements.write_text(wanted)
        _run(
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"),
            *("--only-binary=:all:", "--python-version=3.11", "--implementation=cp"),
            *("--dest", str(folder), "--requirement", str(requirements)),
        )

    return build_once(f"wheels-{_digest(wanted)}", build)


def closure() -> set[NormalizedName]:
    """Return the names of what the package and its extras need, as installed beside this program.

    The Dockerfile alone lists the extras: its build has no network for what is not fetched here.
    """
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
    installed = _INSTALLED.search((_ROOT / "compose" / "Dockerfile").read_text())
    assert installed is not None, "compose/Dockerfile installs gtid-audit with its extras"
    extras_of = project["optional-dependencies"]
    texts = [text for extra in installed[1].split(",") for text in extras_of[extra]]
    waiting = [Requirement(text) for text in (*project["dependencies"], *texts)]
    found: set[NormalizedName] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found:
            continue
        found.add(name)
        for text in requires(name) or ():
            needed = Requirement(text)
            extras = requirement.extras or {""}
            if needed.marker is None or any(
                needed.marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(needed)
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _run(*command: str, environment: Mapping[str, str] | None = None) -> str:
    answer = subprocess.run(
        command,
        env={**(environment or os.environ), "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    if answer.returncode != 0:
        raise ProviderMissing(f"{' '.join(command[:3])} failed: {answer.stderr.strip()[-2000:]}")
    return answer.stdout
