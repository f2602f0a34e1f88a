"""Makes the results of a stored run: evaluated in this process, or on Spark.

1. Both engines use the same rules, and report the same findings.
2. Errors of a run, of its results and of Spark become usage problems here.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from gtid_audit.exits import UsageProblem
from gtid_audit.optional_packages import require_spark
from spark_audit.absent_readings import NOTHING_ABSENT, NotInRun
from topology.catalogue.findings import ClusterAudit
from topology.policy import Policy
from topology.readings.contents import ContentReading

if TYPE_CHECKING:  # PySpark is imported only where it is used
    from spark_audit.adapters.results import Results
    from spark_audit.result_records import LocalResults


def results_in_memory(
    audits: Sequence[ClusterAudit],
    run: Path,
    policy: Policy,
    contents: Mapping[str, ContentReading] | None,
) -> "LocalResults":
    """Combine evaluations of this process; store nothing."""
    from spark_audit.result_records import results_of
    from topology.adapters.stored_runs import moment_of_run

    return results_of(
        audits,
        run=run.resolve().name,
        previous=None,
        known=(),
        run_at=moment_of_run(run),
        policy=policy,
        contents_compared=None if contents is None else len(contents),
    )


def results_stored(
    audits: Sequence[ClusterAudit],
    run: Path,
    out: Path,
    policy: Policy,
    contents: Mapping[str, ContentReading] | None,
) -> "LocalResults":
    """Combine evaluations of this process; add history and store the results below `out`.

    Raises UsageProblem.
    """
    require_spark()
    from spark_audit.adapters.local_results import write_results_locally
    from spark_audit.adapters.result_place import ResultsDiffer
    from spark_audit.summary import MalformedSummary
    from topology.adapters.run_directory import RunName

    try:
        return write_results_locally(
            audits,
            directory=out,
            run=RunName.of_place(str(run.resolve())),
            policy=policy,
            contents_compared=None if contents is None else len(contents),
        )
    except OSError as error:
        raise UsageProblem(f"{out}: {error.strerror or error}") from error
    except (ResultsDiffer, MalformedSummary) as problem:
        raise UsageProblem(str(problem)) from problem


@contextmanager
def results_on_spark(
    run: Path, out: Path, policy: Policy, absent: NotInRun = NOTHING_ABSENT
) -> Iterator["Results"]:
    """Evaluate a run on Spark and store the results below `out`. Raises UsageProblem.

    The results can be read as long as the context lasts.
    """
    require_spark()
    from spark_audit.adapters.job import audit_stored
    from spark_audit.adapters.result_place import ResultsDiffer
    from spark_audit.adapters.session import JavaMissing, SparkNotStarted, local_session
    from spark_audit.summary import MalformedSummary
    from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots

    try:
        with local_session() as session:
            try:
                results = audit_stored(
                    session,
                    snapshots=str(run),
                    out=str(out),
                    policy=policy,
                    more=absent.clusters,
                    gaps=absent.gaps,
                )
            except OSError as error:
                raise UsageProblem(f"{out}: {error.strerror or error}") from error
            yield results
    except (NoSnapshots, UnreadableSnapshots, ResultsDiffer, MalformedSummary) as problem:
        raise UsageProblem(str(problem)) from problem
    except (JavaMissing, SparkNotStarted) as problem:
        raise UsageProblem(str(problem)) from problem


@contextmanager
def directory_or_scratch(directory: Path | None) -> Iterator[Path]:
    """Provide the directory, or a temporary one for the duration of the context."""
    if directory is not None:
        yield directory
        return
    with TemporaryDirectory(prefix="gtid-audit-") as scratch:
        yield Path(scratch)
