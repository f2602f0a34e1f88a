"""GTIDs and GTID sets with MySQL's semantics: values and set algebra.

This package is pure: it does not access servers, files or connections. Importing it loads the
standard library only. Import the binary encodings from `gtid.binary`.
"""

from gtid.boundary_sequence import GNO_END, GNO_MAX
from gtid.errors import (
    GnoOutOfRange,
    GtidError,
    GtidSetTooLarge,
    MalformedBinary,
    MalformedGtid,
    MalformedGtidSet,
    MalformedInterval,
    MalformedTag,
    MalformedText,
    UnknownFormatVersion,
)
from gtid.gtid import Gtid
from gtid.gtid_set import GTIDS_MAX, GtidSet
from gtid.gtid_text import INTERVALS_MAX, TEXT_BYTES_MAX, TSIDS_MAX
from gtid.relation import SetRelation, relate
from gtid.tsid import TAG_CHARS_MAX, Tsid

__all__ = [
    "GNO_END",
    "GNO_MAX",
    "GTIDS_MAX",
    "INTERVALS_MAX",
    "TAG_CHARS_MAX",
    "TEXT_BYTES_MAX",
    "TSIDS_MAX",
    "GnoOutOfRange",
    "Gtid",
    "GtidError",
    "GtidSet",
    "GtidSetTooLarge",
    "MalformedBinary",
    "MalformedGtid",
    "MalformedGtidSet",
    "MalformedInterval",
    "MalformedTag",
    "MalformedText",
    "SetRelation",
    "Tsid",
    "UnknownFormatVersion",
    "relate",
]
