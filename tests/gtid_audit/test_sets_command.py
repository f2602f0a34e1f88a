import json
from pathlib import Path

import pytest

from tests.gtid_audit.build import run_cli

U = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
V = "4e11fa47-71ca-11e1-9e33-c80aa9429562"


def test_the_example_of_the_readme() -> None:
    done = run_cli("sets", "subtract", f"{U.upper()}:1-10:dba:1-3", f"{U}:3-4:6:dba:2")
    assert done.stdout == f"{U}:1-2:5:7-10:dba:1:3\n"
    assert done.stderr == ""
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "answer", "status"),
    [
        (("union", f"{U}:1-2", f"{V}:1,{U}:3"), f"{U}:1-3,{V}:1", 0),
        (("intersect", f"{U}:1-5", f"{U}:4-9"), f"{U}:4-5", 0),
        (("subtract", f"{U}:1", f"{U}:1"), "", 0),
        (("subset", f"{U}:2", f"{U}:1-3"), "true", 0),
        (("subset", f"{U}:1-3", f"{U}:2"), "false", 1),
        (("equal", f"{U}:1:2", f"{U}:1-2"), "true", 0),
        (("equal", f"{U}:1", ""), "false", 1),
        (("disjoint", f"{U}:1", f"{U}:2"), "true", 0),
        (("disjoint", f"{U}:1", f"{U}:1"), "false", 1),
        (("count", f"{U}:1-9223372036854775806"), "9223372036854775806", 0),
        (("holes", f"{U}:3-4:9:b:1:3"), f"{U}:5-8:b:2", 0),
        (("canonical", f"{V}:2:1\n,{U}:5-4:7,"), f"{U}:7,{V}:1-2", 0),
    ],
)
def test_operations(
    arguments: tuple[str, ...], answer: str, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    from gtid_audit.cli import run

    assert run(("sets", *arguments)) == status
    assert capsys.readouterr() == (answer + "\n", "")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    from gtid_audit.cli import run

    assert run(("sets", "subset", f"{U}:1-3", f"{U}:2", "--json")) == 1
    assert json.loads(capsys.readouterr().out) == {"operation": "subset", "result": False}
    assert run(("sets", "union", f"{U}:1-3", f"{U}:5", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {
        "operation": "union",
        "result": {
            "gtid_set": f"{U}:1-3:5",
            "gtid_count": 4,
            "interval_count": 2,
            "tsid_count": 1,
        },
    }
    assert run(("sets", "diff", f"{U}:1-3", f"{U}:2-5", "--json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["relation"] == "intersects"
    assert [found[part]["gtid_set"] for part in ("only_a", "only_b", "both")] == [
        f"{U}:1",
        f"{U}:4-5",
        f"{U}:2-3",
    ]


def test_operands_from_files_and_standard_input(tmp_path: Path) -> None:
    (tmp_path / "a").write_text(f"{U}:1-5,\n{V}:1\n")
    done = run_cli("sets", "subtract", f"@{tmp_path}/a", "-", stdin=f"{U}:2\n")
    assert (done.stdout, done.returncode) == (f"{U}:1:3-5,{V}:1\n", 0)


@pytest.mark.parametrize(
    ("arguments", "stdin", "said"),
    [
        (("count", f"{U}:1-2:x-y:3"), b"", "operand A: expected "),
        (("subset", f"{U}:1", f"{U}:0"), b"", "operand B: expected a number from 1"),
        (("count", "@/nowhere/at/all"), b"", "/nowhere/at/all: No such file"),
        (("union", "-", "-"), b"", "only one operand can be '-'"),
        (("count", "-"), f"{U}:1\xff".encode("latin-1"), "found byte 0xff at character 38"),
        (("count", "-"), b"nonsense", "standard input: expected a UUID at character 0: [HERE]non"),
        (("count",), b"", "Missing argument 'A'"),
        (("union", f"{U}:1"), b"", "Missing argument 'B'"),
        (("frobnicate",), b"", "No such command"),
        (("count", f"{U}:1", "--frob"), b"", "No such option"),
        ((), b"", "Calculate with GTID sets"),
    ],
)
def test_what_is_wrong_is_64_and_said(arguments: tuple[str, ...], stdin: bytes, said: str) -> None:
    done = run_cli("sets", *arguments, stdin=stdin)
    assert done.returncode == 64
    assert done.stdout == ""
    assert said in done.stderr


def test_the_place_of_a_mistake_is_shown() -> None:
    done = run_cli("sets", "count", f"{U}:1-2::3")
    assert "at character 41" in done.stderr
    assert "[HERE]" in done.stderr
