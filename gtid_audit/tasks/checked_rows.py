"""Compares the rows of two servers that were named on the command line."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gtid_audit.exits import UsageProblem
from gtid_audit.operands.cluster_of_dsns import pair_to_read
from repair.adapters.compare_rows import SameServer, check_data
from repair.adapters.data_check_record import UnreadableRecord
from repair.data_check.check_limits import CheckLimits, CheckScope
from repair.data_check.checked_data import CheckedData
from topology.policy import Policy


def checked_rows(
    dsns: tuple[str, str],
    *,
    tables: Sequence[str],
    databases: Sequence[str],
    limits: CheckLimits,
    record: Path | None,
    ask: bool,
    say: Callable[[str], None],
) -> CheckedData:
    """Compare two servers. Raises UsageProblem, InventoryProblem."""
    to_read = pair_to_read(*dsns, ask=ask, seconds_max=None, policy=Policy())
    left, right = to_read.targets
    scope = CheckScope(frozenset(map(_place, tables)), frozenset(databases))
    try:
        return check_data(left, right, scope, limits=limits, record=record, say=say)
    except (SameServer, UnreadableRecord) as problem:
        raise UsageProblem(str(problem)) from None
    except OSError as problem:
        raise UsageProblem(f"{record}: {problem.strerror}") from None


def _place(text: str) -> tuple[str, str]:
    schema, dot, name = text.partition(".")
    if not (schema and dot and name):
        raise UsageProblem(f"--table {text}: expected DB.TABLE")
    return schema, name
