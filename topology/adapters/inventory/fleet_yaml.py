"""The text of a fleet file as values with places, and its limit on servers.

The limit is noticed while the text is read: a file with too many servers costs the time of its
first ones. Servers that a command lists are counted when it has ended, in fleet_file.py.
"""

from typing import Any, Final

from topology.adapters.inventory.fleet_model import SERVERS_DEFAULT, SERVERS_MAX
from topology.adapters.inventory.yaml_places import Path, YamlFile
from topology.adapters.inventory.yaml_values import Watch, YamlProblem

__all__ = ["Path", "YamlFile", "YamlProblem", "fleet_yaml"]


def too_many_servers(count: int, values: dict[Any, Any]) -> str | None:
    """Return why to stop reading: the servers so far are more than the limit.

    A limit that is written below the servers is not known yet: its maximum counts until then.
    """
    limits = values.get("limits")
    servers_max: object = SERVERS_MAX if "limits" not in values else SERVERS_DEFAULT
    if isinstance(limits, dict):
        servers_max = limits.get("servers_max", SERVERS_DEFAULT)
    if type(servers_max) is not int or count <= min(servers_max, SERVERS_MAX):
        return None
    return f"more servers than limits.servers_max, {servers_max:,}; the rest was not read"


_WATCH: Final = Watch(("clusters", "servers"), too_many_servers)


def fleet_yaml(text: str) -> YamlFile:
    """Read the text of a fleet file. Raises YamlProblem, also for too many servers."""
    return YamlFile(text, _WATCH)
