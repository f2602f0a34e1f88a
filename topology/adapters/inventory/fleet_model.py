"""The schema of a fleet file: its keys, their types, and their limits.

Pydantic checks single values here. fleet_file.py checks what depends on two values. This module
holds no password: `password` states where to find it.
"""

import re
from datetime import date
from typing import Annotated, ClassVar, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from topology.catalogue.strategy_table import RECONCILABLE
from topology.catalogue.verdict_table import CATALOGUE
from topology.facts.accepted_findings import UNLIMITED

# YAML has lists where this module has tuples: hence strict=False on those.
Name = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]
Text = Annotated[str, Field(min_length=1, max_length=4096)]
Port = Annotated[int, Field(ge=1, le=65535)]


# A host name, an IPv4 address, or an IPv6 address in brackets; and a port.
_ADDRESS = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[^\s:\[\]]+):[0-9]{1,5}")


def _address(text: str) -> str:
    if _ADDRESS.fullmatch(text) is None:
        raise PydanticCustomError("address", "expected host:port")
    return text


class FileSection(BaseModel):
    """Keys and values that are all known: an unknown key is a problem."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, frozen=True)


class PasswordSource(FileSection):
    """The source of a password: an environment variable, or a file of one of three kinds."""

    env: Text | None = None
    option_file: Text | None = None
    group: Text | None = None
    login_path: Text | None = None
    password_file: Text | None = None


class Account(FileSection):
    """The keys that a server and the defaults have in common."""

    user: Text | None = None
    password: PasswordSource | None = None
    port: Port | None = None
    ssl: Literal["disabled", "preferred", "required", "verify_ca", "verify_identity"] | None = None
    ssl_ca: Text | None = None
    ssl_cert: Text | None = None
    ssl_key: Text | None = None
    enable_cleartext_plugin: Literal[True] | None = None
    get_server_public_key: Literal[True] | None = None


class ServerSection(Account):
    """One server: a DSN, or host and other keys; the defaults supply what is missing."""

    name: Name
    dsn: Text | None = None
    host: Text | None = None
    unix_socket: Text | None = None


# A program and its arguments; no shell reads it.
CommandLine = Annotated[tuple[Text, ...], Field(min_length=1, strict=False)]


class CommandSection(FileSection):
    """A command that prints clusters or servers as JSON: listed_servers.py."""

    command: CommandLine


class ConsumerSection(FileSection):
    """A program or a backup that reads the logs of a cluster: the source of its GTID set."""

    name: Name
    set: Annotated[str, Field(min_length=1, max_length=1 << 20)] | None = None  # or @file
    command: CommandLine | None = None
    server: Name | None = None


def _acceptable(code: str) -> str:
    """Accept the code of a finding; facts that were not read (U) cannot be accepted."""
    known = {each.code for each in CATALOGUE.values() if each.has_rule}
    if code not in known:
        raise PydanticCustomError("code", "is not the code of a finding")
    if code.startswith("U"):
        raise PydanticCustomError("unread", "facts that were not read cannot be accepted")
    if code in UNLIMITED:
        raise PydanticCustomError("unlimited", "an entry cannot limit how far this fault grows")
    return code


def _not_blank(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("blank", "is empty; write why this finding is accepted")
    return text


def _day(value: object) -> object:
    if isinstance(value, int | float):  # which would count as seconds since 1970
        raise PydanticCustomError("day", "is not a day, such as 2027-01-31")
    return value


class AcceptedSection(FileSection):
    """A finding that is accepted: where, at most how large, why, and until when."""

    code: Annotated[str, AfterValidator(_acceptable)]
    server: Name | None = None  # of a finding about one server; `*`: any
    source: Name | None = None
    replica: Name | None = None
    channel: Annotated[str, Field(max_length=64)] = ""
    set: Annotated[str, Field(max_length=16 << 20)] = ""
    shows: Annotated[str, Field(max_length=65_536)] = ""  # of a finding without a set
    severity: Literal["warning", "critical"]
    reason: Annotated[str, Field(max_length=4096), AfterValidator(_not_blank)]
    ticket: Annotated[str, Field(max_length=256)] = ""
    by: Annotated[str, Field(max_length=256)] = ""  # the person or the team who accepts it
    expires: Annotated[date, Field(strict=False), BeforeValidator(_day)]


# Label names of the metrics (gtid_audit/service/metrics.py), and those that Prometheus gives a
# meaning. Without this list a label of a cluster could replace the server of a series.
RESERVED_LABELS = frozenset(
    {"cluster", "server", "source", "replica", "channel", "code", "severity", "verdict"}
    | {"alertname", "instance", "job", "le", "quantile"}
)
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)


def _label(name: str) -> str:
    """Accept a label name of Prometheus; names that begin with __ are its own."""
    if _LABEL.fullmatch(name) is None or name.startswith("__"):
        raise PydanticCustomError(
            "label", "is not a label name: letters, digits and _, not beginning with __ or a digit"
        )
    if name in RESERVED_LABELS:
        raise PydanticCustomError("label", "is a label of the metrics already")
    return name


LabelName = Annotated[str, Field(max_length=64), AfterValidator(_label)]
LabelValue = Annotated[str, Field(min_length=1, max_length=256, pattern=r"^[^\x00-\x1f\x7f]+$")]


Labels = Annotated[dict[LabelName, LabelValue], Field(max_length=16)]


class ClusterSection(FileSection):
    """One cluster."""

    name: Name
    labels: Labels = Field(default_factory=dict)  # a default value would be copied in depth
    servers: Annotated[tuple[ServerSection, ...], Field(min_length=1, strict=False)] = ()
    servers_from: CommandSection | None = None  # instead of `servers`
    # Each is read by a thread of its own.
    consumers: Annotated[tuple[ConsumerSection, ...], Field(max_length=64, strict=False)] = ()
    accepted_findings: Annotated[tuple[AcceptedSection, ...], Field(strict=False)] = ()


SERVERS_DEFAULT = 20_000
SERVERS_MAX = 1_000_000


class LimitsSection(FileSection):
    """Limits of time and size; docs/fleet.md has the reason for each."""

    server_seconds_max: Annotated[float, Field(gt=0, le=3600)] = 5.0
    looks_max: Annotated[int, Field(ge=1, le=100)] = 5
    pause_seconds: Annotated[float, Field(ge=0, le=60)] = 0.15
    connections_max: Annotated[int, Field(ge=1, le=10_000)] = 64
    servers_max: Annotated[int, Field(ge=1, le=SERVERS_MAX)] = SERVERS_DEFAULT
    command_seconds_max: Annotated[float, Field(gt=0, le=600)] = 30.0


def _remark(code: str) -> str:
    """Accept the code of a remark on configuration or hygiene."""
    known = [each.code for each in CATALOGUE.values() if each.has_rule and each.code[0] in "CF"]
    if code not in known:
        raise PydanticCustomError("remark", "is not one of {known}", {"known": ", ".join(known)})
    return code


# Of findings about configuration and hygiene. `info` does not change the verdict.
Level = Literal["info", "warning", "critical"]


def _reconcilable(name: str) -> str:
    """Accept a strategy that `reconcile` may apply without an operator."""
    if name not in RECONCILABLE:
        known = ", ".join(RECONCILABLE)
        raise PydanticCustomError("strategy", "is not one of {known}", {"known": known})
    return name


class PolicySection(FileSection):
    """Differences that are not faults in this fleet."""

    allowed_uuids: Annotated[
        tuple[Annotated[UUID, Field(strict=False)], ...], Field(strict=False)
    ] = ()
    external_sources: Annotated[
        tuple[Annotated[str, AfterValidator(_address)], ...], Field(strict=False)
    ] = ()
    accepted: Annotated[tuple[Text, ...], Field(strict=False)] = ()
    accepted_findings: Annotated[tuple[AcceptedSection, ...], Field(strict=False)] = ()
    lock_wait_seconds_max: Annotated[int, Field(ge=0, le=86_400)] = 10
    stall_seconds_max: Annotated[int, Field(ge=0, le=86_400)] = 60
    runway_seconds_min: Annotated[int, Field(ge=0, le=31_536_000)] = 86_400
    outage_seconds_max: Annotated[int, Field(ge=0, le=604_800)] = 86_400
    clock_seconds_max: Annotated[int, Field(ge=1, le=86_400)] = 5
    intervals_max: Annotated[int, Field(ge=100, le=1_000_000)] = 1_000
    dead_uuids_max: Annotated[int, Field(ge=4, le=1_000_000)] = 4
    ddl_wait_seconds_max: Annotated[int, Field(ge=0, le=604_800)] = 300
    definitions: bool = False
    levels: dict[Annotated[str, AfterValidator(_remark)], Level] = {}
    reconcile: Annotated[
        tuple[Annotated[str, AfterValidator(_reconcilable)], ...], Field(strict=False)
    ] = ()


class FleetSection(FileSection):
    """The whole file."""

    defaults: Account = Account()
    limits: LimitsSection = LimitsSection()
    policy: PolicySection = PolicySection()
    clusters: Annotated[tuple[ClusterSection, ...], Field(min_length=1, strict=False)] = ()
    clusters_from: CommandSection | None = None  # in addition to `clusters`, or instead of them


# The known keys by path, for "did you mean".
SECTIONS: dict[tuple[str, ...], type[BaseModel]] = {
    (): FleetSection,
    ("defaults",): Account,
    ("defaults", "password"): PasswordSource,
    ("limits",): LimitsSection,
    ("policy",): PolicySection,
    ("policy", "accepted_findings"): AcceptedSection,
    ("clusters",): ClusterSection,
    ("clusters", "accepted_findings"): AcceptedSection,
    ("clusters", "consumers"): ConsumerSection,
    ("clusters", "servers"): ServerSection,
    ("clusters", "servers_from"): CommandSection,
    ("clusters_from",): CommandSection,
    ("clusters", "servers", "password"): PasswordSource,
}
