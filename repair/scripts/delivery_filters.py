"""Filters of a channel or of a binary log: what they omit from a delivery.

The GTID of an omitted transaction counts as executed, so no source sends it again. The rows are
missing on the server (filters of the channel), or on its replicas (binlog_do_db and
binlog_ignore_db). If such filters were read, the plan states this. If a channel had none, the
script requires that it still has none. CHANGE REPLICATION FILTER, or a restart with other options,
may have added some. Before 8.0.1 only the statement that shows the state of replication lists
filters, and no script can use its result.
"""

from collections.abc import Iterator

from repair.scripts.procedure import Setting
from repair.sql.channel_queries import ChannelQuestions
from repair.sql.guard import Guard
from topology.readings.dialect import REWRITES


def without_rows(channel: str, setting: Setting) -> Iterator[str]:
    """Yield a warning that filters may omit rows of what a step delivers."""
    found, name = _filters(channel, setting), setting.server.name
    if setting.server.log_filters and setting.arriving:
        options = ", ".join(f"{option} = {value}" for option, value in setting.server.log_filters)
        yield (
            f"{name} does not log all that it applies ({options}): its replicas get"
            f" {setting.arriving.shortened()} without the rows that it leaves out, and no source"
            f" sends these later. Remove the option and restart {name} first"
        )
    if found and setting.arriving:
        yield (
            f"the filters of {name} ({', '.join(found)}) stay: what they leave out of"
            f" {setting.arriving.shortened()} counts as executed on {name} without its rows, and no"
            " source sends it again"
        )


def still_unfiltered(channel: str, setting: Setting, asks: ChannelQuestions) -> Iterator[Guard]:
    """Yield the guard that a channel without filters still has none, if anything is to arrive."""
    if not setting.arriving or _filters(channel, setting) or asks.filters == "NULL":
        return
    yield Guard(
        f"{asks.filters} IS NULL",
        f"{setting.server.name}: its channel has new filters; audit and plan again: ",
        detail=asks.filters,
    )


def _filters(channel: str, setting: Setting) -> tuple[str, ...]:
    return tuple(each for each in setting.channel(channel).filters if not each.startswith(REWRITES))
