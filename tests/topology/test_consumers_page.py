"""docs/consumers.md: its fleet file is one, and its commands do what it shows."""

import re
import shlex
from pathlib import Path

import pytest

from compose.native.shapes import Pair
from gtid import GtidSet
from gtid_audit.cli import run
from tests.topology.test_consumers_live import executed, fleet_file, purge, write
from topology.adapters.inventory.fleet_file import parse_fleet

PAGE = (Path(__file__).parents[2] / "docs/consumers.md").read_text()


def blocks(kind: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [text for each, text in found if each == kind]


def test_the_fleet_file_of_the_page_is_one() -> None:
    [text] = blocks("yaml")
    fleet = parse_fleet(text, name="/etc/fleet.yaml", environment={}, warn=pytest.fail)
    found = {each.name: each for each in fleet.clusters[0].consumers}
    assert found["debezium-orders"].file == Path("/var/lib/debezium/offsets.dat")
    assert found["debezium-orders"].server == "db1"
    assert found["maxwell"].command[-1] == "SELECT gtid_set FROM maxwell.positions\\G"
    assert found["backup-of-monday"].gtid_set == GtidSet.parse(
        "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-88713"
    )


@pytest.mark.mysql
def test_the_commands_of_the_page_give_what_it_shows(
    pair97: Pair,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    a = pair97.a
    a.execute("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY)")
    pair97.settle()
    (tmp_path / "offsets.dat").write_text(str(executed(a)))
    write(pair97, 10, 4)
    purge(pair97, a, 20)
    fleet_file(tmp_path, pair97, '{name: debezium-orders, set: "@offsets.dat", server: a}')
    monkeypatch.chdir(tmp_path)
    commands = [each for block in blocks("") for each in block.splitlines() if "gtid-audit" in each]
    assert len(commands) == 2
    shown = {}
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "gtid-audit"
        shown[arguments[0]] = (run(arguments), " ".join(capsys.readouterr().out.split()))
    status, text = shown["audit"]
    assert status == 2
    [example] = [block for block in blocks("") if block.startswith("P4")]
    words = " ".join(example.split()).replace("db1", "a").replace("db2", "b")
    for part in (
        words[: words.index(" where")],
        words[words.index("what") : words.index(", until")],
    ):
        assert part.strip() in text
    status, text = shown["handshake"]
    assert status == 1
    assert "1236 purged" in text
    assert "can send it until at least" in text
