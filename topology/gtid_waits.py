"""The wait of an applier for a session that owns the GTID which comes next.

Such a wait may end in two ways: the session rolls back, and the applier applies the transaction; or
it commits under the GTID, and the transaction's rows never arrive although the sets agree (seen on
9.7.4). So the GTID must be compared afterwards.
"""

import re
from typing import Final

from topology.findings import Finding

# 5.7 and later: "Waiting for GTID to be committed"; 5.6: "waiting for GTID to be written to binary
# log" (sql/rpl_gtid_execution.cc).
_GTID_WAIT: Final = re.compile("waiting for GTID to be", re.IGNORECASE)


def is_gtid_wait(state: str) -> bool:
    """Return whether the state of a thread is that wait."""
    return bool(_GTID_WAIT.search(state))


def waits_for_gtid(finding: Finding) -> bool:
    """Return whether a finding reports that wait (A5)."""
    return finding.code == "A5" and any(
        fact.fact == "state" and is_gtid_wait(fact.value) for fact in finding.evidence
    )
