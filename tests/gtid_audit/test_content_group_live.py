"""GTIDs that a group used twice, on real servers: the UUID is the group's, not a member's."""

import json

import pytest

from compose.faults_group import restarted_from_the_wrong_member
from compose.native.installation import Installation
from gtid import GtidSet
from gtid_audit.cli import run


@pytest.mark.slow
def test_a_group_restarted_from_the_wrong_member_is_reported(
    installation97: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    with restarted_from_the_wrong_member(installation97) as fault:
        rows = [
            server.query("SELECT note FROM grouped.t ORDER BY id")
            for server in (fault.first, fault.second)
        ]
        assert rows[0] != rows[1]
        executed = [
            server.value("@@GLOBAL.gtid_executed") for server in (fault.first, fault.second)
        ]
        assert executed[0] == executed[1]
        for command in (("pair",), ("binlog", "compare")):
            capsys.readouterr()
            status = run([*command, fault.first.dsn, fault.second.dsn, "--json"])
            found = json.loads(capsys.readouterr().out)
            [finding] = [each for each in found["findings"] if each["code"] == "E4"]
            assert (status, finding["severity"], finding["grade"]) == (2, "critical", "proved")
            assert GtidSet.parse(finding["gtid_set"]) == GtidSet.parse(fault.reused)
