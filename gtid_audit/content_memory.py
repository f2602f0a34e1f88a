"""Remembers, beside stored runs, when the contents of which servers were last looked at.

    directory/_content_looks.json

1. By server_uuid and our clock: a server that has started since then is due, however long ago that
   was (content_due.py). A look that could not be made, and may be another time, is not remembered.
2. Lost, or a directory without it, costs nothing but reach: the last 24 hours are looked at always.
"""

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final
from uuid import UUID

from gtid_audit.exits import UsageProblem
from topology.record_codec import MalformedRecord
from topology.records import time_from_text, time_to_text

LOOKS: Final = "_content_looks.json"
_WRITING: Final = "_content_looks.json.writing"
LAYOUT: Final = 1


def read_looks(directory: Path) -> dict[UUID, datetime]:
    """Return when each server was last looked at; empty if nobody has. Raises UsageProblem."""
    file = directory / LOOKS
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if found["layout"] != LAYOUT:
            raise UsageProblem(f"{file}: expected layout {LAYOUT}, found {found['layout']!r}")
        return {UUID(uuid): time_from_text(text) for uuid, text in found["looked_at"].items()}
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageProblem(f"{file}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, MalformedRecord) as error:
        raise UsageProblem(f"{file}: not a record of looks: {error!r}") from error


def write_looks(directory: Path, looks: Mapping[UUID, datetime]) -> None:
    """Keep when servers were looked at, beside what is known of others. Raises UsageProblem."""
    looked_at = {str(uuid): time_to_text(at) for uuid, at in looks.items()}
    ordered = {uuid: looked_at[uuid] for uuid in sorted(looked_at)}
    text = json.dumps({"layout": LAYOUT, "looked_at": ordered}, indent=1) + "\n"
    hidden = directory / _WRITING
    try:
        with hidden.open("w", encoding="utf-8") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())
        hidden.replace(directory / LOOKS)
    except OSError as error:
        raise UsageProblem(f"{hidden}: {error.strerror or error}") from error
