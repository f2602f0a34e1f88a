"""Clusters and servers that a command prints as JSON: one way for every inventory.

    {"clusters": [{"name": "orders", "servers": [{"name": "orders-1", "host": "10.0.0.11"}]}]}
    {"servers": [{"host": "10.0.0.11", "port": 3307}, {"host": "10.0.0.12"}]}

1. The first form is that of `clusters_from`, the second one that of `servers_from` of a cluster. A
   server without a name is called host:port. A cluster may have labels, as in the fleet file.
2. A command lists addresses. Users, passwords and TLS options stay in the fleet file: what prints a
   list of servers must not decide how a password is sent.
3. Nothing is dropped. An unknown key, a key twice, an empty list, or a value of another type is a
   problem with its path, and no server is read. A command that fails is a problem as well: an audit
   without its servers would look complete.
4. No message repeats a value of the output. What a command wrote to its standard error is shown,
   with the known passwords hidden.
"""

import json
import queue
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic_core import PydanticCustomError

from topology.adapters.command_output import CommandFailed, output_of
from topology.adapters.consumer_source import printable
from topology.adapters.inventory.dsn import PORT_DEFAULT
from topology.adapters.inventory.fleet_model import (
    ClusterSection,
    CommandSection,
    FileSection,
    Labels,
    Name,
    Port,
    ServerSection,
)
from topology.adapters.inventory.problem_words import Sections, problems_of
from topology.adapters.inventory.yaml_places import Path as Place
from topology.readings.target import Secret

LISTED_BYTES_MAX: Final = 16 * 1024**2
_AT_ONCE_MAX: Final = 16  # commands


# A name or an IPv4 address, or an IPv6 address without brackets. `host:port` is none of them.
_HOST: Final = r"^([^\s:/@\[\]]+|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*(%[^\s/@\[\]]+)?)$"


def _host(text: str) -> str:
    if re.fullmatch(_HOST, text) is None:
        raise PydanticCustomError("host", "expected a host name or an address, without a port")
    return text


Host = Annotated[
    str,
    Field(min_length=1, max_length=255, json_schema_extra={"pattern": _HOST}),
    AfterValidator(_host),
]


class ListedServer(FileSection):
    """One address."""

    host: Host
    port: Port | None = None
    name: Name | None = None


class ListedServers(FileSection):
    """What a command of `servers_from` prints."""

    servers: Annotated[tuple[ListedServer, ...], Field(min_length=1, strict=False)]


class ListedCluster(ListedServers):
    """One cluster."""

    name: Name
    labels: Labels = Field(default_factory=dict)


class ListedClusters(FileSection):
    """What the command of `clusters_from` prints."""

    clusters: Annotated[tuple[ListedCluster, ...], Field(min_length=1, strict=False)]


SECTIONS_LISTED: Final[Sections] = {
    ("clusters",): ListedCluster,
    ("clusters", "servers"): ListedServer,
    ("servers",): ListedServer,
}


class ListProblem(Exception):
    """A command that failed, or an output that is no list: all problems, each with its path."""

    def __init__(self, *problems: tuple[Place, str]) -> None:
        super().__init__(*problems)
        self.problems = problems


@dataclass(frozen=True, slots=True)
class CommandRun:
    """How commands are run: where, for how long, and what is hidden in what they write."""

    directory: Path
    seconds_max: float
    secrets: Sequence[Secret] = ()

    def printed(self, section: CommandSection) -> bytes:
        """Return what a command prints. Raises ListProblem."""
        try:
            return output_of(
                section.command,
                directory=self.directory,
                seconds_max=self.seconds_max,
                bytes_max=LISTED_BYTES_MAX,
            )
        except OSError as error:
            raise ListProblem(((), error.strerror or str(error))) from error
        except CommandFailed as failure:
            text = str(failure)
            for secret in self.secrets:
                text = secret.hidden_in(text)
            raise ListProblem(((), text)) from failure


Listed = TypeVar("Listed", bound=BaseModel)
Answer = tuple[ClusterSection, ...] | ListProblem


def output_name(section: CommandSection) -> str:
    """Return what a problem of the output is about, without the arguments of the command."""
    return f"the output of {printable(Path(section.command[0]).name)}"


def servers_listed(
    clusters: Iterable[ClusterSection], run: CommandRun, *, port: int | None
) -> list[Answer]:
    """Return the clusters with the servers that their commands list, or why there are none."""

    def completed(cluster: ClusterSection) -> tuple[ClusterSection, ...]:
        assert cluster.servers_from is not None, "the caller selects them"
        found = _parsed(run.printed(cluster.servers_from), ListedServers)
        servers = _sections(found.servers, port)
        return (cluster.model_copy(update={"servers": servers, "servers_from": None}),)

    return _answers(completed, clusters)


def clusters_listed(section: CommandSection, run: CommandRun, *, port: int | None) -> Answer:
    """Return the clusters that a command lists, or why there are none."""

    def listed(given: CommandSection) -> tuple[ClusterSection, ...]:
        found = _parsed(run.printed(given), ListedClusters)
        return tuple(
            ClusterSection(
                name=each.name, labels=each.labels, servers=_sections(each.servers, port)
            )
            for each in found.clusters
        )

    [answer] = _answers(listed, [section])
    return answer


Given = TypeVar("Given")
_Numbered: TypeAlias = tuple[int, tuple[ClusterSection, ...] | BaseException]


def _answers(
    ask: Callable[[Given], tuple[ClusterSection, ...]], given: Iterable[Given]
) -> list[Answer]:
    """Return the answers in order. Daemon threads ask: an interrupt does not wait for commands."""
    tasks, answers = queue.SimpleQueue[tuple[int, Given]](), queue.SimpleQueue[_Numbered]()
    for number, each in enumerate(given):
        tasks.put((number, each))
    count = tasks.qsize()

    def work() -> None:
        with suppress(queue.Empty):
            while True:
                number, each = tasks.get_nowait()
                try:
                    answers.put((number, ask(each)))
                except BaseException as error:  # noqa: BLE001 - passed to the caller
                    answers.put((number, error))

    for _ in range(min(count, _AT_ONCE_MAX)):
        threading.Thread(target=work, name="inventory command", daemon=True).start()
    found: dict[int, Answer] = {}
    for _ in range(count):
        number, answer = answers.get()
        if isinstance(answer, BaseException) and not isinstance(answer, ListProblem):
            raise answer
        found[number] = answer
    return [found[number] for number in range(count)]


def _sections(servers: Iterable[ListedServer], port: int | None) -> tuple[ServerSection, ...]:
    return tuple(
        ServerSection(name=each.name or _endpoint(each, port), host=each.host, port=each.port)
        for each in servers
    )


def _endpoint(server: ListedServer, port: int | None) -> str:
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{host}:{server.port or port or PORT_DEFAULT}"


# -- the text -------------------------------------------------------------------------------------


def _parsed(content: bytes, form: type[Listed]) -> Listed:
    """Return the values of an output. Raises ListProblem with all problems."""
    try:
        values = json.loads(content.decode(), object_pairs_hook=_once_each)
    except UnicodeDecodeError as error:
        raise ListProblem(((), f"not UTF-8 at byte {error.start}")) from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        text = "is empty" if not content.strip() else f"{where}: not JSON: {error.msg}"
        raise ListProblem(((), text)) from None
    except RecursionError:
        raise ListProblem(((), "nested too deep")) from None
    except ValueError:  # a number of thousands of digits
        raise ListProblem(((), "a number that is too long")) from None
    if not isinstance(values, dict):
        known = " or ".join(form.model_fields)
        raise ListProblem(((), f"expected an object with the key {known}"))
    try:
        return form.model_validate(values)
    except ValidationError as error:
        raise ListProblem(*problems_of(error, {**SECTIONS_LISTED, (): form})) from None


def _once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object. Of a key that is there twice, JSON readers keep the last silently."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        shown = twice if twice in _KNOWN else "a key"
        raise ListProblem(((), f"an object has {shown} twice"))
    return found


_KNOWN: Final = frozenset(
    {*ListedServer.model_fields, *ListedCluster.model_fields, *ListedClusters.model_fields}
)
