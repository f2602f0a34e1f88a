"""The consumers of a fleet file: which programs and backups read the logs of a cluster.

1. A set is written in the file, is in another file (`@path`), or is printed by a command. Relative
   paths start at the fleet file, and a command runs there.
2. A command runs as the user of gtid-audit. So a fleet file with commands must not be writable by
   every user.
3. No message repeats a value. Nothing is read here but the mode of the fleet file.
"""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.inventory.fleet_model import ClusterSection, ConsumerSection, FleetSection
from topology.adapters.inventory.problem import InventoryProblem
from topology.adapters.inventory.yaml_places import Path as Place
from topology.readings.set_in_text import NoSetInText, set_in_text

Note = Callable[[Place, str], None]


def consumers_of(
    cluster: ClusterSection, place: Place, directory: Path, note: Note
) -> tuple[ConsumerSource, ...]:
    """Return the consumers of one cluster, in order of name; note each problem at its place."""
    found = []
    servers = {server.name for server in cluster.servers}
    names = set(servers)
    for number, section in enumerate(cluster.consumers):
        here = (*place, "consumers", number)
        if section.name in names:
            note((*here, "name"), "the same name as a server or a consumer of this cluster")
        names.add(section.name)
        if section.server is not None and section.server not in servers:
            note((*here, "server"), "no server of this cluster has that name")
        source = _source_of(section, here, directory, note)
        if source is not None:
            found.append(source)
    return tuple(sorted(found, key=lambda each: each.name))


def _source_of(
    section: ConsumerSection, place: Place, directory: Path, note: Note
) -> ConsumerSource | None:
    name, server = section.name, section.server
    if (section.set is None) == (section.command is None):
        note(place, "requires exactly one of set and command")
        return None
    if section.command is not None:
        return ConsumerSource(name, server, command=section.command, directory=directory)
    assert section.set is not None, "one of the two"
    if section.set.startswith("@"):
        try:
            path = Path(section.set[1:]).expanduser()
        except RuntimeError:
            note((*place, "set"), "no home directory is known to this process")
            return None
        return ConsumerSource(name, server, file=directory / path)
    try:
        return ConsumerSource(name, server, gtid_set=set_in_text(section.set, "the text"))
    except NoSetInText:  # its message shows the text
        note((*place, "set"), "is not a GTID set; the path of a file is written @path")
        return None


def refuse_open_commands(path: Path, section: FleetSection) -> None:
    """Raise InventoryProblem if every user could change the commands of a fleet file."""
    places = [*_commands(section)]
    if places and path.stat().st_mode & stat.S_IWOTH:
        raise InventoryProblem(
            f"{path}: it has commands, and every user of this machine can change it; run"
            " `chmod o-w` on it"
        )


def _commands(section: FleetSection) -> Iterator[tuple[str, ...]]:
    if section.clusters_from is not None:
        yield section.clusters_from.command
    for cluster in section.clusters:
        if cluster.servers_from is not None:
            yield cluster.servers_from.command
        for consumer in cluster.consumers:
            if consumer.command is not None:
                yield consumer.command
