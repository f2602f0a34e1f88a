"""Reads a fleet file, checks it, and completes its clusters of servers.

1. It reports all problems of a file at once, each with its line and path.
2. No message repeats a value: it may be a password in the wrong field.
3. It decides the source of every server's account. Later code does not choose between sources.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from topology.adapters.collect import CollectLimits
from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.inventory.accounts import NO_USER, AccountSource, ServerEntry
from topology.adapters.inventory.dsn import PORT_DEFAULT, Dsn, parse_dsn
from topology.adapters.inventory.fleet import Cluster, ClusterEntry, Fleet, Roster
from topology.adapters.inventory.fleet_accepted import accepted_findings, accepted_repairs
from topology.adapters.inventory.fleet_consumers import consumers_of, refuse_open_commands
from topology.adapters.inventory.fleet_model import (
    SECTIONS,
    Account,
    FleetSection,
    LimitsSection,
    PasswordSource,
    ServerSection,
)
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.secrets import Warn, WarnOnce
from topology.adapters.inventory.targets import target_of
from topology.adapters.inventory.yaml_places import Path as Place
from topology.adapters.inventory.yaml_places import YamlFile, YamlProblem
from topology.documents.label_records import Labels
from topology.policy import Policy
from topology.readings.target import ServerTarget

FLEET_BYTES_MAX: Final = 32 << 20
PROBLEMS_SHOWN_MAX: Final = 50


def load_fleet(path: Path, *, environment: Mapping[str, str], warn: Warn) -> Fleet:
    """Read a fleet file. Raises InventoryProblem with every problem in it."""
    reading, section = _begin(_text_of(path), str(path))
    refuse_open_commands(path, section)
    return reading.fleet(section, environment, warn)


def parse_fleet(text: str, *, name: str, environment: Mapping[str, str], warn: Warn) -> Fleet:
    """Read the text of a fleet file. Raises InventoryProblem with every problem in it."""
    reading, section = _begin(text, name)
    return reading.fleet(section, environment, warn)


def load_roster(path: Path) -> Roster:
    """Read a fleet file without looking up accounts, for callers that do so elsewhere.

    Raises InventoryProblem with every problem in it, except passwords that their source does not
    have.
    """
    reading, section = _begin(_text_of(path), str(path))
    refuse_open_commands(path, section)
    return reading.roster(section)


def _begin(text: str, name: str) -> tuple["_Reading", FleetSection]:
    try:
        file = YamlFile(text)
    except YamlProblem as problem:
        raise InventoryProblem(f"{name}: {problem}") from None
    reading = _Reading(file, name)
    try:
        return reading, FleetSection.model_validate(file.values if file.values is not None else {})
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        for each in found:
            place = each["loc"]
            # A list whose items were all refused counts as empty; that is not a separate problem.
            inside = any(other["loc"][: len(place)] == place for other in found if other != each)
            if each["type"] != "too_short" or not inside:
                reading.note(place, _in_words(each))
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
    """A server, and the places in the file that define it and its password."""

    entry: ServerEntry
    place: Place
    password_place: Place


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
    problems: list[tuple[int, str]] = field(default_factory=list)

    def note(self, place: Place, problem: str) -> None:
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        line = self.file.line(place)
        where = f"{self.name}, line {line}"
        self.problems.append((line, f"{where}: {path.lstrip('.') or 'the file'}: {problem}"))

    def refusal(self) -> InventoryProblem:
        lines = [text for _, text in sorted(self.problems)]
        if len(lines) > PROBLEMS_SHOWN_MAX:
            rest = len(lines) - PROBLEMS_SHOWN_MAX
            lines = [*lines[:PROBLEMS_SHOWN_MAX], f"{self.name}: … and {rest} more problems"]
        return InventoryProblem(*lines)

    def roster(self, section: FleetSection) -> Roster:
        """Return the contents of the file. Raises InventoryProblem."""
        clusters = self._clusters(section)
        settings = self._settings(section)
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

    def fleet(self, section: FleetSection, environment: Mapping[str, str], warn: Warn) -> Fleet:
        """Return the contents of the file with every account. Raises InventoryProblem."""
        clusters = self._clusters(section)
        once = WarnOnce(warn)
        found = tuple(
            Cluster(
                each.name,
                tuple(self._targets(each.servers, environment, once)),
                each.consumers,
                each.labels,
            )
            for each in clusters
        )
        settings = self._settings(section)
        self._raise_problems()
        return Fleet(found, *settings)

    def _targets(
        self, servers: Iterable[_Placed], environment: Mapping[str, str], warn: Warn
    ) -> Iterator[ServerTarget]:
        for each in servers:
            account = each.entry.account
            try:
                user, password = account.look_up(environment=environment, warn=warn)
            except InventoryProblem as problem:
                self.note(each.password_place, str(problem))
                continue
            if user is None:
                self.note(each.place, NO_USER)
                continue
            yield target_of(each.entry.dsn, name=each.entry.name, user=user, password=password)

    def _settings(self, section: FleetSection) -> tuple[CollectLimits, int, Policy]:
        """Return limits and policy. Paths of accepted plans are relative to the fleet file."""
        limits, connections_max, policy = _limits(section)
        policy = replace(
            policy,
            accepted=accepted_repairs(section, Path(self.name).parent, self.note),
            accepted_findings=accepted_findings(section, self.note),
        )
        return limits, connections_max, policy

    def _raise_problems(self) -> None:
        if self.problems:
            raise self.refusal()

    def _clusters(self, section: FleetSection) -> list[_PlacedCluster]:
        """Return the clusters in order of name; record all but account problems."""
        self._password_source(section.defaults.password, ("defaults", "password"))
        clusters: dict[str, Place] = {}
        endpoints: dict[str, Place] = {}
        found: list[_PlacedCluster] = []
        directory = Path(self.name).parent
        for i, cluster in enumerate(section.clusters):
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
            self.note(place, f"the same {what} as on line {self.file.line(seen[value])}")
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
                return _with_defaults(parse_dsn(server.dsn), defaults)
            except InventoryProblem as problem:
                self.note((*place, "dsn"), str(problem))
                return None
        if (server.host is None) == (server.unix_socket is None):
            self.note(place, "requires exactly one of dsn, host and unix_socket")
            return None
        if server.unix_socket is not None and server.port is not None:
            self.note((*place, "port"), "a unix socket has no port")
        dsn = Dsn(
            host=server.host or "localhost",
            port=server.port or defaults.port or PORT_DEFAULT,
            user=server.user,
            unix_socket=server.unix_socket,
            ssl_ca=server.ssl_ca,
            ssl_cert=server.ssl_cert,
            ssl_key=server.ssl_key,
            ssl_required=server.ssl is not None,
            enable_cleartext_plugin=server.enable_cleartext_plugin is not None,
            get_server_public_key=server.get_server_public_key is not None,
        )
        return _with_defaults(dsn, defaults)

    def _placed(
        self, server: ServerSection, dsn: Dsn, defaults: Account, place: Place
    ) -> _Placed | None:
        """Return a server with the source of its account; its own settings precede the defaults."""
        if (dsn.ssl_cert is None) != (dsn.ssl_key is None):
            self.note(place, "has only one of ssl_cert and ssl_key; both are required")
            return None
        own = server.password
        where: Place = (*place, "password")
        if own is not None and dsn.option_file is not None:
            self.note(where, "the dsn also has an option_file; use only one of the two")
            return None
        self._password_source(own, where)
        if own is None and dsn.option_file is not None:
            own, where = PasswordSource(option_file=dsn.option_file, group=dsn.group), place
        if own is None:
            own, where = defaults.password, ("defaults", "password")
        own = own or PasswordSource()
        account = AccountSource(
            user=dsn.user,
            user_default=defaults.user,
            env=own.env,
            option_file=own.option_file,
            group=own.group,
        )
        return _Placed(ServerEntry(server.name, dsn, account), place, where)

    def _password_source(self, source: PasswordSource | None, place: Place) -> None:
        if source is None:
            return
        if (source.env is None) == (source.option_file is None):
            self.note(place, "requires exactly one of env and option_file")
        elif source.group is not None and source.option_file is None:
            self.note(place, "has a group without an option_file")

    def _count_servers(self, count: int, limits: LimitsSection) -> None:
        if count > limits.servers_max:
            self.note(
                ("limits", "servers_max"),
                f"{count:,} servers are more than servers_max, {limits.servers_max:,}",
            )


def _limits(section: FleetSection) -> tuple[CollectLimits, int, Policy]:
    limits = CollectLimits(
        server_seconds_max=section.limits.server_seconds_max,
        looks_max=section.limits.looks_max,
        pause_seconds=section.limits.pause_seconds,
    )
    policy = Policy(
        allowed_uuids=frozenset(section.policy.allowed_uuids),
        external_sources=frozenset(section.policy.external_sources),
        lock_wait_seconds_max=section.policy.lock_wait_seconds_max,
        stall_seconds_max=section.policy.stall_seconds_max,
        runway_seconds_min=section.policy.runway_seconds_min,
        outage_seconds_max=section.policy.outage_seconds_max,
        clock_seconds_max=section.policy.clock_seconds_max,
        intervals_max=section.policy.intervals_max,
        dead_uuids_max=section.policy.dead_uuids_max,
        ddl_wait_seconds_max=section.policy.ddl_wait_seconds_max,
        definitions=section.policy.definitions,
        levels=tuple(sorted(section.policy.levels.items())),
    )
    return limits, section.limits.connections_max, policy


def _with_defaults(dsn: Dsn, defaults: Account) -> Dsn:
    """Return a DSN completed from the defaults, except for the account."""
    own_certificate = dsn.ssl_cert is not None or dsn.ssl_key is not None
    return Dsn(
        host=dsn.host,
        port=dsn.port,
        user=dsn.user,
        unix_socket=dsn.unix_socket,
        option_file=dsn.option_file,
        group=dsn.group,
        ssl_ca=dsn.ssl_ca or defaults.ssl_ca,
        ssl_cert=dsn.ssl_cert if own_certificate else defaults.ssl_cert,
        ssl_key=dsn.ssl_key if own_certificate else defaults.ssl_key,
        ssl_required=dsn.ssl_required or defaults.ssl is not None,
        enable_cleartext_plugin=(
            dsn.enable_cleartext_plugin or defaults.enable_cleartext_plugin is not None
        ),
        get_server_public_key=(
            dsn.get_server_public_key or defaults.get_server_public_key is not None
        ),
    )


_WORDS: Final = {
    "dict_type": "expected keys and values",
    "model_type": "expected keys and values",
    "missing": "is missing",
    "string_pattern_mismatch": "contains a control character",
    "string_too_short": "is empty",
    "too_short": "is empty",
    "tuple_type": "expected a list",
    "uuid_parsing": "is not a UUID",
    "uuid_type": "is not a UUID",
}


def _in_words(error: Any) -> str:  # noqa: ANN401 - a dict of Pydantic's
    """Return the problem as text, without the value."""
    place = error["loc"]
    key = str(place[-1]) if place else ""
    if error["type"] == "extra_forbidden":
        section = SECTIONS.get(tuple(step for step in place[:-1] if isinstance(step, str)))
        known = sorted(section.model_fields) if section else []
        near = get_close_matches(key, known, n=1)
        return "unknown key; " + (
            f"did you mean {near[0]}?" if near else f"known keys: {', '.join(known)}"
        )
    if key == "password" and error["type"] == "model_type":
        return (
            "this file must not contain a password; configure its source: {env: NAME}, or"
            " {option_file: FILE, group: NAME}"
        )
    if error["type"] in _WORDS:
        return _WORDS[error["type"]]
    text = str(error["msg"])
    return text[:1].lower() + text[1:]
