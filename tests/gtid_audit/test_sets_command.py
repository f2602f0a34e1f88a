import json
import os
import subprocess
from itertools import count, islice
from pathlib import Path
from textwrap import dedent

import pytest

from gtid_audit.cli import run
from gtid_audit.operands import sets_from_operands
from tests.gtid_audit.build import GTID_AUDIT, run_cli

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
    assert run(("sets", *arguments)) == status
    assert capsys.readouterr() == (answer + "\n", "")


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(("sets", "subset", f"{U}:1-3", f"{U}:2", "--json")) == 1
    assert json.loads(capsys.readouterr().out) == {
        "schema_version": 1,
        "operation": "subset",
        "result": False,
    }
    assert run(("sets", "union", f"{U}:1-3", f"{U}:5", "--json")) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema_version": 1,
        "operation": "union",
        "result": {
            "gtid_set": f"{U}:1-3:5",
            "gtid_count": 4,
            "interval_count": 2,
            "tsid_count": 1,
            "tsids": [
                {
                    "uuid": U,
                    "tag": "",
                    "gtid_set": f"{U}:1-3:5",
                    "gtid_count": 4,
                    "interval_count": 2,
                }
            ],
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
    assert run(("sets", "holes", "--by-uuid", f"{V}:1:3,{U}:b:1:a:1:4", "--json")) == 0
    found = json.loads(capsys.readouterr().out)["result"]
    assert [(each["uuid"], each["tag"], each["gtid_set"]) for each in found["tsids"]] == [
        (U, "a", f"{U}:a:2-3"),
        (V, "", f"{V}:2"),
    ]
    assert found["gtid_set"] == f"{U}:a:2-3,{V}:2"


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(("sets", *arguments)) == 0
    return capsys.readouterr().out


def test_diff_as_a_person_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    a, b = f"{U}:1-1000:dba:5,{V}:1", f"{U}:5-1200,{V}:1"
    assert shown(capsys, "diff", a, b) == dedent(f"""\
        A and B intersect: each has GTIDs that the other does not have
                GTIDs  ranges  TSIDs
        only A      5       2      2
        only B    200       1      1
        both      997       2      2

        {U}
          only A    4  1-4
          only B  200  1001-1200
          both    996  5-1000
          A ████████████████████████████████████████········ 1 … 1,200
          B ▒███████████████████████████████████████████████ 1 … 1,200

        {U}:dba
          only A  1  5
          A ····█ 1 … 5
          B ····· 1 … 5

        1 TSID equal in A and B
    """)


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [
        (f"{U}:1", f"{U}:1", "A and B are equal"),
        (f"{U}:1-2", f"{U}:1", "A contains B: it has all of B, and more"),
        ("", f"{U}:1", "A is contained in B: B has all of A, and more"),
        (f"{U}:1", f"{U}:2", "A and B are disjoint: no GTID is in both"),
    ],
)
def test_diff_says_the_relation(
    capsys: pytest.CaptureFixture[str], a: str, b: str, said: str
) -> None:
    assert shown(capsys, "diff", a, b).startswith(f"{said}\n")


def test_holes_by_uuid(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(capsys, "holes", "--by-uuid", f"{U}:3-5:9-12,{V}:1-7") == dedent(f"""\
               GTIDs  ranges  TSIDs
        holes      3       1      1
        held      14       3      2

        {U}
          holes  3  6-8
          held   7  3-5:9-12
          ··███···████ 1 … 12

        1 TSID without holes
    """)
    assert "1 TSID without holes" in shown(capsys, "holes", "--by-uuid", f"{U}:1")


def test_what_is_long_is_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    many = ":".join(f"{number}" for number in range(1, 2_000, 2))
    uuids = [f"{number:08x}{U[8:]}" for number in range(30)]
    a = ",".join(f"{uuid}:{many}" for uuid in uuids)
    for arguments in (("diff", a, f"{uuids[0]}:1-3"), ("holes", "--by-uuid", a)):
        text = shown(capsys, *arguments)
        assert max(map(len, text.splitlines())) <= 80
        assert "more ranges, " in text
        assert "… and 10 more TSIDs that " in text
        assert "--json has all" in text
        assert uuids[19] in text
        assert uuids[20] not in text


@pytest.mark.parametrize("no_color", [True, False])
def test_colours_only_on_a_terminal_and_not_with_no_color(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, no_color: bool
) -> None:
    assert "\x1b" not in shown(capsys, "diff", f"{U}:1", f"{U}:2")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")
    text = shown(capsys, "diff", f"{U}:1", f"{U}:2")
    colours = {part.split("m")[0] for part in text.split("\x1b[")[1:]}
    assert any("31" in colour for colour in colours) is not no_color


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
        (("count", "-"), rf"{U}:1,\n{V}:2".encode(), "writes \\n for a line end: add --raw"),
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


def test_an_operand_has_limits(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").write_text(f"{U}:1:3:5,{V}:1")
    operand = f"@{tmp_path}/a"
    for limit, value, said in (
        ("BYTES", 80, "/a: more than the limit of 80 bytes"),
        ("INTERVALS", 3, "/a: 4 intervals and tags, more than the limit of 3"),
        ("TSIDS", 1, "/a: 2 TSIDs, more than the limit of 1"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(sets_from_operands, f"OPERAND_{limit}_MAX", value)
            assert run(("sets", "count", operand)) == 64
        assert capsys.readouterr().err.endswith(f"{said}\n")
    assert run(("sets", "count", operand)) == 0


@pytest.mark.slow
def test_operands_of_hundreds_of_megabytes(tmp_path: Path) -> None:
    """Memory is what is asserted: a generous multiple of the input, on top of the kernels."""
    sizes = {}
    for name, start, step in (("a", 1, 4), ("b", 3, 6)):
        numbers = count(start, step)
        with (tmp_path / name).open("w") as file:
            file.write(U)
            while file.tell() < 200_000_000:
                file.writelines(f":{n}-{n + 1}" for n in islice(numbers, 500_000))
        sizes[name] = (tmp_path / name).stat().st_size
    command = [GTID_AUDIT, "sets", "subtract", f"@{tmp_path}/a", f"@{tmp_path}/b"]
    with (tmp_path / "out").open("wb") as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    with (tmp_path / "out").open() as out:
        assert out.read(len(U) + 20) == f"{U}:1-2:5-6:13-14:17-18"[: len(U) + 20]
    peak, given = usage.ru_maxrss * 1024, sum(sizes.values())
    print(f"operands of {given:,} bytes took {peak:,} bytes of memory: {peak / given:.1f} times")  # noqa: T201
    assert peak < 400_000_000 + 5 * given
