"""Which code decides, and which tests, all without servers, should notice a change of it.

The cheapest tests come first: most mutants are noticed by them, and the rest is not run then.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_HISTORIES = ("tests/topology/test_world.py", "tests/simulation/test_histories.py")


@dataclass(frozen=True)
class Target:
    """Files that decide, and the tests of them."""

    name: str
    files: tuple[str, ...]
    tests: tuple[str, ...]
    # Much slower, and left out with QUICK=1.
    slow: tuple[str, ...] = ()
    # Its tests call kernels, which are compiled where that was not done before.
    compiles: bool = False


TARGETS: Sequence[Target] = (
    Target(
        "the service",
        (
            *("gtid_audit/service/audit_schedule.py", "gtid_audit/service/finding_changes.py"),
            *("gtid_audit/service/cluster_results.py", "gtid_audit/tasks/served_memory.py"),
            *("gtid_audit/tasks/merged_memory.py", "gtid_audit/tasks/history_memory.py"),
            "gtid_audit/tasks/forgotten_memory.py",
            *("gtid_audit/service/query_parameters.py", "gtid_audit/service/paging.py"),
            *("gtid_audit/service/access.py", "gtid_audit/service/readiness.py"),
            "gtid_audit/service/scrape_answers.py",
        ),
        (
            *("tests/gtid_audit/test_audit_schedule.py", "tests/gtid_audit/test_service.py"),
            *("tests/gtid_audit/test_finding_changes.py", "tests/gtid_audit/test_api.py"),
            *("tests/gtid_audit/test_served_memory.py", "tests/gtid_audit/test_web.py"),
            *(
                "tests/gtid_audit/test_content_memory.py",
                "tests/gtid_audit/test_forgotten_memory.py",
            ),
            *("tests/gtid_audit/test_loaded_files.py", "tests/gtid_audit/test_lasting_findings.py"),
            "tests/gtid_audit/test_scrape_answers.py",
        ),
    ),
    Target(
        "kept results",
        (
            *("topology/facts/kept_results.py", "topology/facts/kept_inputs.py"),
            *("topology/kept_findings.py", "topology/rules/of_channels.py"),
        ),
        ("tests/simulation/test_kept_results.py",),
    ),
    Target(
        "the fleet file and a stored run",
        ("spark_audit/absent_readings.py", "spark_audit/expected_fleet.py"),
        ("tests/spark_audit/test_expected_fleet.py",),
    ),
    Target(
        "pictures",
        (
            *("gtid_audit/views/interval_map.py", "gtid_audit/views/topology_tree.py"),
            *("gtid_audit/views/short_labels.py", "gtid_audit/views/uuid_overview.py"),
        ),
        (
            *("tests/gtid_audit/test_interval_map.py", "tests/gtid_audit/test_topology_tree.py"),
            *("tests/gtid_audit/test_short_labels.py", "tests/gtid_audit/test_report.py"),
        ),
    ),
    Target(
        "next steps and failing rows",
        (
            *("gtid_audit/views/next_steps.py", "topology/catalogue/next_step_table.py"),
            *("gtid_audit/operands/servers_in_commands.py", "gtid_audit/views/failing_rows.py"),
        ),
        ("tests/gtid_audit/test_next_steps.py", "tests/gtid_audit/test_failing_rows.py"),
    ),
    Target(
        "data check",
        (
            *("repair/data_check/checked_tables.py", "repair/data_check/part_comparison.py"),
            *("repair/data_check/part_queries.py", "repair/data_check/checked_data.py"),
        ),
        ("tests/repair/test_data_check.py",),
    ),
    Target(
        "forms of answers",
        (
            *("gtid_audit/output_form.py", "gtid_audit/views/plugin_line.py"),
            *("gtid_audit/views/json_lines.py", "gtid_audit/views/audit_counts.py"),
            "gtid_audit/commands/watching.py",
        ),
        (
            *("tests/gtid_audit/test_formats.py", "tests/gtid_audit/test_watch.py"),
            "tests/gtid_audit/test_report.py",
        ),
    ),
    Target(
        "options and their variables",
        (
            "gtid_audit/commands/environment_names.py",
            "gtid_audit/commands/plain_commands.py",
        ),
        ("tests/gtid_audit/test_command_tree.py", "tests/gtid_audit/test_global_options.py"),
    ),
    Target(
        "metrics",
        ("gtid_audit/service/audit_series.py", "gtid_audit/service/metrics.py"),
        (
            *("tests/gtid_audit/test_metrics.py", "tests/gtid_audit/test_labels.py"),
            "tests/gtid_audit/test_lasting_findings.py",
        ),
    ),
    Target(
        "listed servers",
        (
            "topology/adapters/inventory/listed_servers.py",
            "topology/adapters/inventory/listed_clusters.py",
        ),
        ("tests/topology/test_listed_servers.py", "tests/topology/test_fleet_file.py"),
    ),
    Target(
        "accounts",
        (
            *("topology/adapters/inventory/dsn.py", "topology/adapters/inventory/targets.py"),
            *("topology/adapters/inventory/option_file.py", "topology/adapters/tls_contexts.py"),
            *("topology/adapters/inventory/login_file.py",),
            "topology/adapters/inventory/option_meanings.py",
            *("topology/adapters/inventory/secrets.py", "topology/adapters/inventory/accounts.py"),
            "topology/adapters/inventory/account_files.py",
            "topology/adapters/inventory/tls_choice.py",
        ),
        (
            *("tests/topology/test_dsn.py", "tests/topology/test_secrets.py"),
            *("tests/topology/test_tls_choice.py", "tests/topology/test_account_files.py"),
            *("tests/topology/test_option_file.py", "tests/topology/test_fleet_file.py"),
            "tests/topology/test_login_file.py",
        ),
    ),
    Target(
        "vendors",
        (
            *("topology/readings/vendors.py", "topology/adapters/vendor_facts.py"),
            *("topology/adapters/vendor_reasons.py", "topology/adapters/gtid_server.py"),
        ),
        (
            *("tests/topology/test_vendors.py", "tests/topology/test_reader_edges.py"),
            "tests/gtid_audit/test_other_servers.py",
        ),
    ),
    Target(
        "repaired definitions",
        (
            *("repair/strategies/added_columns.py", "repair/strategies/changed_columns.py"),
            *("repair/strategies/definition_changes.py", "repair/strategies/definition_repair.py"),
            *(
                "repair/strategies/planned_definition.py",
                "topology/definitions/definition_scope.py",
            ),
        ),
        (
            *("tests/repair/test_definition_changes.py", "tests/repair/test_definition_views.py"),
            "tests/repair/test_definition_repair.py",
        ),
    ),
    Target(
        "history and acceptance",
        (
            *("topology/finding_history.py", "topology/adapters/history_file.py"),
            "topology/facts/accepted_findings.py",
        ),
        (
            *("tests/topology/test_history_file.py", "tests/topology/test_accepted_findings.py"),
            "tests/spark_audit/test_local_results.py",
        ),
    ),
    Target(
        "handshake",
        (
            "topology/handshake/matrix.py",
            *("topology/handshake/group_answers.py", "topology/handshake/group_names.py"),
            *("topology/handshake/group_steps.py", "topology/handshake/promotion.py"),
            *("topology/handshake/promotion_steps.py", "topology/handshake/promotion_waits.py"),
            *("topology/handshake/unlike_contents.py", "topology/handshake/channel_steps.py"),
            *("topology/handshake/server_ids.py", "topology/facts/missing_logs.py"),
            *("topology/handshake/partial_readings.py", "topology/handshake/left_out_above.py"),
            *("topology/handshake/promotion_ways.py", "topology/handshake/offered_sets.py"),
            "topology/handshake/late_extras.py",
            "topology/facts/refusal_texts.py",
            "topology/facts/source_answer.py",
            *("topology/readings/set_in_text.py", "topology/readings/consumers.py"),
        ),
        (
            *("tests/gtid_audit/test_offered_set.py", "tests/topology/test_consumer_sets.py"),
            *("tests/topology/test_handshake.py", "tests/topology/test_group_handshake.py"),
            "tests/topology/test_late_extras.py",
            *("tests/topology/test_group_promotions.py", "tests/topology/test_promotion_order.py"),
            *("tests/topology/test_promotion_edges.py", "tests/topology/test_unlike_contents.py"),
            *("tests/gtid_audit/test_handshake_command.py", "tests/topology/test_refusal_texts.py"),
            *("tests/topology/test_source_answer.py", "tests/topology/test_channel_steps.py"),
            *("tests/topology/test_partial_readings.py", "tests/topology/test_left_out_above.py"),
            "tests/topology/test_dropped_by_server_id.py",
            "tests/topology/test_missing_logs.py",
            "tests/simulation/test_transcripts.py",
        ),
    ),
    Target(
        "locks",
        ("topology/locks/lock_waits.py", "topology/locks/metadata_conflicts.py"),
        ("tests/topology/test_lock_waits.py",),
    ),
    Target(
        "definitions",
        (
            *("topology/definitions/canonical.py", "topology/definitions/compared_clauses.py"),
            *("topology/definitions/compared_pairs.py", "topology/definitions/ddl_searches.py"),
            *("topology/definitions/object_drift.py", "topology/definitions/pair_drift.py"),
            *("topology/definitions/row_effects.py", "topology/definitions/schema_versions.py"),
            *("topology/definitions/visibility.py", "gtid_audit/tasks/ddl_of_others.py"),
        ),
        ("tests/topology/test_definition_drift.py", "tests/gtid_audit/test_ddl_of_others.py"),
    ),
    Target(
        "archive histories",
        (
            *("binlog/locating/histories.py", "binlog/locating/cover.py"),
            *("binlog/locating/copied_files.py", "binlog/locating/continuity.py"),
            "binlog/adapters/split_transactions.py",
        ),
        (
            *("tests/binlog/test_histories.py", "tests/binlog/test_copied_files.py"),
            *("tests/binlog/test_continuity.py", "tests/binlog/test_split_transactions.py"),
        ),
    ),
    Target(
        "archives read",
        ("binlog/adapters/one_history.py",),
        (
            *("tests/binlog/test_one_history.py", "tests/binlog/test_scan.py"),
            "tests/gtid_audit/test_binlog_show_twice.py",
        ),
    ),
    Target(
        "schema findings",
        ("topology/rules/schema_differences.py", "topology/rules/definition_causes.py"),
        ("tests/topology/test_schema_differences.py", "tests/topology/test_scenarios.py"),
    ),
    Target(
        "errors explained",
        (
            *("topology/rules/error_causes.py", "topology/rules/filtered_tables.py"),
            *("topology/readings/quoted_tables.py", "topology/readings/replication_filters.py"),
            *("topology/catalogue/quoted_sets.py", "topology/catalogue/explanations.py"),
        ),
        (
            *("tests/topology/test_error_causes.py", "tests/topology/test_filtered_tables.py"),
            *("tests/topology/test_replication_filters.py", "tests/topology/test_quoted_sets.py"),
            *("tests/topology/test_table_effects.py", "tests/topology/test_explain.py"),
        ),
    ),
    Target(
        "tracing",
        (
            "topology/tracing/causes.py",
            "topology/tracing/error_classes.py",
            "topology/tracing/stopped_threads.py",
            "topology/facts/failed_transactions.py",
            "topology/tracing/table_effects.py",
        ),
        (
            *("tests/topology/test_trace_causes.py", "tests/topology/test_table_effects.py"),
            *("tests/topology/test_stopped_threads.py", "tests/gtid_audit/test_trace_command.py"),
            "tests/topology/test_failed_transactions.py",
        ),
    ),
    Target(
        "discovery",
        ("topology/adapters/discover.py", "topology/adapters/neighbours.py"),
        ("tests/topology/test_discover.py",),
    ),
    Target(
        "answers of servers",
        (
            *("topology/adapters/statement_batch.py", "topology/adapters/counted_results.py"),
            "topology/adapters/received_packets.py",
        ),
        (
            *("tests/topology/test_statement_batch.py", "tests/topology/test_counted_results.py"),
            "tests/topology/test_connection.py",
        ),
    ),
    Target(
        "pasted output",
        ("topology/adapters/offline",),
        (
            *("tests/topology/test_pasted_output.py", "tests/topology/test_pasted_facts.py"),
            *("tests/topology/test_pasted_files.py", "tests/gtid_audit/test_offline_command.py"),
        ),
    ),
    Target(
        "facts and rules",
        (
            *(
                "topology/facts/cluster_facts.py",
                "topology/facts/edge_facts.py",
                "topology/facts/cluster_readings.py",
                "topology/facts/errant.py",
                "topology/facts/graph.py",
                "topology/suppression.py",
            ),
            *(
                "topology/facts/unseen.py",
                "topology/facts/below_external.py",
                "topology/facts/joining.py",
                "topology/readings/replication_filters.py",
            ),
            *(
                "topology/facts/applier_facts.py",
                "topology/facts/applier_workers.py",
                "topology/facts/applier_movement.py",
                "topology/facts/progress.py",
                "topology/facts/lost.py",
                "topology/facts/loss_history.py",
            ),
            *(
                "topology/facts/receivers.py",
                "topology/facts/not_received.py",
                "topology/facts/reset_signs.py",
            ),
            *(
                "topology/readings/history_evidence.py",
                "topology/facts/former_ids.py",
                "topology/facts/assigned_gtids.py",
                "topology/facts/former_logs.py",
            ),
            *(
                "topology/facts/channel_places.py",
                "topology/facts/siblings.py",
                "topology/facts/content_pairs.py",
                "topology/facts/skipping.py",
            ),
            *(
                "topology/readings/one_server.py",
                "topology/readings/torn_readings.py",
                "topology/facts/unlogged.py",
            ),
            *(
                "topology/facts/gtid_waits.py",
                "topology/questions/log_questions.py",
                "topology/facts/accepted.py",
            ),
            *("topology/questions/log_searches.py", "topology/questions/commit_questions.py"),
            *(
                "topology/facts/ignored_servers.py",
                "topology/audit_cluster.py",
                "topology/facts/declared.py",
            ),
            *(
                "topology/facts/committed_by_hand.py",
                "topology/facts/other_versions.py",
                "topology/facts/unread_relay_log.py",
                "topology/facts/log_order.py",
                "topology/facts/declared_later.py",
                "topology/facts/declared_sets.py",
            ),
            *("topology/facts/since_reading.py", "topology/readings/read_once.py"),
            *(
                "topology/facts/memberships.py",
                "topology/facts/group_facts.py",
                "topology/facts/group_appliers.py",
                "topology/facts/half_received.py",
            ),
            *(
                "topology/facts/islands.py",
                "topology/facts/last_result.py",
                "topology/facts/restarts.py",
                "topology/facts/runway.py",
                "topology/facts/unknown_origins.py",
            ),
            "topology/rules",
        ),
        (
            *("tests/topology/test_scenarios.py", "tests/topology/test_facts.py"),
            "tests/topology/test_read_once.py",
            *("tests/topology/test_lost.py", "tests/topology/test_one_server.py"),
            *("tests/topology/test_replication_filters.py", "tests/topology/test_suppression.py"),
            *("tests/topology/test_decisions.py", "tests/topology/test_unlogged.py"),
            *("tests/topology/test_remaining_causes.py", "tests/topology/test_content_facts.py"),
            *("tests/topology/test_siblings.py", "tests/topology/test_not_received.py"),
            "tests/topology/test_content_pairs.py",
            *("tests/topology/test_accepted.py", "tests/topology/test_suppression_severity.py"),
            *("tests/topology/test_emptied.py", "tests/topology/test_words.py"),
            *("tests/topology/test_log_places.py", "tests/topology/test_log_questions.py"),
            *("tests/topology/test_applier_facts.py", "tests/topology/test_missing_facts.py"),
            *("tests/topology/test_joining.py", "tests/topology/test_progress.py"),
            "tests/topology/test_below_external.py",
            *("tests/topology/test_unseen.py", "tests/topology/test_content_words.py"),
            *("tests/topology/test_loss_moments.py", "tests/topology/test_changed_facts.py"),
            *("tests/topology/test_declared.py", "tests/topology/test_left_behind.py"),
            *("tests/topology/test_declared_later.py", "tests/topology/test_declared_sets.py"),
            *("tests/topology/test_single_facts.py", "tests/topology/test_single_rules.py"),
            *("tests/topology/test_other_versions.py", "tests/topology/test_log_order.py"),
            *("tests/topology/test_unread_relay_log.py", "tests/topology/test_out_of_order.py"),
            *("tests/topology/test_approved_findings.py", "tests/simulation/test_transcripts.py"),
            *("tests/topology/test_fact_digests.py", "tests/tidy/test_decision_tables.py"),
            *("tests/topology/test_former_server_id.py", "tests/topology/test_purged_logs.py"),
            *("tests/topology/test_errant_sources.py", "tests/topology/test_equal_server_ids.py"),
            *("tests/topology/test_gtid_waits.py", "tests/topology/test_refusing_sources.py"),
            *("tests/topology/test_absent_causes.py", "tests/topology/test_assigned_gtids.py"),
            *("tests/topology/test_channel_states.py", "tests/topology/test_consumer_sets.py"),
            *("tests/topology/test_runway.py", "tests/topology/test_latest.py"),
            *("tests/topology/test_single_sets.py", "tests/topology/test_single_readings.py"),
            *("tests/topology/test_unknown_origins.py", "tests/topology/test_source_ghosts.py"),
            *("tests/topology/test_crash_gaps.py", "tests/topology/test_purged_holes.py"),
            "tests/topology/test_donors.py",
            *("tests/topology/test_committed_by_hand.py", "tests/topology/test_distinct_uuids.py"),
        ),
        slow=_HISTORIES,
    ),
    Target(
        "applying a plan",
        (
            *("repair/applying/reached_state.py", "repair/applying/written_plan.py"),
            *("repair/applying/script_reader.py", "repair/applying/audit_afterwards.py"),
            "gtid_audit/tasks/unfinished_repairs.py",
        ),
        (
            *("tests/repair/test_reached_state.py", "tests/repair/test_written_plan.py"),
            *("tests/repair/test_script_reader.py", "tests/repair/test_audit_afterwards.py"),
            *("tests/repair/test_journal.py", "tests/gtid_audit/test_unfinished_repairs.py"),
        ),
    ),
    Target(
        "planner and strategies",
        (
            *(
                "repair/planner.py",
                "repair/strategies/fetching_again.py",
                "repair/strategies/fetched_conflicts.py",
                "repair/doubts/switch_doubts.py",
                "repair/strategies/moving_past.py",
                "repair/strategies/strategy_registry.py",
                "repair/plan_input.py",
                "repair/answered_by_steps.py",
                "repair/simulated_proposal.py",
                "repair/leaf_replicas.py",
                "repair/strategies/declaring.py",
                "repair/strategies/leaving_out.py",
                "repair/doubts/undecided.py",
            ),
            *(
                "repair/strategies/redo_on_source.py",
                "repair/strategies/undo_on_replica.py",
                "repair/doubts/acting_again.py",
            ),
            *("repair/strategies/conflicts.py", "repair/strategies/data_repair.py"),
            *("repair/doubts/redo_rows.py", "repair/sql/column_type_guards.py"),
            "repair/doubts/earlier_steps.py",
            *("repair/choices.py", "repair/audit_after_plan.py", "repair/content/failing_event.py"),
            *("repair/worse_findings.py", "repair/replaced_below.py"),
            *("repair/model/unseen_replicas.py", "repair/doubts/unseen_receivers.py"),
            *(
                "repair/model/invariants.py",
                "repair/model/emptied_servers.py",
                "repair/model/passed_elsewhere.py",
                "repair/model/replication_model.py",
                "repair/model/settled_model.py",
                "repair/model/channel_doubts.py",
                "repair/model/initial_model.py",
            ),
            *(
                "topology/readings/transaction_parts.py",
                "repair/content/transaction_content.py",
                "repair/strategies/starting.py",
                "repair/model/missing_on.py",
            ),
            *(
                "repair/doubts/misfitting_rows.py",
                "repair/strategies/kept_out.py",
                "repair/doubts/rows_there.py",
            ),
            *(
                "repair/strategies/resuming.py",
                "repair/strategies/executed_since.py",
                "repair/model/remaining_action.py",
                "repair/model/offered_strategies.py",
            ),
            *(
                "repair/sql/unguarded.py",
                "repair/model/strategy_case.py",
                "repair/content/content_questions.py",
            ),
            *(
                "repair/model/own_work.py",
                "repair/scripts/start_guards.py",
                "repair/model/holes.py",
            ),
            *(
                "repair/doubts/doubtful_sources.py",
                "repair/model/former_history.py",
                "repair/model/unlogged_redo.py",
            ),
            *(
                "repair/doubts/still_to_come.py",
                "repair/model/same_server_id.py",
                "repair/content/waiting_ddl.py",
            ),
            *(
                "repair/doubts/doubted_content.py",
                "repair/doubts/compared_rows.py",
                "repair/doubts/no_rollback.py",
            ),
            *(
                "repair/content/created_tables.py",
                "repair/model/hidden_evidence.py",
                "repair/plan_parts.py",
            ),
            *(
                "repair/doubts/more_written.py",
                "repair/scripts/purged_since.py",
                "repair/strategies/refused_before.py",
            ),
            *(
                "repair/scripts/unread_sources.py",
                "repair/scripts/delivery_filters.py",
                "repair/doubts/xa_halves.py",
                "repair/model/unnumbered.py",
            ),
            *(
                "repair/doubts/start_doubts.py",
                "repair/doubts/forgotten_below.py",
                "repair/doubts/logged_form.py",
                "repair/doubts/other_columns.py",
                "repair/doubts/renamed_databases.py",
            ),
            *(
                "repair/model/actions.py",
                "repair/model/former_places.py",
                "repair/strategies/manual_instructions.py",
                "repair/strategies/blocking_sessions.py",
                "repair/strategies/clone_instructions.py",
                "repair/strategies/copy_commands.py",
                "repair/strategies/copy_donors.py",
                "repair/strategies/held_channels.py",
                "repair/strategies/configuring.py",
                "repair/strategies/closing_gaps.py",
                "repair/doubts/left_out_rows.py",
            ),
        ),
        (
            *(
                "tests/repair/test_belongs_elsewhere.py",
                "tests/repair/test_model.py",
                "tests/repair/test_planner.py",
            ),
            *("tests/repair/test_replaying.py", "tests/repair/test_other_steps.py"),
            "tests/repair/test_held_channels.py",
            *("tests/repair/test_declaring.py", "tests/repair/test_channel_strategies.py"),
            "tests/repair/test_older_versions.py",
            *("tests/repair/test_plan_decisions.py", "tests/repair/test_answered.py"),
            *("tests/repair/test_conflicts.py", "tests/repair/test_guards_rows.py"),
            *("tests/repair/test_evidence.py", "tests/repair/test_data_repair.py"),
            *("tests/repair/test_transaction_content.py", "tests/repair/test_table_questions.py"),
            *(
                "tests/repair/test_scripts.py",
                "tests/repair/test_guards_table.py",
                "tests/repair/test_empty_batches.py",
            ),
            *("tests/repair/test_content_questions.py", "tests/repair/test_unguarded.py"),
            *("tests/repair/test_held_back.py", "tests/repair/test_by_hand.py"),
            *("tests/repair/test_blocking_sessions.py", "tests/repair/test_copies.py"),
            "tests/repair/test_automatic.py",
            "tests/repair/test_renamed_databases.py",
            *("tests/repair/test_invariants.py", "tests/repair/test_two_passes.py"),
            *("tests/simulation/test_steps_together.py", "tests/repair/test_earlier_steps.py"),
            *("tests/repair/test_choices.py", "tests/repair/test_fetched_together.py"),
            *("tests/repair/test_former_history.py", "tests/repair/test_own_work.py"),
            *("tests/repair/test_forgotten_below.py", "tests/repair/test_unread_sources.py"),
            *("tests/repair/test_resuming.py", "tests/repair/test_described_content.py"),
            *("tests/repair/test_start_model.py", "tests/repair/test_left_to_do.py"),
            *("tests/repair/test_unasked.py", "tests/repair/test_redo_refusals.py"),
            *("tests/repair/test_holes.py", "tests/repair/test_only_what_was_read.py"),
            *("tests/repair/test_unread_sources.py", "tests/repair/test_column_types.py"),
            *("tests/repair/test_misfit.py", "tests/repair/test_no_rollback.py"),
            *("tests/repair/test_waiting_ddl.py", "tests/repair/test_doubtful_sources.py"),
            *("tests/repair/test_decisive_facts.py", "tests/repair/test_afterwards.py"),
            *(
                "tests/repair/test_more_written.py",
                "tests/repair/test_running_events.py",
                "tests/repair/test_purged_since.py",
            ),
            *("tests/repair/test_replaced_below.py", "tests/repair/test_above_groups.py"),
            *("tests/repair/test_unseen_replicas.py", "tests/repair/test_executed_since.py"),
            *("tests/repair/test_refused_before.py", "tests/repair/test_acts_by_itself.py"),
            *("tests/repair/test_truth_cases.py", "tests/repair/test_start_doubts.py"),
            *("tests/repair/test_channel_doubts.py", "tests/repair/test_other_rows.py"),
            "tests/repair/test_left_out_rows.py",
            "tests/repair/test_script_decisions.py",
            "tests/tidy/test_decision_tables.py",
            "tests/simulation/test_transcripts.py",
        ),
        slow=("tests/repair/test_planner_exhaustive.py", *_HISTORIES),
    ),
    Target(
        "script procedures and guards",
        (
            *("repair/scripts/set_procedures.py", "repair/scripts/channel_procedures.py"),
            *("repair/scripts/lost_own_gtids.py", "repair/scripts/read_only_servers.py"),
            *(
                "repair/scripts/row_procedures.py",
                "repair/scripts/replay_procedures.py",
                "repair/scripts/procedures.py",
            ),
            *("repair/sql/script.py", "repair/sql/channel_queries.py", "repair/sql/guard.py"),
            *("repair/sql/privileges.py", "repair/scripts/other_servers.py", "repair/render.py"),
            "repair/instruction_steps.py",
            *("repair/sql/service_calls.py", "repair/scripts/simulated_actions.py"),
            "repair/scripts/called_sets.py",
            *("repair/scripts/server_checks.py", "repair/scripts/around_channels.py"),
            *("repair/scripts/around_empty.py", "repair/scripts/around_rows.py"),
            *("repair/scripts/steps.py", "repair/repair_plan.py", "repair/model/action_content.py"),
            *("repair/model/semi_sync.py", "gtid_audit/tasks/plan_again.py"),
        ),
        (
            *("tests/repair/test_scripts.py", "tests/repair/test_guards_table.py"),
            *("tests/repair/test_files.py", "tests/repair/test_data_repair.py"),
            *("tests/repair/test_guards_rows.py", "tests/repair/test_conflicts.py"),
            *("tests/repair/test_plan_json.py", "tests/repair/test_guards_live.py"),
            *("tests/repair/test_planner.py", "tests/repair/test_plan_decisions.py"),
            *("tests/gtid_audit/test_plan_again.py", "tests/gtid_audit/test_planning.py"),
            *("tests/repair/test_script_decisions.py", "tests/repair/test_changed_scripts.py"),
            *("tests/repair/test_privileges.py", "tests/simulation/test_transcripts.py"),
            *("tests/tidy/test_decision_tables.py", "tests/repair/test_guard.py"),
            *("tests/repair/test_row_sql.py", "tests/repair/test_unread_sources.py"),
            *("tests/repair/test_service_calls.py", "tests/repair/test_lost_gtids.py"),
            *("tests/repair/test_run_again.py", "tests/repair/test_read_only_servers.py"),
            "tests/repair/test_instruction_steps.py",
        ),
    ),
    Target(
        "rows as SQL by column",
        (
            *("repair/sql/event_texts.py", "repair/sql/value_texts.py"),
            *("repair/sql/written_rows.py", "binlog/rows/split_images.py"),
            "repair/sql/row_functions.py",
        ),
        ("tests/repair/test_event_texts.py", "tests/repair/test_script_lines.py"),
        compiles=True,
    ),
    Target(
        "content comparison",
        (
            "binlog/content/compare.py",
            "binlog/content/reuse.py",
            "binlog/content/compared_parts.py",
        ),
        (
            *("tests/binlog/test_parts.py", "tests/binlog/test_compare.py"),
            *("tests/binlog/test_reuse.py", "tests/tidy/test_decision_tables.py"),
        ),
    ),
    Target(
        # Most readers of servers are executed by tests with servers only: they have no mutants.
        "definitions and documents that a plan reads",
        (
            *("repair/adapters/stricter_tables.py", "repair/adapters/typed_documents.py"),
            "repair/adapters/servers_to_read.py",
        ),
        (
            *("tests/repair/test_collected_transactions.py", "tests/repair/test_rows_named.py"),
            *("tests/repair/test_stricter_tables.py", "tests/repair/test_tables_now.py"),
            *(
                "tests/repair/test_transactions_elsewhere.py",
                "tests/repair/test_servers_to_read.py",
            ),
            "tests/repair/test_failing_transaction.py",
            *("tests/repair/test_typed_documents.py", "tests/tidy/test_decision_tables.py"),
        ),
    ),
    Target(
        "when contents are compared, and what is hidden",
        (
            *("topology/questions/contents_to_compare.py", "topology/readings/hidden_passwords.py"),
            *("topology/questions/reported_losses.py", "topology/questions/known_differences.py"),
        ),
        (
            *(
                "tests/topology/test_contents_to_compare.py",
                "tests/topology/test_hidden_passwords.py",
            ),
            *(
                *(
                    "tests/gtid_audit/test_content_memory.py",
                    "tests/gtid_audit/test_forgotten_memory.py",
                ),
                "tests/gtid_audit/test_reported_losses.py",
            ),
        ),
    ),
    Target(
        "fast path of Spark",
        (
            "spark_audit/clean_clusters.py",
            "spark_audit/clean_identity.py",
            "spark_audit/clean_places.py",
            "spark_audit/columns_for_rules.py",
        ),
        (
            *("tests/tidy/test_decision_tables.py", "tests/spark_audit/test_clean.py"),
            "tests/spark_audit/test_clean_fleet.py",
        ),
        compiles=True,
    ),
)


def files_of(target: Target) -> list[str]:
    """Return the files of a target, folders with all that is in them."""
    found: list[str] = []
    for name in target.files:
        path = ROOT / name
        below = sorted(path.glob("*.py")) if path.is_dir() else [path]
        found += [str(each.relative_to(ROOT)) for each in below]
    return found
