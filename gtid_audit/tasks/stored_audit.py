"""Audits stored snapshots on the chosen engine: the latest run below a directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gtid_audit.exits import UnreadableInput
from gtid_audit.optional_packages import require_parquet
from gtid_audit.tasks.audit_engines import (
    directory_or_scratch,
    results_in_memory,
    results_on_spark,
    results_stored,
)
from gtid_audit.tasks.stored_run import StoredQuestion, absent_from, answer_if_refused
from gtid_audit.tasks.written_run import PARTIAL
from gtid_audit.views.audit_results import InResults
from gtid_audit.views.report import Engine
from gtid_audit.views.verdict_answers import VerdictAnswer

_ROWS_OF_A_PAIR: Final = 4  # two servers, two readings


@contextmanager
def answer_of_stored(
    asked: StoredQuestion, *, engine: Engine, out: Path | None = None
) -> Iterator[VerdictAnswer]:
    """Evaluate the latest stored snapshots below a directory. With `out`, store the findings there.

    A run that does not show the current state of the fleet is not evaluated: the answer is UNKNOWN.
    Spark's results can be read as long as the context lasts. Raises UsageProblem.
    """
    require_parquet()
    from spark_audit.adapters.local import audit_snapshots_locally
    from topology.adapters.stored_contents import contents_of_run
    from topology.adapters.stored_definitions import definitions_of_run
    from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots, latest_run

    try:
        run = latest_run(asked.directory)  # fails before Java is started
        refused = answer_if_refused(run, asked, engine=engine)
        kept_in = _place_for(run, out)
        contents, definitions = contents_of_run(run), definitions_of_run(run)
        absent = absent_from(run, asked.roster)
        if refused is None and engine is Engine.LOCAL:
            audits = audit_snapshots_locally(run, policy=asked.policy, gaps=absent.gaps)
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UnreadableInput(str(problem)) from problem
    if refused is not None:
        yield refused
        return
    if engine is Engine.LOCAL:
        every = [*audits, *absent.clusters]
        if kept_in is None:
            local = results_in_memory(every, run, asked.policy, contents)
        else:
            local = results_stored(every, run, kept_in, asked.policy, contents)
        yield InResults(
            local,
            engine,
            kept=out is not None,
            contents=contents,
            is_stored=True,
            definitions=definitions,
        )
        return
    with (
        directory_or_scratch(kept_in) as results_below,
        results_on_spark(run, results_below, asked.policy, absent) as results,
    ):
        yield InResults(
            results,
            engine,
            kept=out is not None,
            contents=contents,
            is_stored=True,
            definitions=definitions,
        )


def count_stored(directory: Path) -> int:
    """Return about how many clusters the latest run holds, assuming two servers each."""
    require_parquet()
    from pyarrow.parquet import read_metadata

    from topology.adapters.stored_runs import (
        NoSnapshots,
        UnreadableSnapshots,
        files_of_run,
        latest_run,
    )

    try:
        files = files_of_run(latest_run(directory))
    except (NoSnapshots, UnreadableSnapshots) as problem:
        raise UnreadableInput(str(problem)) from problem
    rows: int = sum(read_metadata(file).num_rows for file in files)
    return rows // _ROWS_OF_A_PAIR


def _place_for(run: Path, out: Path | None) -> Path | None:
    """Return where the results of a stored run belong. Raises UnreadableSnapshots."""
    from topology.adapters.stored_runs import record_of_run

    record = record_of_run(run)
    if out is None or record is None or record.partial is None or out.name == PARTIAL:
        return out
    return out / PARTIAL
