"""docs/groups.md on a real group: its command finds every member, and what a member that left is."""

import json
import re
import shlex
from pathlib import Path

import pytest

from compose.native.groups import group_and_replica
from compose.native.installation import Installation
from compose.native.shapes import wait_for
from gtid_audit.cli import run

PAGE = Path(__file__).resolve().parents[2] / "docs" / "groups.md"


@pytest.mark.slow
def test_the_command_of_the_page_audits_a_group(
    installation97: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    with group_and_replica(installation97, members=("m1", "m2")) as group:
        [line] = re.findall(r"^gtid-audit .*$", PAGE.read_text(), re.MULTILINE)
        words = shlex.split(line)[1:]
        dsn = words.index("mysql://audit@m1:3306/?ssl=required")
        words[dsn] = group["m1"].dsn
        status = run([*words, "--json"])
        found = json.loads(capsys.readouterr().out)
        assert (status, found["verdict"]) == (0, "OK"), found
        assert len(found["clusters"][0]["servers"]) == 3  # the replica below the group, too
        assert run(words) == 0
        tree = capsys.readouterr().out.splitlines()[2:6]
        assert tree[0].startswith("  group ")
        assert sorted(line.split("  ")[2] for line in tree if "── " in line) == [
            *("ONLINE PRIMARY", "ONLINE SECONDARY"),
        ]
        assert len([line for line in tree if "└─▶ " in line]) == 1, "the replica, below m1"
        group["m2"].execute("STOP GROUP_REPLICATION")
        dsns = [group[name].dsn for name in ("m1", "m2", "r")]
        status = run(["audit", *dsns, "--json"])
        found = json.loads(capsys.readouterr().out)
        [left] = [each for each in found["findings"] if each["severity"] != "info"]
        assert (status, left["code"], left["grade"]) == (1, "A7", "proved")
        assert [each["name"] for each in left["strategies"]] == ["join_group"]
        group["m2"].execute("START GROUP_REPLICATION USER = 'replication'")
        wait_for(group["m2"], group["m1"].value("@@GLOBAL.gtid_executed"))
