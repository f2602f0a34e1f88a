"""Stores, beside the runs, what the next audit must compare.

    directory/_content_looks.json

1. By server_uuid: when an audit last compared a server, by our clock. A server that has restarted
   since then is due, however long ago the restart was (contents_to_compare.py). A failed comparison
   that may succeed later is not stored.
2. By cluster: GTIDs that are suspect, to be compared as soon as two servers have them.
3. By cluster: proved differences, and their two servers (known_differences.py).
4. By server_uuid: GTIDs that a server has and their origin lost (reported_losses.py).
5. Without the file, the last 24 hours are compared.
6. Two audits may run at the same time. Each applies its changes to what is stored by then
   (merged_memory.py), under a lock of the file beside it.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from uuid import UUID, uuid4

from gtid import GtidError, GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.tasks.merged_memory import merged
from topology.documents.content_records import ADDED_TO_DIFFERENCE, DIFFERENCE
from topology.documents.record_codec import MalformedRecord
from topology.documents.records import time_from_text, time_to_text
from topology.questions.contents_to_compare import KnownDifference, Remembered

LOOKS: Final = "_content_looks.json"
_WRITING: Final = "_content_looks.json.writing-"
_LOCK: Final = "_content_looks.json.lock"
LAYOUT: Final = 1
MALFORMED: Final = (ValueError, TypeError, KeyError, AttributeError, MalformedRecord, GtidError)


class Memory(Protocol):
    """Where audits keep what they remember. Both methods raise UsageProblem."""

    def read(self) -> Remembered:
        """Return what earlier audits stored; empty if there were none."""

    def write(self, remembered: Remembered) -> None:
        """Store it for the next audit."""


def difference_to_plain(known: KnownDifference) -> dict[str, Any]:
    """Write a known difference as a JSON value."""
    uuids = [str(uuid) for uuid in known.server_uuids]
    return {"server_uuids": uuids, "difference": DIFFERENCE.write(known.difference)}


def difference_from_plain(plain: dict[str, Any]) -> KnownDifference:
    """Read what `difference_to_plain` writes. Raises one of MALFORMED."""
    source, replica = map(UUID, plain["server_uuids"])
    difference = {**ADDED_TO_DIFFERENCE, **plain["difference"]}
    return KnownDifference(DIFFERENCE.read(difference), (source, replica))


@dataclass(slots=True)
class DirectoryMemory:
    """Memory in a directory of stored runs, for one audit."""

    directory: Path
    _before: Remembered = field(default_factory=Remembered, init=False)

    def read(self) -> Remembered:
        """See Memory."""
        self._before = self._stored()
        return self._before

    def _stored(self) -> Remembered:
        file = self.directory / LOOKS
        try:
            found = json.loads(file.read_text(encoding="utf-8"))
            if found["layout"] != LAYOUT:
                raise UsageProblem(f"{file}: expected layout {LAYOUT}, found {found['layout']!r}")
            looked_at, suspects = found["looked_at"], found.get("suspects", {})
            differences, reported = found.get("differences", {}), found.get("reported", {})
            return Remembered(
                {UUID(uuid): time_from_text(text) for uuid, text in looked_at.items()},
                {cluster: GtidSet.parse(text) for cluster, text in suspects.items()},
                {
                    cluster: tuple(map(difference_from_plain, each))
                    for cluster, each in differences.items()
                },
                {UUID(uuid): GtidSet.parse(text) for uuid, text in reported.items()},
            )
        except FileNotFoundError:
            return Remembered()
        except OSError as error:
            raise UsageProblem(f"{file}: {error.strerror or error}") from error
        except MALFORMED as error:
            raise UsageProblem(f"{file}: not a record of earlier audits: {error!r}") from error

    def write(self, remembered: Remembered) -> None:
        """See Memory. The file is replaced as a whole, with what others have stored meanwhile."""
        with self._locked():
            self._replace(merged(self._before, remembered, self._stored()))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        file = self.directory / _LOCK
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                yield
            finally:
                os.close(descriptor)
        except OSError as error:
            raise UsageProblem(f"{file}: {error.strerror or error}") from error

    def _replace(self, remembered: Remembered) -> None:
        looked_at = {str(uuid): time_to_text(at) for uuid, at in remembered.looks.items()}
        suspects = {cluster: str(gtids) for cluster, gtids in remembered.suspects.items()}
        reported = {str(uuid): str(gtids) for uuid, gtids in remembered.reported.items()}
        document = {
            "layout": LAYOUT,
            "looked_at": {uuid: looked_at[uuid] for uuid in sorted(looked_at)},
            "suspects": {cluster: suspects[cluster] for cluster in sorted(suspects)},
            "differences": {
                cluster: [difference_to_plain(each) for each in remembered.differences[cluster]]
                for cluster in sorted(remembered.differences)
            },
            "reported": {uuid: reported[uuid] for uuid in sorted(reported)},
        }
        # A reader takes no lock: it finds the former file, or this one.
        hidden = self.directory / f"{_WRITING}{uuid4().hex}"
        try:
            with hidden.open("w", encoding="utf-8") as written:
                written.write(json.dumps(document, indent=1) + "\n")
                written.flush()
                os.fsync(written.fileno())
            hidden.replace(self.directory / LOOKS)
        except OSError as error:
            with suppress(OSError):  # the error that broke the write may break this too
                hidden.unlink()
            raise UsageProblem(f"{hidden}: {error.strerror or error}") from error
