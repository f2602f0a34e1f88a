"""Completes the clusters of a fleet file with what its commands list.

The result is a section as if its listed clusters were in the file. So everything after it (names
and addresses that are used twice, accounts, limits) is checked once, for listed servers as for
others. `places` says where each listed cluster comes from, for the messages. A cluster whose
command was not needed keeps its `servers_from`: the caller leaves it out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from topology.adapters.inventory.fleet_model import (
    ClusterSection,
    CommandSection,
    FleetSection,
    PasswordSource,
)
from topology.adapters.inventory.listed_servers import (
    Answer,
    CommandRun,
    ListProblem,
    clusters_listed,
    output_name,
    servers_listed,
)
from topology.adapters.inventory.problem_words import path_text
from topology.adapters.inventory.secrets import ENVIRONMENT
from topology.adapters.inventory.yaml_places import Path as Place
from topology.readings.target import Secret

_FROM: Final = "clusters_from"


@dataclass(frozen=True, slots=True)
class ListedPlace:
    """Where a listed cluster comes from: a place in the fleet file, and a path in the output."""

    place: Place  # of the command in the fleet file
    output: str  # of which program, as text
    within: Place = ()  # of the cluster in the output; () in the form without clusters


@dataclass(slots=True)
class Listing:
    """A fleet file with its listed clusters, and the problems so far."""

    section: FleetSection
    places: dict[int, ListedPlace] = field(default_factory=dict)  # by the number of the cluster
    problems: list[tuple[Place, str]] = field(default_factory=list)  # of keys in the file
    command_problems: list[tuple[Place, str]] = field(default_factory=list)
    is_partial: bool = False  # commands of other clusters were not run


def list_servers(
    section: FleetSection, directory: Path, environment: Mapping[str, str], cluster: str | None
) -> Listing:
    """Run the commands of a fleet file, and return it with what they list.

    Relative programs start at `directory`, which is that of the fleet file. `cluster`: only this
    one is needed. Problems are returned, and nothing is raised.
    """
    listing = Listing(section, problems=[*_problems_of_keys(section)])
    if listing.problems:
        return listing
    run = CommandRun(
        directory, section.limits.command_seconds_max, _secrets_of(section, environment)
    )
    clusters = [*section.clusters]
    in_file = {each.name for each in clusters}
    is_one = cluster in in_file
    needed = [
        number
        for number, each in enumerate(clusters)
        if each.servers_from is not None and (not is_one or each.name == cluster)
    ]
    port = section.defaults.port
    answers = servers_listed([clusters[number] for number in needed], run, port=port)
    for number, answer in zip(needed, answers, strict=True):
        given = clusters[number].servers_from
        assert given is not None, "selected by it"
        place: Place = ("clusters", number, "servers_from")
        listing.places[number] = ListedPlace(place, output_name(given))
        clusters[number : number + 1] = _taken(listing, answer, place, given) or [clusters[number]]
    if section.clusters_from is not None and not is_one:
        origin = output_name(section.clusters_from)
        found = clusters_listed(section.clusters_from, run, port=port)
        for index, each in enumerate(_taken(listing, found, (_FROM,), section.clusters_from)):
            listing.places[len(clusters)] = ListedPlace((_FROM,), origin, ("clusters", index))
            clusters.append(each)
    is_skipped = is_one and section.clusters_from is not None
    listing.is_partial = is_skipped or any(each.servers_from is not None for each in clusters)
    listing.section = section.model_copy(
        update={"clusters": tuple(clusters), "clusters_from": None}
    )
    return listing


def _taken(
    listing: Listing, answer: Answer, place: Place, given: CommandSection
) -> list[ClusterSection]:
    if not isinstance(answer, ListProblem):
        return [*answer]
    name = output_name(given)
    for path, problem in answer.problems:
        inside = path_text(path)
        text = f"{name}: {inside}: {problem}" if inside else f"{name}: {problem}"
        listing.command_problems.append((place, text))
    return []


def _problems_of_keys(section: FleetSection) -> list[tuple[Place, str]]:
    """Return what is wrong with the keys that list clusters and servers."""
    found: list[tuple[Place, str]] = []
    if not section.clusters and section.clusters_from is None:
        is_there = "clusters" in section.model_fields_set
        found.append((("clusters",), "is empty" if is_there else "is missing"))
    for number, cluster in enumerate(section.clusters):
        place: Place = ("clusters", number)
        if cluster.servers and cluster.servers_from is not None:
            found.append((place, "has servers and servers_from; use only one of the two"))
        elif "servers" not in cluster.model_fields_set and cluster.servers_from is None:
            found.append(((*place, "servers"), "is missing"))
    return found


def _secrets_of(section: FleetSection, environment: Mapping[str, str]) -> tuple[Secret, ...]:
    """Return the passwords that a command may find in its environment."""
    sources: list[PasswordSource | None] = [section.defaults.password]
    sources += [each.password for cluster in section.clusters for each in cluster.servers]
    names = {*ENVIRONMENT, *(each.env for each in sources if each is not None and each.env)}
    return tuple(Secret(environment[name]) for name in sorted(names) if environment.get(name))
