"""An audit of the fleet every hour, as an Airflow DAG.

The worker needs gtid-audit on its PATH, the fleet file, and the password in a connection's extra or
in the worker's environment (GTID_AUDIT_PASSWORD). A task fails if the audit is CRITICAL or UNKNOWN.
Each run is stored in RUNS, beside what the next one must compare again: all workers need this
folder.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

# 1 is WARNING: the task succeeds, and its log has the report. 2 is CRITICAL, 3 UNKNOWN, 64 a wrong
# configuration: the task fails.
COMMAND = """\
gtid-audit audit --fleet "$FLEET" --out "$RUNS"
status=$?
if [ "$status" = 1 ]; then exit 0; fi
exit "$status"
"""

with DAG(
    dag_id="gtid_audit",
    description="GTID consistency of the MySQL fleet",
    schedule="@hourly",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    default_args={"retries": 0, "execution_timeout": timedelta(minutes=30)},
    tags=["mysql"],
):
    BashOperator(
        task_id="audit",
        bash_command=COMMAND,
        env={"FLEET": "/etc/gtid-audit/fleet.yaml", "RUNS": "/var/lib/gtid-audit/runs"},
        append_env=True,
    )
