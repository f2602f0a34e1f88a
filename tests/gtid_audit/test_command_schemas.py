"""Every command with --json has a JSON Schema, and its real output follows it.

Every document that a command prints while any test runs is compared with the schemas of its command
(tests/documents.py), and a difference makes that test fail. Here are the files of docs/reference,
the rule that no command is without a schema, and documents that are easily made.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer

from gtid_audit.cli import app, run
from gtid_audit.commands.command_tree import described_commands
from gtid_audit.document_types.command_documents import (
    COMMANDS,
    DOCUMENTS,
    reference_files,
    schema_of,
)
from gtid_audit.views.json_lines import LINE_TYPES, VERDICT_LINE
from tests.documents import check_printed, check_text, checked_documents, command_of

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:tagged:7-9"
OFFLINE = (
    *(("sets", name, SET, SET) for name in ("subtract", "union", "intersect")),
    *(("sets", name, SET, SET) for name in ("subset", "equal", "disjoint", "diff")),
    *(("sets", name, SET) for name in ("count", "canonical", "holes")),
    ("explain", "H1"),
    ("explain", "nothing that a server says"),
    ("explain", f"the slave has more GTIDs than the master has: {SET}"),
    ("audit", "--questions", "9.7.4"),
    ("completion", "zsh"),
    ("man",),
    ("spark", "command", "--master", "yarn", "--snapshots", "x", "--out", "y"),
)


def test_every_command_with_json_has_a_document() -> None:
    commands = described_commands(typer.main.get_command(app), "gtid-audit")
    assert {" ".join(each.path) for each in commands if each.has_option("--json")} == set(COMMANDS)
    assert {name for names in COMMANDS.values() for name in names} == set(DOCUMENTS)


@pytest.mark.long
@pytest.mark.parametrize("name", reference_files())
def test_a_reference_file_is_what_the_code_makes(name: str) -> None:
    text = (REFERENCE / name).read_text()
    assert text == reference_files()[name], "run: make docs"
    jsonschema.Draft202012Validator.check_schema(json.loads(text))


def test_readers_of_the_published_schema_ignore_new_fields() -> None:
    published = json.loads((REFERENCE / "commands.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(published)
    validator.validate({"schema_version": 1, "manual": "a page", "a later field": 1})
    assert not validator.is_valid({"schema_version": 1})
    assert not validator.is_valid({"schema_version": 2, "manual": "a page"})


def test_the_page_links_every_file_and_lists_every_document() -> None:
    page = (ROOT / "docs/json.md").read_text()
    assert [name for name in DOCUMENTS if f"`{name}`" not in page] == []
    assert [name for name in reference_files() if f"(reference/{name})" not in page] == []


def test_the_page_lists_every_type_of_line() -> None:
    page = (ROOT / "docs/json.md").read_text()
    [table] = re.findall(r"^\| `type` \| fields \|\n(.*?)\n\n", page, re.MULTILINE | re.DOTALL)
    types = {
        kind for row in table.splitlines() for kind in re.findall(r"`(\w+)`", row.split("|")[1])
    }
    assert types == {*LINE_TYPES.values(), VERDICT_LINE}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_field_that_is_gone_or_new_is_noticed(name: str) -> None:
    record = DOCUMENTS[name]
    assert record.parts[0][0] == "schema_version"
    schema = schema_of(name, is_closed=True)
    assert schema["required"] == [field for field, _ in record.parts]
    assert schema["additionalProperties"] is False
    assert "additionalProperties" not in schema_of(name)


@pytest.mark.parametrize("words", OFFLINE, ids=lambda words: " ".join(words[:2]))
def test_a_document_without_servers(words: tuple[str, ...], capsys: Any) -> None:
    run([*words, "--json"])
    text = capsys.readouterr().out
    assert next(iter(json.loads(text))) == "schema_version"
    command = command_of(words)
    assert command is not None
    assert check_text(command, text), "and the fixture of every test has checked it, too"


def test_a_document_with_another_field_makes_its_test_fail() -> None:
    def explain() -> None:
        with checked_documents():
            run(["explain", "H1", "--json"])

    explain()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gtid_audit.output.versioned", lambda document: {"new": 1, **document})
        with pytest.raises(jsonschema.ValidationError, match="'schema_version' is a required"):
            explain()
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(COMMANDS, "explain")
        with pytest.raises(KeyError, match="explain"):
            explain()


def test_a_process_is_checked_too() -> None:
    check_printed(("man", "--json"), '{"schema_version": 1, "manual": "a"}')
    check_printed(("man",), "a")
    with pytest.raises(jsonschema.ValidationError):
        check_printed(("--quiet", "man", "--json"), '{"schema_version": 1, "manual": 1}')
    with pytest.raises(jsonschema.ValidationError):
        check_printed(("locks", "x", "--format", "json"), '{"schema_version": 1}')
