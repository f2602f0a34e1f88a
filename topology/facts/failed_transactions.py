"""Reads from an applier's error text which transaction failed.

Before 5.7 no table shows what each worker applies. The text of a worker's error quotes the GTID
(sql/rpl_rli_pdb.cc; seen on 5.6.24 and 9.7.4). An applier without workers
reports only a position.
"""

import re
from typing import Final

from gtid import GtidSet, MalformedText
from topology.catalogue.error_texts import FAILED, QUOTED_SETS

_FAILING: Final = re.compile(dict(QUOTED_SETS)[FAILED])


def quoted_as_failed(text: str) -> GtidSet:
    """Return the GTID that an error text quotes as failed; an anonymous transaction has none."""
    found = _FAILING.search(text)
    if found is None:
        return GtidSet()
    try:
        return GtidSet.parse(found[1])
    except MalformedText:
        return GtidSet()
