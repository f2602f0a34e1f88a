"""A Docker engine: the one of the machine, or a private one from Debian's packages.

1. The machine's engine is used if it answers (``DOCKER_HOST``, or the default socket).
2. The private engine is started by hand only: ``python -m compose.containers.engine start``. Its
   programs are unpacked into the cache, and nothing is installed.
3. It leaves nothing behind: its mounts are in a mount namespace of its own, it creates no default
   bridge, no rule of iptables and no forwarding. Its data, socket and pid file are in one folder.
4. This module does not know what the containers are.

Without rules of iptables a container cannot reach other machines, and ports are published by
docker-proxy. Both suit a test engine: its images are made without a registry.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from compose.native.apt import unpack_packages
from compose.native.cache import Progress, build_once, cache_root, silent
from compose.native.installation import ProviderMissing, require_tool

_PACKAGES = ("docker.io", "containerd", "runc", "iptables")
_COMPOSE_SUITE = "sid"  # the compose of Debian 12 and older is 1.x, which reads other files
_DEFAULT_SOCKET = Path("/var/run/docker.sock")
_SOCKET_BYTES_MAX = 107  # sun_path, unix(7)
_START_SECONDS_MAX = 60.0
_STOP_SECONDS_MAX = 60.0
_ASK_SECONDS_MAX = 20.0
_POLL_SECONDS = 0.1
_BRINGS_ONE = (
    "start Docker, set DOCKER_HOST, or run `make engine` (root, on Debian) for a private engine"
)


def engine_root() -> Path:
    """Return the private engine's folder: ``GTID_AUDIT_DOCKER_ENGINE``, or one in the cache."""
    named = os.environ.get("GTID_AUDIT_DOCKER_ENGINE")
    return Path(named).absolute() if named else cache_root() / "engine"


def private_socket() -> Path:
    """Return the socket of the private engine, whether it runs or not."""
    return engine_root() / "docker.sock"


def docker_program() -> str:
    """Return the ``docker`` client: of the machine, or of the unpacked engine.

    Raises ProviderMissing if there is neither.
    """
    unpacked = engine_root() / "bin" / "docker"
    if shutil.which("docker") is None and unpacked.exists():
        return str(unpacked)
    return require_tool(
        "docker", brought_by="apt-get install docker.io, or `make engine`", needed_for="containers"
    )


def docker_environment() -> dict[str, str]:
    """Return the variables with which every docker client reaches the engine that answers.

    Raises ProviderMissing, within seconds, if none answers.
    """
    client = docker_program()
    hosts = [os.environ["DOCKER_HOST"]] if "DOCKER_HOST" in os.environ else []
    hosts += [f"unix://{each}" for each in (_DEFAULT_SOCKET, private_socket()) if each.exists()]
    for host in hosts:
        environment = {**os.environ, "DOCKER_HOST": host}
        if _answers(client, environment):
            return environment
    raise ProviderMissing(f"no Docker engine answers; {_BRINGS_ONE}")


def _answers(client: str, environment: dict[str, str]) -> bool:
    try:
        asked = subprocess.run(
            [client, "version", "--format", "{{.Server.Version}}"],
            env=environment,
            capture_output=True,
            check=False,
            timeout=_ASK_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0


def compose_command(*, progress: Progress = silent) -> list[str]:
    """Return the command of Docker Compose 2: the plugin, ``docker-compose``, or Debian's package.

    Raises ProviderMissing if there is none and it cannot be unpacked.
    """
    candidates = [[docker_program(), "compose"]]
    if (standalone := shutil.which("docker-compose")) is not None:
        candidates.append([standalone])
    for candidate in candidates:
        if _is_compose_2(candidate):
            return candidate

    def build(folder: Path) -> None:
        work = cache_root() / "download" / "compose"
        unpack_packages(
            ("docker-compose",), suite=_COMPOSE_SUITE, into=folder, work=work, progress=progress
        )
        shutil.rmtree(work)

    prefix = build_once(f"docker-compose-{_COMPOSE_SUITE}-debian", build, progress=progress)
    # Built for a newer C library than the machine's: its own loader starts it.
    libraries = sorted((prefix / "usr" / "lib").glob("*-linux-gnu"))
    loaders = [path for folder in libraries for path in sorted(folder.glob("ld-linux*.so.*"))]
    command = [
        *(str(loaders[0]), "--library-path", ":".join(map(str, libraries))),
        str(prefix / "usr" / "libexec" / "docker" / "cli-plugins" / "docker-compose"),
    ]
    if not _is_compose_2(command):
        raise ProviderMissing("no Docker Compose 2; install docker-compose-plugin (Docker's)")
    return command


def _is_compose_2(command: list[str]) -> bool:
    asked = subprocess.run(
        [*command, "version", "--short"], capture_output=True, text=True, check=False
    )
    return asked.returncode == 0 and not asked.stdout.strip().lstrip("v").startswith("1.")


# ---- the private engine


def start(progress: Progress = silent) -> str:
    """Start the private engine and return its address for ``DOCKER_HOST``.

    Takes 15 s the first time, 2 s later. Raises ProviderMissing if it cannot start.
    """
    root = engine_root()
    root.mkdir(parents=True, exist_ok=True)
    address = f"unix://{private_socket()}"
    if _pid() is not None:
        return address
    if os.geteuid() != 0:
        raise ProviderMissing("the private Docker engine needs root; install docker.io instead")
    if len(str(private_socket()).encode()) > _SOCKET_BYTES_MAX:
        raise ProviderMissing(f"{root} is too long for a socket; set GTID_AUDIT_DOCKER_ENGINE")
    environment = _unpacked(root, progress)
    unshare = require_tool("unshare", brought_by="util-linux", needed_for="the Docker engine")
    command = [
        *(unshare, "--mount", "--propagation=private", str(root / "bin" / "dockerd")),
        f"--data-root={root / 'data'}",
        f"--exec-root={root / 'exec'}",
        f"--pidfile={root / 'dockerd.pid'}",
        f"--host={address}",
        *("--bridge=none", "--iptables=false", "--ip6tables=false"),
        *("--ip-forward=false", "--ip-masq=false", "--log-level=warn"),
    ]
    log = root / "dockerd.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    deadline = time.monotonic() + _START_SECONDS_MAX
    while not _answers(str(root / "bin" / "docker"), {**os.environ, "DOCKER_HOST": address}):
        if process.poll() is not None or time.monotonic() > deadline:
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            raise ProviderMissing(f"dockerd did not start; the end of {log}:\n{tail}")
        time.sleep(_POLL_SECONDS)
    return address


def _unpacked(root: Path, progress: Progress) -> dict[str, str]:
    """Unpack the programs of the machine's own Debian release; return what they run with."""
    suite = _release()

    def build(folder: Path) -> None:
        work = cache_root() / "download" / "engine"
        unpack_packages(_PACKAGES, suite=suite, into=folder, work=work, progress=progress)
        shutil.rmtree(work)

    prefix = build_once(f"docker-{suite}-debian", build, progress=progress)
    programs = root / "bin"
    shutil.rmtree(programs, ignore_errors=True)
    programs.mkdir()
    for folder in ("usr/sbin", "usr/bin"):
        for name in ("docker*", "containerd*", "runc"):
            for program in (prefix / folder).glob(name):
                (programs / program.name).unlink(missing_ok=True)  # runc is in both folders
                (programs / program.name).symlink_to(program)
    for name in ("iptables", "ip6tables"):  # which of its names it was started by decides
        (programs / name).symlink_to(prefix / "usr" / "sbin" / "xtables-nft-multi")
    libraries = sorted(path for path in prefix.glob("*/*-linux-gnu") if path.is_dir())
    libraries += sorted(path for path in prefix.glob("usr/lib/*-linux-gnu") if path.is_dir())
    return {
        **os.environ,
        "PATH": f"{programs}:{os.environ.get('PATH', os.defpath)}",
        # Of the machine's own release, so it may replace any library of the machine.
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "XTABLES_LIBDIR": str(libraries[-1] / "xtables"),
    }


def _release() -> str:
    """Return the code name of the machine's Debian release; sid has none of its own."""
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except FileNotFoundError:
        lines = []
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    if fields.get("ID") != "debian":
        raise ProviderMissing("the private Docker engine needs Debian; install Docker instead")
    return fields.get("VERSION_CODENAME", "sid").strip('"')


def stop() -> None:
    """End the private engine and its containers, and remove its data. Do nothing if none runs.

    Raises ProviderMissing if it does not end, with its pid.
    """
    root = engine_root()
    pid = _pid()
    if pid is not None:
        environment = {**os.environ, "DOCKER_HOST": f"unix://{private_socket()}"}
        client = str(root / "bin" / "docker")
        listed = _output([client, "ps", "--all", "--quiet"], environment)
        if listed:
            _output([client, "rm", "--force", "--volumes", *listed], environment)
        _output([client, "network", "prune", "--force"], environment)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS_MAX
        while _pid() is not None:
            if time.monotonic() > deadline:
                raise ProviderMissing(f"dockerd (process {pid}) does not end")
            time.sleep(_POLL_SECONDS)
    for folder in ("data", "exec", "bin"):
        if (root / folder).exists():
            shutil.rmtree(root / folder)
    for file in ("dockerd.log", "dockerd.pid", "docker.sock"):
        (root / file).unlink(missing_ok=True)


def _output(command: list[str], environment: dict[str, str]) -> list[str]:
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout.split()


def _pid() -> int | None:
    """Return the process of the private engine; a pid file that another process has is stale."""
    try:
        pid = int((engine_root() / "dockerd.pid").read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return None
    return pid if f"--data-root={engine_root() / 'data'}".encode() in command else None


def main(arguments: list[str] | None = None) -> int:
    """``start``, ``stop``, or ``status``: exit status 0 only if an engine answers, or has ended."""
    parser = argparse.ArgumentParser(prog="compose.containers.engine", description=__doc__)
    parser.add_argument("action", choices=("start", "stop", "status"))
    action = parser.parse_args(arguments).action
    try:
        if action == "start":
            address = start(lambda line: print(line, file=sys.stderr, flush=True))
            print(f"export DOCKER_HOST={address}")
        elif action == "stop":
            stop()
        else:
            print(docker_environment()["DOCKER_HOST"])
    except ProviderMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
