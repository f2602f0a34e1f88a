"""Reads a fleet file, checks it, and completes its clusters of servers.

1. It reports all problems of a file at once, each with its line and path.
2. No message repeats a value: it may be a password in the wrong field.
3. It decides the source of every server's account. Later code does not choose between sources.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.inventory.accounts import (
    AccountSource,
    NoUser,
    ServerEntry,
    TlsProblem,
    look_up_accounts,
)
from topology.adapters.inventory.collector_pause import collector_paused
from topology.adapters.inventory.dsn import PORT_DEFAULT, Dsn, parse_dsn
from topology.adapters.inventory.fleet import Cluster, ClusterEntry, Fleet, Roster
from topology.adapters.inventory.fleet_consumers import consumers_of, refuse_open_commands
from topology.adapters.inventory.fleet_model import (
    SECTIONS,
    Account,
    FleetSection,
    LimitsSection,
    PasswordSource,
    ServerSection,
)
from topology.adapters.inventory.fleet_settings import settings_of
from topology.adapters.inventory.fleet_yaml import Path as Place
from topology.adapters.inventory.fleet_yaml import YamlFile, YamlProblem, fleet_yaml
from topology.adapters.inventory.listed_clusters import ListedPlace, list_servers
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.problem_words import path_text, problems_of
from topology.adapters.inventory.server_sections import source_of, tls_of, with_defaults
from topology.documents.label_records import Labels
from topology.readings.target import ServerTarget

FLEET_BYTES_MAX: Final = 32 << 20
PROBLEMS_SHOWN_MAX: Final = 50
_NO_SOURCE: Final = PasswordSource()


def load_fleet(
    path: Path,
    *,
    environment: Mapping[str, str],
    warn: Callable[[str], None],
    cluster: str | None = None,
) -> Fleet:
    """Read a fleet file, or one cluster of it, and run its commands that list servers.

    Raises InventoryProblem with every problem in it.
    """
    reading, section = _begin(_text_of(path), str(path))
    refuse_open_commands(path, section)
    listed, is_partial = reading.with_listed(section, environment, cluster)
    fleet = reading.fleet(listed, environment, warn).only(cluster)
    is_partial = fleet.is_partial or is_partial
    return replace(fleet, is_partial=is_partial, is_listed=bool(reading.listed))


def parse_fleet(
    text: str, *, name: str, environment: Mapping[str, str], warn: Callable[[str], None]
) -> Fleet:
    """Read the text of a fleet file. Raises InventoryProblem with every problem in it."""
    reading, section = _begin(text, name)
    listed, _ = reading.with_listed(section, environment, None)
    return reading.fleet(listed, environment, warn)


def load_roster(
    path: Path, *, environment: Mapping[str, str], cluster: str | None = None
) -> Roster:
    """Read a fleet file without looking up accounts, for callers that do so elsewhere.

    Its commands that list servers are run.

    Raises InventoryProblem with every problem in it, except passwords that their source does not
    have.
    """
    reading, section = _begin(_text_of(path), str(path))
    refuse_open_commands(path, section)
    listed, _ = reading.with_listed(section, environment, cluster)
    return reading.roster(listed).only(cluster)


@collector_paused()
def _begin(text: str, name: str) -> tuple["_Reading", FleetSection]:
    try:
        file = fleet_yaml(text)
    except YamlProblem as problem:
        raise InventoryProblem(f"{name}: {problem}") from None
    reading = _Reading(file, name)
    try:
        return reading, FleetSection.model_validate(file.values if file.values is not None else {})
    except ValidationError as error:
        for place, text_of_it in problems_of(error, SECTIONS):
            reading.note(place, text_of_it)
        raise reading.refusal() from None


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(FLEET_BYTES_MAX + 1)
    except OSError as error:
        raise InventoryProblem(f"{path}: {error.strerror or error}") from error
    if len(content) > FLEET_BYTES_MAX:
        raise InventoryProblem(f"{path}: larger than {FLEET_BYTES_MAX:,} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InventoryProblem(f"{path}: not UTF-8 at byte {error.start}") from None


@dataclass(frozen=True, slots=True)
class _Placed:
    """A server, and the places in the file that define it, its password and its TLS settings."""

    entry: ServerEntry
    place: Place
    password_place: Place
    tls_place: Place


@dataclass(frozen=True, slots=True)
class _PlacedCluster:
    """A cluster: servers and consumers in order of name."""

    name: str
    servers: list[_Placed]
    consumers: tuple[ConsumerSource, ...]
    labels: Labels


@dataclass(slots=True)
class _Reading:
    """The state of reading one file, with the problems so far."""

    file: YamlFile
    name: str
    problems: dict[str, tuple[int, int]] = field(default_factory=dict)  # each text, its place
    listed: dict[int, ListedPlace] = field(default_factory=dict)  # by the number of the cluster

    def note(self, place: Place, problem: str) -> None:
        at, path = self._place(place), path_text(place) or "the file"
        if (origin := self._origin(place)) is not None:
            inside = path_text((*origin.within, *place[2:]))
            path = f"{path_text(origin.place)}: {origin.output}" + (f": {inside}" if inside else "")
        self.problems.setdefault(f"{self.name}, line {at[0]}: {path}: {problem}", at)

    def _origin(self, place: Place) -> ListedPlace | None:
        """Return the command that listed a value; None of a value that is in the file."""
        number = place[1] if len(place) > 1 and place[0] == "clusters" else None
        origin = self.listed.get(number) if isinstance(number, int) else None
        if origin is None or (not origin.within and place[2:3] != ("servers",)):
            return None
        return origin

    def _place(self, place: Place) -> tuple[int, int]:
        origin = self._origin(place)
        return self.file.place(place if origin is None else origin.place)

    def with_listed(
        self, section: FleetSection, environment: Mapping[str, str], cluster: str | None
    ) -> tuple[FleetSection, bool]:
        """Return the section with what its commands list, and whether some were not run.

        With the name of a cluster of the file, only the command of that cluster is run. Raises
        InventoryProblem with the problems of all commands.
        """
        listing = list_servers(section, Path(self.name).parent, environment, cluster)
        self.listed = listing.places
        for place, problem in listing.problems:
            self.note(place, problem)
        for place, problem in listing.command_problems:
            at = self.file.place(place)
            text = f"{self.name}, line {at[0]}: {path_text(place)}: {problem}"
            self.problems.setdefault(text, at)
        self._raise_problems()
        return listing.section, listing.is_partial

    def refusal(self) -> InventoryProblem:
        """Return every problem once, in the order of the file."""
        lines = sorted(self.problems, key=lambda text: (self.problems[text], text))
        if len(lines) > PROBLEMS_SHOWN_MAX:
            rest = len(lines) - PROBLEMS_SHOWN_MAX
            lines = [*lines[:PROBLEMS_SHOWN_MAX], f"{self.name}: … and {rest} more problems"]
        return InventoryProblem(*lines)

    @collector_paused()
    def roster(self, section: FleetSection) -> Roster:
        """Return the contents of the file. Raises InventoryProblem."""
        clusters = self._clusters(section)
        settings = settings_of(section, Path(self.name).parent, self.note)
        self._raise_problems()
        return Roster(
            tuple(
                ClusterEntry(
                    each.name,
                    tuple(one.entry for one in each.servers),
                    each.consumers,
                    each.labels,
                )
                for each in clusters
            ),
            *settings,
        )

    @collector_paused()
    def fleet(
        self, section: FleetSection, environment: Mapping[str, str], warn: Callable[[str], None]
    ) -> Fleet:
        """Return the contents of the file with every account. Raises InventoryProblem."""
        clusters = self._clusters(section)
        completed = look_up_accounts(environment, warn)
        found = tuple(
            Cluster(
                each.name,
                tuple(self._targets(each.servers, completed)),
                each.consumers,
                each.labels,
            )
            for each in clusters
        )
        settings = settings_of(section, Path(self.name).parent, self.note)
        self._raise_problems()
        return Fleet(found, *settings)

    def _targets(
        self, servers: Iterable[_Placed], completed: Callable[[ServerEntry], ServerTarget]
    ) -> Iterator[ServerTarget]:
        for each in servers:
            try:
                yield completed(each.entry)
            except NoUser as problem:
                self.note(each.place, str(problem))
            except TlsProblem as problem:
                self.note(each.tls_place, str(problem))
            except InventoryProblem as problem:
                self.note(each.password_place, str(problem))

    def _raise_problems(self) -> None:
        if self.problems:
            raise self.refusal()

    def _clusters(self, section: FleetSection) -> list[_PlacedCluster]:
        """Return the clusters in order of name; record all but account problems."""
        self._password_source(section.defaults.password, ("defaults", "password"))
        if contradiction := tls_of(section.defaults).contradiction:
            self.note(("defaults",), contradiction)
        clusters: dict[str, Place] = {}
        endpoints: dict[str, Place] = {}
        found: list[_PlacedCluster] = []
        directory = Path(self.name).parent
        for i, cluster in enumerate(section.clusters):
            if cluster.servers_from is not None:
                continue  # another cluster is needed, and this command was not run
            self._once(clusters, cluster.name, ("clusters", i, "name"), "cluster name")
            names: dict[str, Place] = {}
            servers: list[_Placed] = []
            for j, server in enumerate(cluster.servers):
                place = ("clusters", i, "servers", j)
                self._once(names, server.name, (*place, "name"), "server name in this cluster")
                dsn = self._address(server, section.defaults, place)
                if dsn is None:
                    continue
                self._once(endpoints, dsn.identity, place, "address in this file")
                placed = self._placed(server, dsn, section.defaults, place)
                if placed is not None:
                    servers.append(placed)
            consumers = consumers_of(cluster, ("clusters", i), directory, self.note)
            ordered = sorted(servers, key=lambda each: each.entry.name)
            labels = tuple(sorted(cluster.labels.items()))
            found.append(_PlacedCluster(cluster.name, ordered, consumers, labels))
        self._count_servers(sum(len(each.servers) for each in found), section.limits)
        return sorted(found, key=lambda each: each.name)

    def _once(self, seen: dict[str, Place], value: str, place: Place, what: str) -> None:
        if value in seen:
            self.note(place, f"the same {what} as on line {self._place(seen[value])[0]}")
        seen.setdefault(value, place)

    def _address(self, server: ServerSection, defaults: Account, place: Place) -> Dsn | None:
        if server.dsn is not None:
            own = [
                key for key in server.model_fields_set - {"name", "dsn", "password"}
                if getattr(server, key) is not None
            ]  # fmt: skip
            if own:
                self.note(
                    place, f"has a dsn and also {', '.join(sorted(own))}; use only one of the two"
                )
                return None
            try:
                return parse_dsn(server.dsn)
            except InventoryProblem as problem:
                self.note((*place, "dsn"), str(problem))
                return None
        if (server.host is None) == (server.unix_socket is None):
            self.note(place, "requires exactly one of dsn, host and unix_socket")
            return None
        if server.unix_socket is not None and server.port is not None:
            self.note((*place, "port"), "a unix socket has no port")
        return Dsn(
            host=server.host or "localhost",
            port=server.port or defaults.port or PORT_DEFAULT,
            user=server.user,
            unix_socket=server.unix_socket,
            tls=tls_of(server),
            enable_cleartext_plugin=server.enable_cleartext_plugin is not None,
            get_server_public_key=server.get_server_public_key is not None,
        )

    def _placed(
        self, server: ServerSection, dsn: Dsn, defaults: Account, place: Place
    ) -> _Placed | None:
        """Return a server with the source of its account; its own settings precede the defaults."""
        complete = with_defaults(dsn, defaults)
        if problem := dsn.tls.contradiction or complete.tls.half_certificate:
            self.note(place, problem)
            return None
        own = server.password
        where: Place = (*place, "password")
        of_dsn = source_of(dsn)
        if own is not None and of_dsn is not None:
            self.note(where, "the dsn also has one; use only one of the two")
            return None
        self._password_source(own, where)
        if own is None and of_dsn is not None:
            own, where = of_dsn, place
        if own is None:
            own, where = defaults.password, ("defaults", "password")
        own = own or _NO_SOURCE
        account = AccountSource(
            user=dsn.user,
            user_default=defaults.user,
            env=own.env,
            option_file=own.option_file,
            group=own.group,
            login_path=own.login_path,
            password_file=own.password_file,
        )
        tls_place: Place = ("defaults",) if dsn.tls.is_empty else place
        return _Placed(ServerEntry(server.name, complete, account), place, where, tls_place)

    def _password_source(self, source: PasswordSource | None, place: Place) -> None:
        if source is None:
            return
        sources = (source.env, source.option_file, source.login_path, source.password_file)
        if sum(each is not None for each in sources) != 1:
            self.note(
                place, "requires exactly one of env, option_file, login_path and password_file"
            )
        elif source.group is not None and source.option_file is None:
            self.note(place, "has a group without an option_file")

    def _count_servers(self, count: int, limits: LimitsSection) -> None:
        if count > limits.servers_max:
            self.note(
                ("limits", "servers_max"),
                f"{count:,} servers are more than servers_max, {limits.servers_max:,}",
            )
