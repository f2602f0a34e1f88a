"""Transaction source identifiers (TSIDs): the server that committed, and the tag it used.

A TSID also has a *key*: its text, `uuid` or `uuid:tag`, in lower case. Keys sort exactly as TSIDs
do. An untagged key is a prefix of the tagged ones, and the hexadecimal text of UUIDs sorts as their
bytes do, which is MySQL's order. Keys compare and hash as fast as strings. Sets use them as
dictionary keys; they are private to this package.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from gtid.errors import MalformedTag

# Tags exist since MySQL 8.3: up to 32 characters, stored in lower case.
TAG_CHARS_MAX = 32
TAG_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
_TAG = re.compile(TAG_PATTERN)

UUID_CHARS = 36


@dataclass(frozen=True, slots=True, order=True)
class Tsid:
    """The server that committed the transaction, and the tag (`""`: none).

    A tag may be passed in any case; it is stored in lower case, as on a server. The order is
    MySQL's: by the bytes of the UUID, untagged first, then by tag. Raises MalformedTag.
    """

    uuid: UUID
    tag: str = ""

    def __post_init__(self) -> None:
        if self.tag:
            object.__setattr__(self, "tag", canonical_tag(self.tag))

    def __str__(self) -> str:
        return f"{uuid_text(self.uuid)}:{self.tag}" if self.tag else uuid_text(self.uuid)


def canonical_tag(tag: str) -> str:
    """Fold a tag of 1 to 32 characters to lower case. Raises MalformedTag."""
    if len(tag) > TAG_CHARS_MAX or not _TAG.fullmatch(tag):
        raise MalformedTag(tag)
    return tag.lower()


def uuid_key(digits: str) -> str:
    """Put the dashes between the 32 lower-case hexadecimal digits of a UUID."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def uuid_text(uuid: UUID) -> str:
    """Return the text of a UUID from a cache; str(UUID) builds it on every call."""
    return _text_of_number(uuid.int)


@lru_cache(maxsize=65_536)
def _text_of_number(number: int) -> str:
    return uuid_key(f"{number:032x}")


@lru_cache(maxsize=65_536)
def tsid_of_key(key: str) -> Tsid:
    """Return the TSID whose text is this key."""
    return Tsid(UUID(key[:UUID_CHARS]), key[UUID_CHARS:].removeprefix(":"))
