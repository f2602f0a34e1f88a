"""Rules for every command: --json, the options of sibling commands, variables, needed extras."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final
from uuid import UUID

import pytest
import typer

from gtid_audit import optional_packages
from gtid_audit.cli import HELP_COLUMNS, app, run
from gtid_audit.commands.command_tree import described_commands, global_options
from gtid_audit.commands.environment_names import NOT_FROM_ENVIRONMENT, SHARED, variables_of
from gtid_audit.described_commands import DescribedCommand
from tests.gtid_audit.build import run_cli

COMMANDS: Final = {
    " ".join(each.path): each
    for each in described_commands(typer.main.get_command(app), "gtid-audit")
}
DEAD: Final = ("mysql://root@127.0.0.1:1/", "mysql://root@127.0.0.1:2/")

# What a command that connects to servers must have, and the reasons for exceptions.
CONNECTING: Final = ("--ask-password", "--timeout", "--allow-uuid")
FLEET: Final = "accounts, limits and policy are in the fleet file"
NO_POLICY: Final = "it does not evaluate whether extra transactions are allowed"
AS_LONG_AS_IT_TAKES: Final = "a statement of a repair takes as long as it takes"
OF_THE_PLAN: Final = "the procedure keeps the options of its first start"
EXCEPTIONS: Final[dict[str, dict[str, str]]] = {
    "pair": {},
    "audit": {},
    "handshake": {},
    "repair plan": {},
    "snapshot": dict.fromkeys(CONNECTING, FLEET),
    "serve": dict.fromkeys(CONNECTING, FLEET),
    "reconcile": dict.fromkeys(CONNECTING, FLEET),
    "repair apply": {"--timeout": AS_LONG_AS_IT_TAKES, "--allow-uuid": NO_POLICY},
    "repair resume": dict.fromkeys(CONNECTING, OF_THE_PLAN),
    **{
        name: {"--allow-uuid": NO_POLICY}
        for name in (
            *("locks", "trace", "schema versions", "schema drift", "repair check-data"),
            *("binlog scan", "binlog locate", "binlog show", "binlog compare"),
            *("binlog schema follow", "binlog schema update", "binlog schema compare"),
        )
    },
}
OFFLINE: Final = {
    *("history", "explain", "completion", "man", "monitoring", "binlog cover"),
    *(name for name in COMMANDS if name.startswith("sets ")),
    *("binlog schema list", "binlog schema delete"),
    *("repair state", "repair list", "repair stop"),
    *("spark trends", "spark package", "spark command", "spark submit"),
}
# The forms of an answer, for commands with more than text and JSON.
FORMATTED: Final = {
    *("pair", "audit", "handshake", "locks", "trace", "schema versions", "schema drift"),
    *("binlog scan", "binlog locate", "binlog cover", "binlog compare"),
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_command_has_json(command: DescribedCommand) -> None:
    assert command.has_option("--json")


def test_help_names_no_type_of_python_and_fits_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    for path in {(), *(each.path[:-1] for each in COMMANDS.values())} | {
        each.path for each in COMMANDS.values()
    }:
        assert run([*path, "--help"]) == 0
        said = capsys.readouterr().out
        assert not re.search(r"<(str|list|int|float|path|bool)", said), path
        assert "...]..." not in said, path
        assert max(map(len, said.splitlines())) <= HELP_COLUMNS
        listed = said.partition("\nCommands:\n")[2]
        assert not re.search(r"\.\.\.$", listed, re.MULTILINE), f"a summary is cut: {path}"


def test_each_command_connects_or_is_offline() -> None:
    assert {*EXCEPTIONS, *OFFLINE} == set(COMMANDS)
    assert not OFFLINE & set(EXCEPTIONS)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_a_command_that_connects_has_the_options_of_its_siblings(name: str) -> None:
    missing = {each for each in CONNECTING if not COMMANDS[name].has_option(each)}
    assert missing == set(EXCEPTIONS[name])


@pytest.mark.parametrize("name", sorted(OFFLINE))
def test_a_command_that_connects_to_nothing_asks_for_no_password(name: str) -> None:
    assert not COMMANDS[name].has_option("--ask-password")


def test_commands_with_a_verdict_have_the_forms() -> None:
    assert {name for name, each in COMMANDS.items() if each.has_option("--format")} == FORMATTED
    watched = {name for name, each in COMMANDS.items() if each.has_option("--watch")}
    assert watched == {"pair", "audit"}


# -- environment ----------------------------------------------------------------------------------


def test_every_option_has_a_variable_or_a_reason() -> None:
    for command in COMMANDS.values():
        for option in command.options:
            is_excepted = option.long_name in NOT_FROM_ENVIRONMENT
            assert bool(option.variables) is not is_excepted, option


def test_no_variable_has_two_meanings() -> None:
    meanings: dict[str, set[str]] = {}
    for name, command in COMMANDS.items():
        for option in command.options:
            for variable in option.variables:
                shared = variable == variables_of((), option.long_name)[0]
                assert shared is False or option.long_name in SHARED
                meaning = option.long_name if shared else f"{name} {option.long_name}"
                meanings.setdefault(variable, set()).add(meaning)
    for option in global_options(typer.main.get_command(app), "gtid-audit"):
        for variable in option.variables:
            meanings.setdefault(variable, set()).add(option.long_name)
    assert {each for each, found in meanings.items() if len(found) > 1} == set()
    # Read elsewhere: the password, and places of the test bed.
    others = {"PASSWORD", "RUNS", "CACHE", "MYSQL", "MYSQLD", "TEST"}
    assert not {f"GTID_AUDIT_{each}" for each in others} & set(meanings)


def test_shared_options_exist() -> None:
    every = {option.long_name for each in COMMANDS.values() for option in each.options}
    every |= {"--quiet", "--no-color", "--debug"}
    assert every >= SHARED


@pytest.mark.parametrize(
    ("variables", "arguments", "said"),
    [
        ({"GTID_AUDIT_TIMEOUT": "soon"}, ("pair", *DEAD), "--timeout by GTID_AUDIT_TIMEOUT"),
        (
            {"GTID_AUDIT_PAIR_TIMEOUT": "0", "GTID_AUDIT_TIMEOUT": "1"},
            ("pair", *DEAD),
            "--timeout by GTID_AUDIT_PAIR_TIMEOUT",
        ),
        ({"GTID_AUDIT_PAIR_JSON": "maybe"}, ("pair", *DEAD), "--json by GTID_AUDIT_PAIR_JSON"),
        ({"GTID_AUDIT_QUIET": "maybe"}, ("sets", "count", ""), "--quiet by GTID_AUDIT_QUIET"),
        ({"GTID_AUDIT_ENGINE": "x"}, ("audit", *DEAD), "--engine by GTID_AUDIT_ENGINE"),
        ({"GTID_AUDIT_FLEET": "x"}, ("audit", *DEAD), "--fleet by GTID_AUDIT_FLEET"),
        ({"GTID_AUDIT_FORMAT": "xml"}, ("locks", *DEAD), "--format by GTID_AUDIT_FORMAT"),
    ],
)
def test_a_bad_value_names_its_variable(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    variables: dict[str, str],
    arguments: tuple[str, ...],
    said: str,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(arguments) == 64
    out, err = capsys.readouterr()
    assert (out, f"the environment sets {said}" in err) == ("", True)


def test_a_value_of_the_command_line_wins(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GTID_AUDIT_SETS_COUNT_JSON", "1")
    assert run(("sets", "count", "")) == 0
    assert '"result": 0' in capsys.readouterr().out
    monkeypatch.setenv("GTID_AUDIT_TIMEOUT", "soon")
    assert run(("pair", *DEAD, "--timeout", "1", "--quiet")) == 3


def test_consent_is_not_taken_from_the_environment() -> None:
    for name in ("--yes", "--approve"):
        assert any(each.has_option(name) for each in COMMANDS.values())
        assert variables_of(("repair", "apply"), name) == ()


# -- extras ---------------------------------------------------------------------------------------

NEEDING: Final = (
    (("binlog", "scan", "x"), "columns"),
    (("binlog", "locate", f"{UUID(int=1)}:1", "x"), "columns"),
    (("binlog", "cover", "x", "--from", ""), "columns"),
    (("binlog", "compare", "x", "x"), "columns"),
    (("schema", "versions", *DEAD), "columns"),
    (("snapshot", "--fleet", "x", "--out", "x"), "columns"),
    (("audit", "--snapshots", "x"), "columns"),
    (("spark", "trends", "x"), "columns"),  # Parquet is checked first
)


@pytest.mark.parametrize(("arguments", "extra"), NEEDING)
def test_a_missing_package_is_named_with_the_smallest_extra(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: tuple[str, ...],
    extra: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x").touch()
    monkeypatch.setattr(optional_packages, "find_spec", lambda _name: None)
    assert run(arguments) == 64
    assert f"pip install 'gtid-audit[{extra}]'" in capsys.readouterr().err
    words = arguments[:2] if arguments[0] in {"binlog", "schema", "spark"} else arguments[:1]
    assert "pip install 'gtid-audit[" in COMMANDS[" ".join(words)].epilog


def test_pyspark_is_in_the_largest_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_packages, "find_spec", lambda _name: None)
    with pytest.raises(Exception, match=r"pyspark.*\[spark\]"):
        optional_packages.require_spark()


@pytest.mark.long
def test_help_shows_needs_and_the_environment_once() -> None:
    text = " ".join(run_cli("binlog", "scan", "--help").stdout.split())
    assert "Needs the extra [columns]: pip install 'gtid-audit[columns]'" in text
    assert "GTID_AUDIT" not in text
    text = " ".join(run_cli("--help").stdout.split())
    assert text.count("GTID_AUDIT_TIMEOUT") == 1
