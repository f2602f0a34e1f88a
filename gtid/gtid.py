"""A single global transaction identifier: a TSID and a number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from gtid.boundary_sequence import GNO_MAX
from gtid.errors import GnoOutOfRange
from gtid.gtid_text import parse_gtid
from gtid.tsid import Tsid, tsid_of_key


@dataclass(frozen=True, slots=True, order=True)
class Gtid:
    """The identifier of one transaction. `gno` is 1 to GNO_MAX. Raises GnoOutOfRange."""

    tsid: Tsid
    gno: int

    def __post_init__(self) -> None:
        if not 1 <= self.gno <= GNO_MAX:
            raise GnoOutOfRange(self.gno)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `UUID:number` or `UUID:tag:number`, as SET GTID_NEXT does. Raises MalformedGtid.

        >>> str(Gtid.parse("3E11FA47-71CA-11E1-9E33-C80AA9429562:dba:007"))
        '3e11fa47-71ca-11e1-9e33-c80aa9429562:dba:7'
        """
        key, gno = parse_gtid(text)
        return cls(tsid_of_key(key), gno)

    def __str__(self) -> str:
        return f"{self.tsid}:{self.gno}"
