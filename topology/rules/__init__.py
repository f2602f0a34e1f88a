"""The table of rules: pure functions from the facts of a cluster to findings.

Each module lists its own rules at its end, with the codes that they report. The order does not
matter, because findings are sorted afterwards. suppression.py decides which finding explains which.
"""

from topology.rules import (
    backlogs,
    bypassed,
    could_join,
    coverage,
    crash_gaps,
    differences,
    failed_appliers,
    filters,
    former_server_ids,
    ghosts,
    group_backlogs,
    group_members,
    hanging_receivers,
    lost_history,
    one_reading,
    origins,
    passed,
    passing_on,
    promotable,
    purge_deadlines,
    purged,
    risky_settings,
    set_shapes,
    settings,
    stalled_appliers,
    threads,
    without_content,
)
from topology.rules.build import Rule, Undecided

RULES = (
    *backlogs.RULES,
    *stalled_appliers.RULES,
    *crash_gaps.RULES,
    *differences.RULES,
    *bypassed.RULES,
    *passed.RULES,
    *ghosts.RULES,
    *lost_history.RULES,
    *one_reading.RULES,
    *without_content.RULES,
    *could_join.RULES,
    *coverage.RULES,
    *purged.RULES,
    *purge_deadlines.RULES,
    *promotable.RULES,
    *failed_appliers.RULES,
    *threads.RULES,
    *hanging_receivers.RULES,
    *passing_on.RULES,
    *settings.RULES,
    *former_server_ids.RULES,
    *risky_settings.RULES,
    *set_shapes.RULES,
    *filters.RULES,
    *origins.RULES,
    *group_backlogs.RULES,
    *group_members.RULES,
)

# What was read leaves something open that a rule would report: the verdict is UNKNOWN at least.
UNDECIDED: tuple[Undecided, ...] = (
    coverage.not_compared,
    without_content.not_decided,
    settings.unread_server_ids,
    purge_deadlines.unread_deadlines,
)

__all__ = ["RULES", "UNDECIDED", "Rule"]
