"""The documents of commands have the fields of docs/reference/commands.schema.json.

While a test of this folder runs, every document is compared with its schema (conftest.py). Here are
the file, and documents that are easily made.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from compose.native.server import Server
from gtid_audit.cli import run
from gtid_audit.views.command_schemas import DOCUMENTS, closed, schema_for, schema_text

ROOT = Path(__file__).parents[2]
SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:tagged:7-9"


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    run([*words, "--json"])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "schema_version"
    schema = schema_for(document)
    assert schema is not None, document.keys()
    jsonschema.Draft202012Validator(closed(schema)).validate(document)
    return document


def test_the_file_is_what_the_code_says() -> None:
    text = (ROOT / "docs/reference/commands.schema.json").read_text()
    assert text == schema_text(), "run: make docs"
    whole = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(whole)
    jsonschema.Draft202012Validator(whole).validate(
        {"schema_version": 1, "host": "127.0.0.1", "port": 1, "a later field": 1}
    )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(whole).validate({"schema_version": 1})


def test_a_document_is_recognised_by_its_fields() -> None:
    fields = [frozenset(schema["properties"]) for schema in DOCUMENTS.values()]
    assert len(set(fields)) == len(fields)
    assert all("schema_version" in each for each in fields)
    page = (ROOT / "docs/json.md").read_text()
    assert [name for name in DOCUMENTS if f"`{name.split(',')[0]}`" not in page] == []


@pytest.mark.parametrize(
    "words",
    [
        ("sets", "union", SET, SET),
        ("sets", "count", SET),
        ("sets", "subset", SET, SET),
        ("sets", "diff", SET, ""),
        ("explain", "H1"),
        ("explain", "nothing that a server says"),
        ("explain", f"the slave has more GTIDs than the master has: {SET}"),
    ],
)
def test_a_document_without_servers(words: tuple[str, ...], capsys: Any) -> None:
    printed(capsys, *words)


def test_the_documents_of_logs(mysql97: Server, capsys: pytest.CaptureFixture[str]) -> None:
    mysql97.execute("CREATE DATABASE of_schemas", "DROP DATABASE of_schemas")
    index = str(mysql97.value("@@log_bin_index"))
    gtid = f"{mysql97.value('@@GLOBAL.server_uuid')}:1"
    assert printed(capsys, "binlog", "scan", index, "--details")["transactions"] > 0
    assert printed(capsys, "binlog", "locate", gtid, index)["files"]
    assert printed(capsys, "binlog", "cover", "--from", "", index)["files"]
    assert len(printed(capsys, "binlog", "show", gtid, index)["transactions"]) == 1


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_field_that_is_gone_or_new_is_noticed(name: str) -> None:
    schema = closed(DOCUMENTS[name])
    fields = dict.fromkeys(schema["properties"])
    assert schema_for({**fields, "new": 1}) is None
    assert schema_for(dict(list(fields.items())[:-1])) is not DOCUMENTS[name]
    assert schema["additionalProperties"] is False
