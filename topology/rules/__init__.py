"""The table of rules: pure functions from the facts of a cluster to findings.

To add a verdict, add a row here and a row in the catalogue. The order of the rows does not matter,
because findings are sorted afterwards. suppression.py decides which finding explains which.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from topology.facts import ClusterFacts
from topology.findings import Finding
from topology.rules.backlogs import (
    applier_backlog,
    applier_blocked,
    applier_stalled,
    receiver_backlog,
    tail_gap,
)
from topology.rules.bypassed import bypassed_by_position
from topology.rules.could_join import (
    can_join,
    cannot_join_diverged,
    cannot_join_purged,
    servers_not_linked,
)
from topology.rules.differences import (
    allowed_extra,
    errant_available,
    errant_purged,
    unconfirmed_lead,
)
from topology.rules.filters import binary_log_filtered, ignored_by_receiver
from topology.rules.hanging_receivers import receiver_hangs
from topology.rules.identity import duplicate_server_uuid, torn_reading, unreadable_facts
from topology.rules.lost_history import crash_lost, history_reset, made_by_hand
from topology.rules.partial import kind_not_evaluated, source_outside
from topology.rules.passed import passed_by_applier
from topology.rules.passing_on import (
    log_closed,
    source_refuses_sets,
    source_without_log,
    updates_not_logged,
)
from topology.rules.purged import purged_on_source
from topology.rules.settings import duplicate_server_id, former_server_id, silent_errors
from topology.rules.threads import (
    applier_error,
    auto_position_off,
    receiver_error,
    replication_not_running,
    stops_at_until,
)
from topology.rules.without_content import executed_without_content, set_before_committed

Rule: TypeAlias = Callable[[ClusterFacts], Iterator[Finding]]

RULES: tuple[Rule, ...] = (
    tail_gap,  # T1
    applier_backlog,  # T2
    receiver_backlog,  # T3
    unconfirmed_lead,  # T4
    allowed_extra,  # T6
    bypassed_by_position,  # H1
    passed_by_applier,  # H8
    errant_available,  # E1
    errant_purged,  # E2
    crash_lost,  # E3
    history_reset,  # E6
    made_by_hand,  # H7
    executed_without_content,  # E4
    set_before_committed,  # E4
    can_join,  # J1
    cannot_join_purged,  # J2
    cannot_join_diverged,  # J3
    source_outside,  # J4
    purged_on_source,  # P1
    applier_error,  # A1 A2 A3
    receiver_error,  # A4
    receiver_hangs,  # A4
    source_without_log,  # A4
    applier_blocked,  # A5
    replication_not_running,  # A7
    stops_at_until,  # A7
    applier_stalled,  # A8
    log_closed,  # A9
    servers_not_linked,  # A7
    duplicate_server_uuid,  # C1
    duplicate_server_id,  # C2
    former_server_id,  # C2
    auto_position_off,  # C3
    source_refuses_sets,  # C4
    updates_not_logged,  # C6
    binary_log_filtered,  # C11
    ignored_by_receiver,  # C11
    silent_errors,  # C15
    unreadable_facts,  # U1
    torn_reading,  # U2
    kind_not_evaluated,  # U4
)

__all__ = ["RULES", "Rule"]
