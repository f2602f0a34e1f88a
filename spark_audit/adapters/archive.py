"""A class archive for Spark's JVM, so that a session starts and a first job runs in half the time.

Most of a short Spark job is Java loading and verifying some fifteen thousand classes. Java can keep
the outcome in a file (application class-data sharing, JEP 350) and map it the next time. Making one
costs a session and about as long again, and some 180 MB of disk; so it is made only when asked for:

    python -m spark_audit.adapters.archive

Where it lies: spark_audit/adapters/java.py. Deleting it does no harm.
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
from topology.snapshot import ClusterSnapshot, ServerSnapshot, UnreadFact, UnreadReason


class ArchiveNotMade(Exception):
    """The JVM wrote no archive; Spark works without it."""


def make_class_archive() -> Path:
    """Run one small audit and keep the classes it took; return the file, made now or before.

    Raises JavaMissing, SparkNotStarted and ArchiveNotMade.
    """
    archive = class_archive(require_java(os.environ), os.environ)
    if archive.exists():
        return archive
    # Compiled kernels lie beside it, and are trusted only where nobody else can write.
    archive.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Beside its place, so that it appears there whole or not at all.
    with TemporaryDirectory(prefix=".archive-", dir=archive.parent) as scratch:
        stored, written = Path(scratch) / "snapshots", Path(scratch) / archive.name
        write_snapshots(stored, [_unread_cluster()])
        with local_session(archive_to=written) as session:
            audit_stored(session, snapshots=str(stored), out=str(stored), policy=Policy())
        if not written.exists():
            raise ArchiveNotMade("Java wrote no class archive; Spark works without one, slower")
        written.rename(archive)
    return archive


def _unread_cluster() -> ClusterSnapshot:
    """Make the smallest cluster that can be stored: one server of which nothing was read."""
    never = datetime(1970, 1, 1, tzinfo=UTC)
    unread = (UnreadFact("connection", UnreadReason.UNREACHABLE, "never tried"),)
    first, last = (
        ServerSnapshot("none", "none", "none", 3306, phase, never, never, unread=unread)
        for phase in (1, 2)
    )
    return ClusterSnapshot("none", (first,), (last,))


if __name__ == "__main__":
    sys.stdout.write(f"{make_class_archive()}\n")
