"""`make up` and `make down`: the servers, the auditor and its monitoring in containers.

1. ``up`` chooses images: the official ones, or those of `make images` where no registry is reached.
   It generates passwords into a folder of the cache, writes the fleet file of the chosen shapes,
   and returns when everything is healthy.
2. ``down`` removes containers, volumes, networks and the passwords. It leaves the images.
3. ``fault NAME`` and ``repair NAME`` run one of FAULTS on the pair; stack_faults.py has them.
4. It needs the standard library only: `make up` works in a clean clone, before `make` installs.
"""

import argparse
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from compose.containers.engine import compose_command, docker_environment, docker_program
from compose.containers.stack_faults import FAULTS, StackFault
from compose.native.cache import cache_root
from compose.native.installation import ProviderMissing

COMPOSE_FOLDER = Path(__file__).resolve().parents[1]
SHAPES = {"pair": ("db1", "db2"), "chain": ("c1",), "multi-source": ("m1", "m2"), "group": ("g1",)}
"""Each shape with the servers that take writes."""
_IMAGES = {
    "MYSQL_IMAGE": ("mysql:8.4", "gtid-audit/mysql:debian"),
    "PROMETHEUS_IMAGE": ("prom/prometheus:v3.5.0", "gtid-audit/prometheus:debian"),
    "ALERTMANAGER_IMAGE": ("prom/alertmanager:v0.28.1", "gtid-audit/alertmanager:debian"),
    "GRAFANA_IMAGE": ("grafana/grafana:12.1.0", ""),
}
"""The official image of each variable, and the one that `make images` makes in its place."""
_SECRETS = ("root", "replication", "auditor_password", "token")
_HEALTHY_SECONDS_MAX = 180.0
_POLL_SECONDS = 1.0


class StackFailed(Exception):
    """The stack did not get healthy, or a command of Docker failed; the message has its output."""


class Stack:
    """One running stack: a Compose project, with a folder of passwords and a fleet file."""

    def __init__(
        self, project: str = "gtid-audit", *, variables: Mapping[str, str] | None = None
    ) -> None:
        self.project = project
        self.folder = cache_root() / "stack" / project
        self._engine = docker_environment()
        self._variables = dict(variables or {})

    def up(self, shapes: Sequence[str], *, load: bool = False) -> list[str]:
        """Start everything and return notes for the operator. Takes 20 to 60 s.

        Raises StackFailed if it is not healthy in time, ProviderMissing if an image is missing.
        """
        images, notes = self._images()
        self._write(shapes)
        profiles = [*shapes, *(["load"] if load else [])]
        if "GRAFANA_IMAGE" in images:
            profiles.append("grafana")
        writers = " ".join(server for shape in shapes for server in SHAPES[shape])
        kept = {**images, "COMPOSE_PROFILES": ",".join(profiles), "LOAD_SERVERS": writers}
        (self.folder / "variables.json").write_text(json.dumps({**kept, **self._variables}))
        try:
            self.compose("up", "--detach", "--quiet-pull")
        except StackFailed as failure:
            raise StackFailed(f"{failure}\n{self._logs_of(self.unhealthy())}") from failure
        self._await_healthy()
        return notes

    def down(self) -> None:
        """Remove containers, volumes, networks, passwords. Do nothing if nothing was started."""
        if not self.folder.exists():
            self._write([])  # the compose file names the files of the secrets
        # "*" selects the services of every profile.
        self._run(
            [*compose_command(), *self._options(), "--profile=*"],
            *("down", "--volumes", "--remove-orphans", "--timeout=5"),
        )
        shutil.rmtree(self.folder)

    def compose(self, *arguments: str) -> str:
        """Run Docker Compose on this stack and return its output. Raises StackFailed."""
        return self._run([*compose_command(), *self._options()], *arguments)

    def docker(self, *arguments: str) -> str:
        """Run the docker client and return its output. Raises StackFailed."""
        return self._run([docker_program()], *arguments)

    def sql(self, server: str, statements: str) -> str:
        """Run statements on a server as root, by the client in its container; return the rows."""
        client = 'MYSQL_PWD=$(cat /run/secrets/root) exec mysql --host=127.0.0.1 --user=root "$@"'
        return self._run(
            [*compose_command(), *self._options()],
            *("exec", "--no-TTY", server, "sh", "-c", client, "mysql", "--batch", "-N"),
            stdin=statements,
        )

    def container(self, service: str) -> str:
        """Return the id of a service's container."""
        return self.compose("ps", "--all", "--quiet", service).strip()

    def addresses(self) -> list[str]:
        """Return one line for each page that is published."""
        lines = []
        for line in self.compose("ps", "--format", "json").splitlines():
            service = json.loads(line)
            lines += [
                f"{service['Service']}: http://{each['URL']}:{each['PublishedPort']}/"
                for each in service["Publishers"] or ()
                if each["PublishedPort"] and service["Image"] != self._variable("MYSQL_IMAGE")
            ]
        return sorted(lines)

    def inject(self, fault: StackFault) -> None:
        """Break the pair."""
        fault.inject(self)

    def repair(self, fault: StackFault) -> None:
        """Undo what ``inject`` did."""
        fault.repair(self)

    # ---- helpers

    def _variable(self, name: str) -> str:
        kept: dict[str, str] = json.loads((self.folder / "variables.json").read_text())
        return kept[name]

    def _options(self) -> list[str]:
        file = str(COMPOSE_FOLDER / "docker-compose.yml")
        return ["--project-name", self.project, "--file", file]

    def _run(self, command: Sequence[str], *arguments: str, stdin: str | None = None) -> str:
        kept = self.folder / "variables.json"
        variables = json.loads(kept.read_text()) if kept.exists() else {}
        answer = subprocess.run(
            [*command, *arguments],
            env={
                **self._engine,
                **variables,
                **self._variables,
                "STACK_FOLDER": str(self.folder),
                "DOCKER_BUILDKIT": "0",
            },
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise StackFailed(f"{' '.join(arguments[:3])} failed:\n{answer.stderr.strip()[-3000:]}")
        return answer.stdout

    def _images(self) -> tuple[dict[str, str], list[str]]:
        """Return the images to use, by variable, and what the operator has to know about them."""
        images, notes = {}, []
        for variable, (official, packaged) in _IMAGES.items():
            named = self._variables.get(variable) or os.environ.get(variable)
            candidates = [named] if named else [official, packaged]
            found = next((each for each in candidates if each and self._is_here(each)), None)
            found = found or next((each for each in candidates[:1] if self._is_pulled(each)), None)
            if found is not None:
                images[variable] = found
            elif packaged:
                raise ProviderMissing(
                    f"{candidates[0]} cannot be pulled; run `make images` to make images from "
                    f"Debian packages, or set {variable}"
                )
            else:
                notes.append(
                    f"{candidates[0]} cannot be pulled, and Debian has no package of it: the stack "
                    f"runs without it; set {variable} to an image that can be pulled"
                )
        auditor = os.environ.get("AUDITOR_IMAGE", "gtid-audit:latest")
        if not self._is_here(auditor) and images["MYSQL_IMAGE"] == _IMAGES["MYSQL_IMAGE"][1]:
            raise ProviderMissing(f"{auditor} is not here; run `make images`")
        return images, notes

    def _is_here(self, image: str) -> bool:
        return self._succeeds("image", "inspect", image)

    def _is_pulled(self, image: str) -> bool:
        return self._succeeds("pull", "--quiet", image)

    def _succeeds(self, *arguments: str) -> bool:
        try:
            self.docker(*arguments)
        except StackFailed:
            return False
        return True

    def _write(self, shapes: Sequence[str]) -> None:
        """Write passwords and the fleet file; running servers keep their passwords.

        Files are readable for the users inside containers; the folder is closed to other users.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        for name in _SECRETS:
            if not (self.folder / name).exists():
                (self.folder / name).write_text(secrets.token_urlsafe(24))
                (self.folder / name).chmod(0o644)
        password = (self.folder / "auditor_password").read_text()
        (self.folder / "auditor").write_text(f"[client]\npassword={password}\n")
        parts = [COMPOSE_FOLDER / "mysql" / "fleet" / f"{name}.yaml" for name in ("head", *shapes)]
        (self.folder / "fleet.yaml").write_text("".join(path.read_text() for path in parts))
        for name in ("auditor", "fleet.yaml"):
            (self.folder / name).chmod(0o644)

    def _await_healthy(self) -> None:
        """Wait for every service: healthy, or ended with status 0. Raises StackFailed."""
        deadline = time.monotonic() + _HEALTHY_SECONDS_MAX
        while waiting := self.unhealthy():
            if time.monotonic() > deadline:
                raise StackFailed(f"not healthy: {waiting}\n{self._logs_of(waiting)}")
            time.sleep(_POLL_SECONDS)

    def _logs_of(self, services: Iterable[str]) -> str:
        return self.compose("logs", "--tail=20", "--no-color", *sorted(services))

    def unhealthy(self) -> dict[str, str]:
        """Return the services that are not well, each with its state."""
        listed = self.compose("ps", "--all", "--format", "json")
        return {
            each["Service"]: f"{each['State']} {each['Health']}".strip()
            for each in map(json.loads, listed.splitlines())
            if (each["State"], each["Health"]) != ("running", "healthy")
            and (each["State"], each["ExitCode"]) != ("exited", 0)
            and (each["Service"], each["State"]) != ("load", "running")
        }


def main(arguments: list[str] | None = None) -> int:
    """Run ``up``, ``down``, ``fault NAME`` or ``repair NAME``; exit status 1 if it failed."""
    parser = argparse.ArgumentParser(prog="compose.containers.stack", description=__doc__)
    actions = parser.add_subparsers(dest="action", required=True)
    up = actions.add_parser("up")
    up.add_argument("--shapes", default="pair", help=f"some of {','.join(SHAPES)}")
    up.add_argument("--load", action="store_true", help="write to the servers all the time")
    actions.add_parser("down")
    for action in ("fault", "repair"):
        actions.add_parser(action).add_argument("name", choices=sorted(FAULTS))
    given = parser.parse_args(arguments)
    try:
        stack = Stack()
        if given.action == "up":
            shapes = given.shapes.split(",")
            if unknown := set(shapes) - SHAPES.keys():
                parser.error(f"no shape {', '.join(sorted(unknown))}")
            print("\n".join([*stack.up(shapes, load=given.load), *stack.addresses()]))
            print(f"password of the auditor's page, with any user: in {stack.folder / 'token'}")
        elif given.action == "down":
            stack.down()
        elif given.action == "fault":
            stack.inject(FAULTS[given.name])
            print(FAULTS[given.name].text)
        else:
            stack.repair(FAULTS[given.name])
    except (ProviderMissing, StackFailed) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
