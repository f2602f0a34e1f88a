"""Which rules evaluate each channel by itself, so that their findings can be kept.

A rule is listed here if its findings about the channels of a replica follow from the inputs of that
replica (topology/facts/kept_inputs.py), from the facts of the edges to it, and from those of the
edges to its sources. It takes the channels from `facts.edges` or `facts.channels()`, and looks up
other edges with `facts.edges_into`. Every other rule is evaluated for the whole cluster each time:
it compares servers with each other, or it is cheap where it finds nothing.
"""

from typing import Final

from topology.rules import (
    backlogs,
    bypassed,
    crash_gaps,
    differences,
    filters,
    hanging_receivers,
    passed,
    purged,
    risky_settings,
    threads,
)
from topology.rules.build import Rules

OF_CHANNELS: Final[Rules] = (
    *backlogs.RULES,
    *crash_gaps.RULES,
    *bypassed.RULES,
    *passed.RULES,
    *hanging_receivers.RULES,
    differences.allowed_extra,
    filters.ignored_by_receiver,
    purged.latent_1236,
    risky_settings.clocks_differ,
    threads.receiver_error,
    threads.replication_not_running,
    threads.stops_at_until,
    threads.auto_position_off,
)
