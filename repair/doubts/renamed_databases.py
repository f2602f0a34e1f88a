"""Whether rows of one server's log are in other databases on another server.

A channel with Replicate_Rewrite_DB applies what its source did in `d` to `e`, and logs it as `e`. A
table of the same name may exist on both servers, and has nothing to do with it:

    db1  d.orders  --(d, e)-->  db2  e.orders     the rows of d.orders
                                     d.orders     other rows

Rows that are looked up, compared or written by their names are then those of another table (tried
on 9.7.4). So they are not read. 5.6 does not show this filter.
"""

from collections.abc import Mapping

from topology.readings.dialect import REWRITES
from topology.readings.snapshot import ServerSnapshot


def renamed_between(one: str, other: str, readings: Mapping[str, ServerSnapshot]) -> str:
    """Return why rows may have other names on one of two servers, as text; "" if they have not.

    Besides the two, every server matters that passes on what it applied.
    """
    if one == other:
        return ""
    passed_on = {
        channel.source_uuid for server in readings.values() for channel in server.channels or ()
    }
    for name, server in sorted(readings.items()):
        if name not in (one, other) and server.server_uuid not in passed_on:
            continue
        for channel in server.channels or ():
            filters = [each for each in channel.filters if each.startswith(REWRITES)]
            if filters:
                return (
                    f"{name} applies changes in other databases than its source has them in"
                    f" ({filters[0]}): a table of the same name may be another one"
                )
    return ""
