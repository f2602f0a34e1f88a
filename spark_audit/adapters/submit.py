"""The program that spark-submit runs: stored snapshots in, results out, the summary printed.

    spark-submit … --py-files gtid-audit.zip gtid-audit.py --snapshots PLACE --out PLACE

1. Standard output has the summary, one JSON document, and nothing else. In client mode Spark merges
   standard error into it; the document is then the last part.
2. The exit status is that of the whole project: 0 to 3 for a verdict, 64 for wrong usage, 70 for a
   defect. Only a verdict ends in 0 to 3; Python itself would end a defect in 1. YARN, and some
   schedulers, treat every status except 0 as a failure and retry. For these, `--exit done` returns
   0 for every verdict.
3. It uses the session that spark-submit configured, and changes no setting.
4. A run that does not show the current state (topology/documents/run_record.py) is not audited. The
   status is then 3, or 64 with `--exit done`; the reason goes to standard error, and there is no
   summary.
5. With `--fleet`, every cluster, server and consumer of the fleet file is in the result, UNKNOWN if
   the run does not have it, and the file's policy applies (fleet_archive.py).
6. It needs the standard library, PySpark and what spark_audit imports, but not our command line.
"""

import argparse
import sys
import traceback
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, NoReturn
from uuid import UUID

from pyspark.sql import SparkSession

from spark_audit.absent_readings import NOTHING_ABSENT
from spark_audit.adapters.fleet_archive import FleetNotSent, sent_fleet
from spark_audit.adapters.job import audit_stored, latest_snapshots
from spark_audit.adapters.result_place import ResultsDiffer
from spark_audit.adapters.run_checks import refusal_of
from spark_audit.adapters.run_readings import not_in_place
from spark_audit.expected_fleet import ExpectedFleet
from spark_audit.summary import FleetSummary
from topology.adapters.stored_runs import NoSnapshots, UnreadableSnapshots
from topology.catalogue.findings import Verdict
from topology.documents.run_record import MAX_AGE_DEFAULT, AgeLimit, age_from_text
from topology.policy import Policy

NAME: Final = "gtid-audit"
USAGE: Final = 64
DEFECT: Final = 70
STATUS: Final = {Verdict.OK: 0, Verdict.WARNING: 1, Verdict.CRITICAL: 2, Verdict.UNKNOWN: 3}
_PLACE: Final = "a directory that every executor sees, or an address that Hadoop knows"


class RunRefused(Exception):
    """A run does not show the current state: it is too old, from the future, or has no record."""


def _age(text: str) -> timedelta | None:
    try:
        return age_from_text(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str]) -> int:
    """Audit the latest complete run below a place and return the exit status."""
    given = _parser().parse_args(arguments)
    try:
        fleet = sent_fleet() if given.fleet else None
    except FleetNotSent as problem:
        sys.stderr.write(f"{NAME}: --fleet: {problem}\n")
        return USAGE
    policy = Policy() if fleet is None else fleet.policy
    policy = replace(policy, allowed_uuids=policy.allowed_uuids.union(given.allow_uuid))
    limit = AgeLimit(datetime.now(UTC), given.max_age)
    try:
        summary = _summary_of(given.snapshots, given.out, policy, limit, fleet)
    except RunRefused as refused:
        # No run was audited: not even `--exit done` may end in 0.
        sys.stderr.write(f"{NAME}: not evaluated: {refused}\n")
        return USAGE if given.exit == "done" else STATUS[Verdict.UNKNOWN]
    except (NoSnapshots, UnreadableSnapshots, ResultsDiffer, OSError) as problem:
        sys.stderr.write(f"{NAME}: {problem}\n")
        return USAGE
    except Exception as defect:  # noqa: BLE001 - every other exception is a defect, see rule 2
        traceback.print_exc()
        sys.stderr.write(f"{NAME}: a defect of gtid-audit or of the cluster: {defect}\n")
        return DEFECT
    sys.stdout.write(summary.to_text())
    sys.stdout.flush()
    return 0 if given.exit == "done" else STATUS[summary.verdict]


def _summary_of(
    snapshots: str, out: str, policy: Policy, limit: AgeLimit, fleet: ExpectedFleet | None
) -> FleetSummary:
    session = SparkSession.builder.appName(NAME).getOrCreate()
    try:
        run = latest_snapshots(session, snapshots)
        reason = refusal_of(session, run, limit)
        if reason is not None:
            raise RunRefused(reason)
        absent = NOTHING_ABSENT if fleet is None else not_in_place(session, run, fleet)
        results = audit_stored(
            session,
            snapshots=run,
            out=out,
            policy=policy,
            more=absent.clusters,
            gaps=absent.gaps,
        )
        return results.summary
    finally:
        session.stop()


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog=NAME, description="Audit stored snapshots on this cluster.")
    parser.add_argument("--snapshots", required=True, metavar="PLACE", help=_PLACE)
    parser.add_argument("--out", required=True, metavar="PLACE", help=_PLACE)
    parser.add_argument(
        "--allow-uuid",
        action="append",
        type=UUID,
        default=[],
        metavar="UUID",
        help="allow extra transactions of this UUID; repeatable",
    )
    parser.add_argument(
        "--max-age",
        type=_age,
        default=MAX_AGE_DEFAULT,
        metavar="AGE",
        help="maximum age of the run: 24h, 90m, 7d, none; an older run is UNKNOWN",
    )
    parser.add_argument(
        "--fleet",
        action="store_true",
        help="use the clusters and the policy of the fleet archive in --py-files, which"
        " `gtid-audit spark package --fleet FILE` writes",
    )
    parser.add_argument(
        "--exit",
        choices=("verdict", "done"),
        default="verdict",
        help="exit status: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN; or 0 if the audit finished",
    )
    return parser
