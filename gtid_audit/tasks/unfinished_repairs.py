"""What earlier repairs of the same servers left out before they stopped or failed.

A plan that ended half-way is often followed by another one, which knows nothing of the first. The
audit after the second plan may be OK although rows are missing: sets do not show that a transaction
is empty. So the journal is read, and the result says what was left out.

A repair that was finished since has been audited at its end. What came before it is not repeated.
"""

from collections.abc import Iterator
from pathlib import Path

from repair.adapters.journal import Journal
from repair.adapters.plan_files import read_directory
from repair.applying.procedures_applied import AppliedProcedure, ProcedureState
from repair.applying.written_plan import UnusablePlan, WrittenPlan


def left_by_unfinished(
    journal: Journal, procedure: AppliedProcedure, plan: WrittenPlan
) -> tuple[str, ...]:
    """Return what unfinished repairs before a procedure left out, as sentences without an end.

    Raises UnusableFile: the journal cannot be read.
    """
    return tuple(_left(journal.procedures(), procedure, plan))


def _left(
    newest_first: tuple[AppliedProcedure, ...], procedure: AppliedProcedure, plan: WrittenPlan
) -> Iterator[str]:
    servers = {each.server_uuid for each in plan.servers}
    for earlier in newest_first:
        if earlier.started_at > procedure.started_at or earlier.plan_id == plan.id:
            continue
        try:
            other, _ = read_directory(Path(earlier.directory))
        except UnusablePlan as problem:
            if earlier.servers == procedure.servers and earlier.state is not ProcedureState.DONE:
                yield f"{_name(earlier)} could not be read, and may have left out data: {problem}"
            continue
        if servers.isdisjoint(each.server_uuid for each in other.servers):
            continue
        if earlier.state is ProcedureState.DONE:
            return
        if any(not each.is_check for each in other.scripts[: earlier.scripts_done]):
            for each in (*other.left_out, *other.unreported):
                yield f"{_name(earlier)} had announced: {each}"


def _name(procedure: AppliedProcedure) -> str:
    return f"plan {procedure.plan_id}, which was not finished (procedure {procedure.id[:8]}),"
