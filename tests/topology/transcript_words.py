"""The short names of stories: a letter for a server_uuid."""

import re
from uuid import UUID

from gtid import GtidSet

_LETTER = re.compile(r"\b([A-Z])(?=:)")


def gtids(text: str) -> GtidSet:
    """Read `A:1-7,B:3`: a letter stands for a UUID."""
    return GtidSet.parse(_LETTER.sub(lambda found: str(uuid_of(found[1])), text))


def uuid_of(letter: str) -> UUID:
    """Return the UUID that a letter stands for."""
    return UUID(int=ord(letter))
