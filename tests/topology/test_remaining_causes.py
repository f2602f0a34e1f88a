"""Where the evidence does not separate two causes, the text names both and promises nothing."""

import pytest

from tests.topology.test_scenarios import SCENARIOS
from tests.topology.transcript import read_scenarios
from topology.audit_cluster import audit_cluster


@pytest.mark.parametrize(
    ("title", "code", "said"),
    [
        ("H1, likely: a was reset", "H1", ("former log of a", "stopped with error 13114", "RESET")),
        ("H1, likely: the receiver is still", "H1", ("log ends at binlog.000001:400", "RESET")),
        ("E3, likely: as before, and", "E3", ("a session elsewhere that set gtid_next", "a crash")),
        ("E4, a warning: rows drifted", "E4", ("E1 (1 transaction only on b)", "errant")),
        ("J4: a has a copy", "J4", ("elsewhere.example:3306", "a has the server_uuid", "auto.cnf")),
        ("T2, likely: without that", "T2", ("may have passed 5 transactions", "A worker may")),
        ("A8, likely, of 5.6", "A8", ("found no wait for a lock", "retries", "1205")),
        ("T3, likely only: the receiver", "T3", ("replica_net_timeout", "no event for them")),
    ],
)
def test_the_causes_that_remain_are_named(title: str, code: str, said: tuple[str, ...]) -> None:
    (scenario,) = [each for each in SCENARIOS if each.title.startswith(title)]
    audit = audit_cluster(scenario.snapshot, scenario.policy)
    (finding,) = [each for each in audit.findings if each.code == code]
    assert [each for each in said if each not in finding.explanation] == []
    for promise in ("by itself", "Its receiver makes progress", "has read past"):
        assert promise not in finding.explanation


def test_a_receiver_that_runs_is_not_named_stopped() -> None:
    text = (
        "# The place of the receiver is behind the end of its source's log.\n"
        "server a uuid=A executed=A:1-9 log=900\n"
        "server b uuid=B executed=A:1-9\n  from a retrieved=A:1-9\n----\nCRITICAL"
    )
    [finding] = audit_cluster(read_scenarios(text)[0].snapshot).findings
    assert (finding.code, finding.name) == ("A4", "receiver receives nothing")
    assert finding.explanation.startswith("The receiver of b runs but no longer receives anything")
