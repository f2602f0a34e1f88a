"""How the commands that a report proposes name its servers: as the operator named them.

No DSN here has a password: one that was typed with a password is refused, and one that is made of a
target is made without it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from topology.readings.target import NO_PASSWORD, ServerTarget

if TYPE_CHECKING:
    from topology.adapters.inventory.fleet import Fleet

_ASK: Final = "--ask-password"


@dataclass(frozen=True, slots=True)
class ServersInCommands:
    """The servers of one cluster. Without DSNs it was not read live, or not by this process."""

    dsns: Mapping[str, str] = field(default_factory=dict)  # by the names in the report
    selection: tuple[str, ...] = ()  # selects the cluster in its fleet file; () without a file
    options: tuple[str, ...] = ()  # for commands with a DSN


# By the name of a cluster: a fleet has many, and a report proposes commands for one.
NamedInCommands: TypeAlias = Callable[[str], ServersInCommands]


def not_reachable(_: str) -> ServersInCommands:
    """Return that no server can be reached: stored or pasted readings."""
    return ServersInCommands()


def typed_servers(
    typed: Sequence[str], given: Sequence[ServerTarget], names: Iterable[str], *, ask: bool
) -> NamedInCommands:
    """Return servers as they were typed; those that were found get a DSN like the first one.

    `given` are the typed servers in their order, `names` those of all. `ask`: the password was
    typed, too.
    """
    from gtid_audit.operands.trace_operands import shown_dsns

    servers = ServersInCommands(
        shown_dsns(typed, given, tuple(names)), options=(_ASK,) if ask else ()
    )
    return lambda _: servers


def servers_of_fleet(fleet: "Fleet", file: Path) -> NamedInCommands:
    """Return the servers of a fleet file. They have a DSN, and commands can select a cluster."""
    from topology.adapters.inventory.secrets import environment, password_from_environment
    from topology.adapters.inventory.targets import dsn_of

    def named(cluster: str) -> ServersInCommands:
        found = next((each for each in fleet.clusters if each.name == cluster), None)
        if found is None:
            return ServersInCommands()
        # A DSN does not name the file that has the account: what the environment does not have is
        # asked for.
        known = password_from_environment(environment()) or NO_PASSWORD
        asks = any(each.password != known for each in found.targets)
        return ServersInCommands(
            {each.name: dsn_of(each) for each in found.targets},
            ("--fleet", str(file), "--cluster", cluster),
            (_ASK,) if asks else (),
        )

    return named
