"""One mysqld in a container, in the place of a process: started, signalled, paused, ended.

1. It takes the host's network and the run folder at its own path. So address, data directory,
   socket and error log are those of a server without a container, and the tests do not differ.
2. Its signals are those of `docker kill`; SIGSTOP and SIGCONT are `docker pause` and `unpause`.
3. It ends with the run, however that ends: a loop beside mysqld watches the run folder's lock, and
   Docker removes a container that has ended. So testcontainers needs no Ryuk, whose image would
   have to be pulled.
"""

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docker.errors import APIError, NotFound
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from compose.containers.engine import docker_environment, docker_program
from compose.native.cache import cache_root
from compose.native.installation import Installation, ProviderMissing, probe_version
from compose.native.processes import Supervisor

_ENDED = 0
_CONFLICT = 409  # the container is not in a state for this: it has just ended
_POLL_SECONDS = 0.02
# $0 is mysqld, $@ its options; exec keeps the shell's number. The log is appended to, like a
# process's: Server reads what each start added. A killed server leaves the lock of its socket, with
# its number in a container that is gone; if a process of this container has that number, mysqld
# does not start ("Another process with pid 8 is using unix socket file", seen on 9.7.4).
_SCRIPT = """\
server=$$
rm -f data/*.sock.lock
(while [ -e "$RUN_LOCK" ]; do sleep 1; done; kill -9 $server) &
exec "$0" "$@" >> "$RUN_OUTPUT" 2>&1
"""
_MIN_VERSION = (8, 0, 22)  # START REPLICA, and the error log as a table

testcontainers_config.ryuk_disabled = True


def image_installation(image: str) -> Installation:
    """Return the server of an image: any name that `docker run` takes.

    The image is pulled if it is not here. Raises ProviderMissing if no engine answers, or the image
    cannot be had or is too old.
    """
    environment = docker_environment()
    cache = cache_root()
    mysqld = (
        *(docker_program(), "run", "--rm", "--network=none", "--entrypoint=mysqld"),
        *(f"--user={os.geteuid()}:{os.getegid()}", f"--volume={cache}:{cache}", image),
    )
    only_engine = {"DOCKER_HOST": environment["DOCKER_HOST"]}
    version = probe_version(mysqld, only_engine)
    if version < _MIN_VERSION:
        raise ProviderMissing(f"{image} is {'.'.join(map(str, version))}; at least 8.0 is needed")
    return Installation(
        provider=f"container image {image}",
        version=version,
        mysqld=mysqld,
        environment=only_engine,
        image=image,
    )


@dataclass(frozen=True, slots=True)
class ServerContainer:
    """A container that runs a server. It has the methods of `processes.Child`."""

    container: DockerContainer
    pid: int

    def status(self) -> int | None:
        """Return None while it runs or is paused, then 0: its exit status goes with it."""
        return None if self._state() in {"running", "paused"} else _ENDED

    def is_stopped(self) -> bool:
        """Return whether it is paused."""
        return self._state() == "paused"

    def send(self, number: signal.Signals) -> None:
        """Pause, continue or signal it; do nothing if it has ended."""
        wrapped = self.container.get_wrapped_container()
        try:
            if number is signal.SIGSTOP:
                wrapped.pause()
            elif number is not signal.SIGCONT:
                wrapped.kill(signal=number.name)
            elif self.is_stopped():
                wrapped.unpause()
        except NotFound:
            return
        except APIError as failure:
            if failure.status_code != _CONFLICT:
                raise

    def wait(self, *, timeout_seconds_max: float) -> int:
        """Wait until Docker has removed it. Raises TimeoutError if it has not by then."""
        deadline = time.monotonic() + timeout_seconds_max
        while self._state() != "removed":
            if time.monotonic() > deadline:
                raise TimeoutError(f"container of {self.pid} still runs or is not removed")
            time.sleep(_POLL_SECONDS)
        self.container.get_docker_client().client.close()
        return _ENDED

    def _state(self) -> str:
        wrapped = self.container.get_wrapped_container()
        try:
            wrapped.reload()
        except NotFound:
            return "removed"
        return str(wrapped.status)


def start_container(
    supervisor: Supervisor,
    installation: Installation,
    command: Sequence[str],
    *,
    folder: Path,
    output: Path,
) -> ServerContainer:
    """Start a server in a container; ``command`` begins with the installation's ``mysqld``."""
    run = str(supervisor.folder)
    variables: Mapping[str, str] = {
        "RUN_LOCK": str(supervisor.folder / "lock"),
        "RUN_OUTPUT": str(output),
    }
    options: dict[str, Any] = {
        "entrypoint": ["sh", "-c", _SCRIPT],
        "network_mode": "host",
        "user": f"{os.geteuid()}:{os.getegid()}",
        "working_dir": str(folder),
        "init": True,  # mysqld is not process 1, which ignores the kill of the loop
        "auto_remove": True,
        "labels": {"gtid-audit.run": run},
    }
    output.touch()
    container = (
        DockerContainer(
            installation.image,
            docker_client_kw={"environment": {**os.environ, **installation.environment}},
        )
        .with_envs(**variables)
        .with_volume_mapping(run, run, "rw")
        .with_command(["mysqld", *command[len(installation.mysqld) :]])
        .with_kwargs(**options)
    )
    container.start()
    wrapped = container.get_wrapped_container()
    try:
        wrapped.reload()
        pid = int(wrapped.attrs["State"]["Pid"])
    except NotFound:
        pid = 0  # it has ended already; the caller finds why in its log
    return ServerContainer(container, pid)
