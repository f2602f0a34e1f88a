"""A rule that reads a setting is silent in the fleet audit, unless columns show the setting.

A fleet's clusters are clean by columns, which have few settings (topology/readings/notable_settings.py). A
rule on another one would report in `pair`, and the same cluster would be OK in `audit`.
"""

import ast

from tests.tidy.test_tidy import product_trees
from topology.readings import dialect
from topology.readings.notable_settings import _HARMLESS

# Why a setting that no column shows decides no clean cluster.
READ_LATER = {
    "replica_parallel_workers": "of a channel that has a backlog, a gap or a doubt",
    "replica_preserve_commit_order": "of a channel that has a backlog or a gap",
    "relay_log_recovery": "of a channel that has a backlog, a gap or a doubt",
    "binlog_expire_logs_seconds": "of logs with what another server needs",
    "expire_logs_days": "of logs with what another server needs",
    "binlog_retention_hours": "of logs with what another server needs",
    "server_id_source": "of servers with one server_id, or of a backlog",
    "gtid_mode_source": "of transactions that a channel has gone past",
    "group_replication_gtid_assignment_block_size": "of a group with gaps",
    "port": "of a channel whose address is another one",
    "hostname": "of servers with one server_uuid",
    "datadir": "of servers with one server_uuid",
}
# Names that are not written where they are used: the constants or tables that have them.
ELSEWHERE = {
    ("topology/readings/one_server.py", "name"): ("hostname", "port", "datadir"),
    ("topology/facts/runway.py", "setting"): (
        *("binlog_retention_hours", "binlog_expire_logs_seconds", "expire_logs_days"),
    ),
    ("topology/rules/coverage.py", "name"): ("hostname", "port", "datadir"),
    ("topology/rules/passed_by.py", "source_of_variable"): (
        dialect.SERVER_ID_SOURCE,
        dialect.GTID_MODE_SOURCE,
    ),
}


def test_every_setting_of_a_rule_is_a_column_or_read_later() -> None:
    used: set[str] = set()
    for file, (_, tree) in product_trees().items():
        if not file.startswith("topology/") or file.startswith("topology/adapters/"):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr != "setting" or file == "topology/readings/snapshot.py":
                continue
            [named] = node.args
            if isinstance(named, ast.Constant):
                used.add(str(named.value))
                continue
            assert isinstance(named, ast.Name), f"{file}:{node.lineno} names no setting"
            place = (file, named.id)
            used.update(ELSEWHERE[place] if place in ELSEWHERE else [getattr(dialect, named.id)])
    assert len(used) > 8
    assert used - _HARMLESS.keys() == READ_LATER.keys()
