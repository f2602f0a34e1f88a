"""Images made from Debian packages, for machines that reach no registry.

1. Packages and their dependencies are unpacked into a folder; what an image does not need is left
   out, and ``docker import`` makes one layer of the rest. No package script runs.
2. Each image takes the place of an official one and is called in the same way: ``mysqld`` with
   options, ``prometheus`` with options. Its name goes into the variable of the official one.
3. Grafana is not in Debian: there is no image of it here.
"""

import hashlib
import io
import shutil
import subprocess
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from compose.containers.engine import docker_environment, docker_program
from compose.containers.sbom import DEBIAN_LIST
from compose.native.apt import unpack_packages
from compose.native.cache import Progress, build_once, cache_root, silent
from compose.native.installation import ProviderMissing

_COMPOSE = Path(__file__).resolve().parents[1]
_NEVER = (
    *("boot", "dev", "proc", "sys", "media", "mnt", "srv", "usr/include", "usr/src", "usr/games"),
    *("usr/share/man", "usr/share/info", "usr/share/locale", "usr/share/lintian", "usr/share/perl"),
    *("usr/share/perl5", "usr/share/bug", "usr/share/polkit-1", "var/lib", "var/cache"),
    *("etc/init.d", "lib/systemd", "usr/lib/systemd", "usr/share/bash-completion"),
)
_TEMPORARY = ("tmp", "var/tmp")
_CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
_WRITTEN = (*_TEMPORARY, "etc/passwd", "etc/group", _CERTIFICATES)
_LICENCES = {"copyright"}
_PARTS_OF_PACKAGE_FOLDER = 4  # usr/share/doc/NAME
_ROOT_USER = "root:x:0:0:root:/root:/bin/sh\n"


@dataclass(frozen=True, slots=True)
class PackageImage:
    """An image: its packages, what is kept of them, what is added, and how it is called."""

    name: str
    variable: str
    """The variable of docker-compose.yml and of the Dockerfile that takes the image's name."""
    packages: tuple[str, ...]
    suite: str
    only: tuple[str, ...] = ()
    """Paths that are kept, with what is below them; empty: all."""
    users: str = ""
    """Lines of ``/etc/passwd`` and ``/etc/group``: ``name:number`` separated by spaces."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """Empty folders to make, each with the user that owns it."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Executable files to add."""
    links: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    """Instructions of a Dockerfile: USER, ENTRYPOINT, CMD, ENV."""


_C_LIBRARY = ("lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "lib/ld-linux-aarch64.so.1")
_SERVICE = ("usr/share/gtid-audit", "usr/share/doc", "etc/ssl", "usr/share/zoneinfo", *_C_LIBRARY)
_PYTHON = (
    *("python3-minimal", "libpython3-stdlib", "ca-certificates", "base-files", "dash"),
    "libstdc++6",  # of NumPy and PyArrow
)
_MONITORING = ("prometheus", "prometheus-alertmanager", "tzdata")
_SERVICE_USER = "service:65534"

# Python and Prometheus are of Debian 12: its Python 3.11 is the one that requirements/ is locked
# for. MySQL is in sid only.
PACKAGE_IMAGES = (
    PackageImage(
        name="gtid-audit/mysql:debian",
        variable="MYSQL_IMAGE",
        packages=(
            *("mysql-server-core", "mysql-client-core"),
            *("base-files", "dash", "coreutils", "sed", "grep"),
        ),
        suite="sid",
        users="mysql:999",
        folders={
            "var/lib/mysql": "mysql",
            "var/lib/mysql-files": "mysql",
            "run/mysqld": "mysql",
        },
        links={"var/run": "/run"},  # a script of the package would make it
        files={"usr/local/bin/docker-entrypoint.sh": _COMPOSE / "mysql" / "entrypoint.sh"},
        changes=('ENTRYPOINT ["docker-entrypoint.sh"]', 'CMD ["mysqld"]', "EXPOSE 3306"),
    ),
    PackageImage(
        name="gtid-audit/python:debian",
        variable="PYTHON_IMAGE",
        packages=_PYTHON,
        suite="bookworm",
        links={"usr/bin/python": "python3.11", "usr/bin/python3": "python3.11"},
        changes=('CMD ["python3"]',),
    ),
    PackageImage(
        name="gtid-audit/python-build:debian",
        variable="BUILD_IMAGE",
        packages=(*_PYTHON, "python3-pip", "coreutils", "sed", "binutils"),
        suite="bookworm",
        links={"usr/bin/python": "python3.11", "usr/bin/python3": "python3.11"},
        changes=('CMD ["python3"]',),
    ),
    PackageImage(
        name="gtid-audit/prometheus:debian",
        variable="PROMETHEUS_IMAGE",
        packages=_MONITORING,
        suite="bookworm",
        only=("usr/bin/prometheus", "usr/bin/promtool", "usr/share/prometheus/web", *_SERVICE),
        users=_SERVICE_USER,
        folders={"prometheus": "service", "etc/prometheus": "root"},
        links={"bin/prometheus": "../usr/bin/prometheus", "bin/promtool": "../usr/bin/promtool"},
        changes=("USER 65534:65534", 'ENTRYPOINT ["/usr/bin/prometheus"]', "WORKDIR /prometheus"),
    ),
    PackageImage(
        name="gtid-audit/alertmanager:debian",
        variable="ALERTMANAGER_IMAGE",
        packages=_MONITORING,
        suite="bookworm",
        only=(
            *("usr/bin/prometheus-alertmanager", "usr/bin/amtool", *_SERVICE),
            "usr/share/prometheus/alertmanager",
        ),
        users=_SERVICE_USER,
        folders={"alertmanager": "service"},
        links={
            "bin/alertmanager": "../usr/bin/prometheus-alertmanager",
            "bin/amtool": "../usr/bin/amtool",
        },
        changes=(
            "USER 65534:65534",
            'ENTRYPOINT ["/usr/bin/prometheus-alertmanager"]',
            "WORKDIR /alertmanager",
        ),
    ),
)


def _entry_of(image: PackageImage) -> str:
    """Return the folder in the cache; images of the same packages share it."""
    digest = hashlib.sha256(repr((image.packages, image.suite)).encode()).hexdigest()[:8]
    return f"image-{image.packages[0]}-{digest}"


def build_package_image(image: PackageImage, *, progress: Progress = silent) -> None:
    """Make one image; packages are fetched once and the image is made anew. Takes 5 to 40 s.

    Raises ProviderMissing if packages or the engine are missing.
    """
    environment = docker_environment()

    def build(folder: Path) -> None:
        work = cache_root() / "download" / _entry_of(image)
        unpack_packages(
            image.packages, suite=image.suite, into=folder, work=work, progress=progress
        )
        listed = [path.name.split("_")[:2] for path in (work / "archives").glob("*.deb")]
        packages = folder / str(DEBIAN_LIST).lstrip("/")
        packages.parent.mkdir()
        packages.write_text("".join(f"{name} {unquote(ver)}\n" for name, ver in sorted(listed)))
        shutil.rmtree(work)

    prefix = build_once(_entry_of(image), build, progress=progress)
    progress(f"making {image.name}")
    labels = (
        f"LABEL org.opencontainers.image.title={image.name.partition(':')[0]}",
        f"LABEL org.opencontainers.image.description='Debian {image.suite}: {image.packages[0]}'",
    )
    changes = [part for each in (*image.changes, *labels) for part in ("--change", each)]
    command = [docker_program(), "import", *changes, "-", image.name]
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        with tarfile.open(fileobj=process.stdin, mode="w|") as tar:
            _write(image, prefix, tar)
        process.stdin.close()
        complaint = process.stderr.read().decode(errors="replace")
    if process.returncode != 0:
        raise ProviderMissing(f"{image.name} cannot be made: {complaint.strip()}")


def _write(image: PackageImage, prefix: Path, tar: tarfile.TarFile) -> None:
    """Write the layer; every file of a package belongs to root in it."""
    added = {*image.folders, *image.links, *image.files, *_WRITTEN}

    def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if member.name in added or not _is_kept(image, member.name):
            return None
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        return member

    for entry in sorted(prefix.iterdir()):
        tar.add(entry, arcname=entry.name, filter=kept)
    users = dict(each.split(":") for each in image.users.split())
    numbers = {"root": 0} | {name: int(number) for name, number in users.items()}
    for path, owner in image.folders.items():
        folder = tarfile.TarInfo(path)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        folder.uid = folder.gid = numbers[owner]
        tar.addfile(folder)
    for folder_name in _TEMPORARY:
        folder = tarfile.TarInfo(folder_name)
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        tar.addfile(folder)
    for path, target in image.links.items():
        link = tarfile.TarInfo(path)
        link.type, link.linkname = tarfile.SYMTYPE, target
        tar.addfile(link)
    passwd = _ROOT_USER + "".join(f"{n}:x:{i}:{i}::/:/sbin/nologin\n" for n, i in users.items())
    group = "root:x:0:\n" + "".join(f"{name}:x:{number}:\n" for name, number in users.items())
    _add(tar, "etc/passwd", passwd.encode())
    _add(tar, "etc/group", group.encode())
    # A script of the package would join them.
    certificates = sorted((prefix / "usr/share/ca-certificates").rglob("*.crt"))
    if certificates:
        joined = b"".join(path.read_bytes() for path in certificates)
        _add(tar, _CERTIFICATES, joined)
    for path, source in image.files.items():
        _add(tar, path, source.read_bytes(), mode=0o755)


def _is_kept(image: PackageImage, path: str) -> bool:
    if any(path == each or path.startswith(f"{each}/") for each in _NEVER):
        return False
    if path.startswith("usr/share/doc/") and Path(path).name not in _LICENCES:
        return len(Path(path).parts) <= _PARTS_OF_PACKAGE_FOLDER
    return not image.only or any(
        path == each or path.startswith(f"{each}/") or each.startswith(f"{path}/")
        for each in image.only
    )


def _add(tar: tarfile.TarFile, path: str, content: bytes, *, mode: int = 0o644) -> None:
    file = tarfile.TarInfo(path)
    file.size, file.mode, file.mtime = len(content), mode, int(time.time())
    tar.addfile(file, io.BytesIO(content))
