"""Lists what the evaluation on columns knows of the rules: which ones, and what they need.

1. CLEAN_WHEN_SILENT lists the rules that were compared with the conditions of clean_clusters.py.
   With any other rule no cluster is clean, until a developer has compared that rule with these
   conditions.
2. COLUMNS decide whether a cluster is clean. A cluster that is not clean needs ASKED too, and the
   columns that the evidence of its findings quotes.
3. This module evaluates nothing.
"""

from collections.abc import Iterable
from typing import Final

from topology.adapters.snapshot_columns import SNAPSHOT_SCHEMA
from topology.catalogue.findings import Finding
from topology.rules import RULES

# The columns that decide whether a cluster is clean, from SNAPSHOT_SCHEMA of topology/adapters.
COLUMNS: Final = (
    "cluster",
    "name",
    "host",
    "port",
    "phase",
    "read_started",
    "read_ended",
    "server_uuid",
    "server_id",
    "version",
    "vendor",
    "uptime_seconds",
    "gtid_executed",
    "gtid_purged",
    "gtid_owned",
    "log_end",
    "channels",
    "unread",
    "group",
    "notable_settings",
    "server_clock",
    "history_evidence",
)

# The rules that were compared with the conditions, by name: a rule here is not imported.
CLEAN_WHEN_SILENT: Final = frozenset(
    {
        "tail_gap",
        "applier_backlog",
        "receiver_backlog",
        "passed_by_applier",
        "source_ghost",
        "applier_blocked",
        "applier_stalled",
        "crash_gap",
        "gap_not_recovered",
        "unconfirmed_lead",
        "ahead_of_the_only_reading",
        "allowed_extra",
        "bypassed_by_position",
        "errant_available",
        "errant_purged",
        "crash_lost",
        "history_reset",
        "made_by_hand",
        "purged_on_source",
        "runway_short",
        "latent_1236",
        "candidate_purged",
        "fragmented_set",
        "unknown_origin",
        "dead_uuids",
        "numbers_nearly_used",
        "durability",
        "without_commit_order",
        "short_retention",
        "writable_replica",
        "relay_log_not_recovered",
        "auto_increment_overlap",
        "clocks_differ",
        "versions_refuse",
        "applier_error",
        "receiver_error",
        "replication_not_running",
        "stops_at_until",
        "servers_not_linked",
        "can_join",
        "cannot_join_purged",
        "cannot_join_diverged",
        "source_outside",
        "kind_not_evaluated",
        "auto_position_off",
        "duplicate_server_id",
        "receiver_hangs",
        "source_without_log",
        "log_closed",
        "source_refuses_sets",
        "updates_not_logged",
        "binary_log_filtered",
        "channel_filtered",
        "ignored_by_receiver",
        "former_server_id",
        "silent_errors",
        "executed_without_content",
        "set_before_committed",
        "set_while_waiting",
        "session_made_another",  # it needs a stopped applier and the evidence of two logs
        "duplicate_server_uuid",
        "member_backlogs",
        "block_gaps",
        "recovery_errors",
        "servers_outside",
        "separate_parts",
        "unreachable_members",
        "members_outside",
        "members_not_known",
        "unreadable_facts",
        "unparseable_facts",
        "torn_reading",
    }
)

# Also needed by rules, for a cluster that is not clean: commit order, ports, directories.
ASKED: Final = ("settings",)

# Columns in neither list that the evidence of a finding quotes, by code.
QUOTED: Final = {
    "U4": ("version_text",),
    **dict.fromkeys(("A7", "E3", "E6", "H3", "H4", "H7", "J1", "P1"), ("binary_logs",)),
}
_OTHERS: Final = tuple(name for name in SNAPSHOT_SCHEMA.names if name not in (*COLUMNS, *ASKED))


def other_columns(findings: Iterable[Finding], *, has_evidence: bool) -> tuple[str, ...]:
    """Return the columns that must still be read before the rules can report everything.

    `has_evidence`: a server has evidence of its history, or the cluster has consumers. The rules on
    these also need binary logs (topology/rules/without_content.py, consumer_sets.py), and would
    report nothing without them.
    """
    if has_evidence or not every_rule_is_known():
        return _OTHERS
    quoted = {name for finding in findings for name in QUOTED.get(finding.code, ())}
    return tuple(sorted(quoted))


def every_rule_is_known() -> bool:
    """Return whether every rule was compared with the conditions on columns."""
    return {rule.__name__ for rule in RULES} <= CLEAN_WHEN_SILENT
