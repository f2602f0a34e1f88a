"""The consumers of a fleet file: what is read, and every problem with its line."""

import stat
from pathlib import Path

import pytest

from gtid import GtidSet
from topology.adapters.consumer_source import ConsumerSource
from topology.adapters.inventory.fleet_file import load_fleet, load_roster, parse_fleet
from topology.adapters.inventory.problem import InventoryProblem

SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
HEAD = """clusters:
  - name: shop
    servers: [{name: a, host: h, user: u}, {name: b, host: i, user: u}]
    consumers:
"""


def consumers(*lines: str, name: str = "/etc/f.yaml") -> tuple[ConsumerSource, ...]:
    text = HEAD + "".join(f"      - {line}\n" for line in lines)
    fleet = parse_fleet(text, name=name, environment={}, warn=pytest.fail)
    return fleet.clusters[0].consumers


def problem(*lines: str) -> str:
    with pytest.raises(InventoryProblem) as refusal:
        consumers(*lines)
    [found] = refusal.value.problems
    return found


def test_a_set_is_written_in_a_file_or_printed_by_a_command() -> None:
    assert consumers(
        '{name: two, set: "@offset.json", server: b}',
        '{name: four, set: "@/var/lib/offset.json"}',
        "{name: three, command: [mysql, -e, SELECT 1]}",
        f'{{name: one, set: "{SET}"}}',
    ) == (
        ConsumerSource("four", file=Path("/var/lib/offset.json")),
        ConsumerSource("one", gtid_set=GtidSet.parse(SET)),
        ConsumerSource("three", command=("mysql", "-e", "SELECT 1"), directory=Path("/etc")),
        ConsumerSource("two", "b", file=Path("/etc/offset.json")),
    )


def test_a_set_may_be_over_several_lines() -> None:
    text = HEAD + f"      - name: one\n        set: |\n          {SET},\n          {SET}:7\n"
    fleet = parse_fleet(text, name="f.yaml", environment={}, warn=pytest.fail)
    assert fleet.clusters[0].consumers[0].gtid_set == GtidSet.parse(f"{SET}:7")


def test_a_home_directory_is_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert consumers('{name: one, set: "@~/x"}')[0].file == Path("/home/me/x")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{name: one}", "consumers[0]: requires exactly one of set and command"),
        (
            '{name: one, set: "@x", command: [cat]}',
            "consumers[0]: requires exactly one of set and command",
        ),
        ("{name: one, command: []}", "consumers[0].command: is empty"),
        ("{name: one, command: cat x}", "consumers[0].command: expected a list"),
        ('{name: one, set: ""}', "consumers[0].set: is empty"),
        ('{name: a, set: "@x"}', "consumers[0].name: the same name as a server or a consumer"),
        ('{name: one, set: "@x", server: z}', "consumers[0].server: no server of this cluster"),
        ('{name: one, sett: "@x"}', "unknown key; did you mean set?"),
        (
            "{name: one, set: hunter2}",
            "consumers[0].set: is not a GTID set; the path of a file is written @path",
        ),
    ],
)
def test_a_problem_is_shown_with_its_line(line: str, message: str) -> None:
    found = problem(line)
    assert found.startswith("/etc/f.yaml, line 5: clusters[0].")
    assert message in found
    assert "hunter2" not in found, "a value may be a password in the wrong place"


def test_two_consumers_of_one_name_are_refused() -> None:
    assert "line 6: clusters[0].consumers[1].name" in problem(
        '{name: one, set: "@x"}', '{name: one, set: "@y"}'
    )


def test_a_file_that_everyone_can_change_may_not_have_commands(tmp_path: Path) -> None:
    """A user who can write to it could run a program as the user of gtid-audit."""
    path = tmp_path / "fleet.yaml"
    path.write_text(HEAD + "      - {name: one, command: [cat, x]}\n")
    path.chmod(0o640)
    assert load_roster(path, environment={}).clusters[0].consumers[0].command == ("cat", "x")
    path.chmod(0o642)
    for load in (
        lambda each: load_roster(each, environment={}),
        lambda each: load_fleet(each, environment={}, warn=pytest.fail),
    ):
        with pytest.raises(InventoryProblem, match="every user of this machine can change it"):
            load(path)
    path.write_text(HEAD + '      - {name: one, set: "@x"}\n')
    assert path.stat().st_mode & stat.S_IWOTH
    assert load_roster(path, environment={}).clusters[0].consumers[0].file == tmp_path / "x"
