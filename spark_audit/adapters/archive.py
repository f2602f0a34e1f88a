"""A class archive for Spark's JVM. It halves the time to start a session and run a first job.

A short Spark job spends most of its time loading and verifying about fifteen thousand Java classes.
Java can store the result in a file (application class-data sharing, JEP 350) and map that file the
next time. Making the archive takes one session, about as long again, and about 180 MB of disk. So
gtid-audit makes it only on request:

    python -m spark_audit.adapters.archive

spark_audit/adapters/java.py defines where the archive is. The operator can delete it at any time.
"""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from spark_audit.adapters.java import class_archive, require_java
from spark_audit.adapters.job import audit_stored
from spark_audit.adapters.session import local_session
from topology.adapters.parquet import write_snapshots
from topology.policy import Policy
from topology.readings.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason


class ArchiveNotMade(Exception):
    """The JVM wrote no archive; Spark works without it."""


def make_class_archive() -> Path:
    """Run one small audit, archive the classes it loaded, and return the archive file.

    An archive that exists is returned as it is.

    Raises JavaMissing, SparkNotStarted and ArchiveNotMade.
    """
    archive = class_archive(require_java(os.environ), os.environ)
    if archive.exists():
        return archive
    # Compiled kernels are here too. They are loaded only if no other user can write the directory.
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A scratch directory on the same file system, so that the rename is atomic.
    with TemporaryDirectory(prefix=".archive-", dir=archive.parent) as scratch:
        stored, written = Path(scratch) / "snapshots", Path(scratch) / archive.name
        write_snapshots(stored, [_unread_cluster()])
        with local_session(archive_to=written) as session:
            audit_stored(session, snapshots=str(stored), out=str(stored), policy=Policy())
        if not written.exists():
            raise ArchiveNotMade(
                "Java wrote no class archive; Spark works without it, but is slower"
            )
        written.rename(archive)
    return archive


def _unread_cluster() -> ClusterSnapshot:
    """Make the smallest cluster that can be stored: one server, with nothing read from it."""
    never = datetime(1970, 1, 1, tzinfo=UTC)
    unread = (UnreadFact("connection", UnreadReason.UNREACHABLE, "never tried"),)
    first, last = (
        ServerSnapshot("none", "none", "none", 3306, phase, never, never, unread=unread)
        for phase in (1, 2)
    )
    return ClusterSnapshot("none", (first,), (last,))


if __name__ == "__main__":
    sys.stdout.write(f"{make_class_archive()}\n")
