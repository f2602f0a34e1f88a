"""Filters of a channel: what they leave out of a delivery is executed without its rows.

The GTID of such a transaction counts as executed, so no source sends it again. Where a channel had
filters when the plan was made, the plan states this. Where it had none, the script requires that it
still has none: CHANGE REPLICATION FILTER, or a restart with other options, may have come between.
Before 8.0.1 only the statement that shows the state of replication lists filters, and no script can
use its answer.
"""

from collections.abc import Iterator

from repair.dialect import ChannelQuestions
from repair.guard import Guard
from repair.procedure import Setting
from topology.dialect import REWRITES


def without_rows(channel: str, setting: Setting) -> Iterator[str]:
    """Yield that filters may leave out rows of what a step delivers, as a warning."""
    found, name = _filters(channel, setting), setting.server.name
    if found and setting.arriving:
        yield (
            f"the filters of {name} ({', '.join(found)}) stay: what they leave out of"
            f" {setting.arriving.shortened()} counts as executed on {name} without its rows, and no"
            " source sends it again"
        )


def still_unfiltered(channel: str, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Require that a channel without filters has none since, where something is to arrive."""
    if not setting.arriving or _filters(channel, setting) or asks.filters == "NULL":
        return
    yield Guard(
        f"{asks.filters} IS NULL",
        f"{setting.server.name}: its channel has new filters; audit and plan again: ",
        detail=asks.filters,
    )


def _filters(channel: str, setting: Setting) -> tuple[str, ...]:
    return tuple(each for each in setting.channel(channel).filters if not each.startswith(REWRITES))
