"""Compares what commands print with --json with the schemas of their documents.

`checked_documents` does that for every command of ours that runs in this process, and
`check_printed` for one that ran in a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Final, TextIO

import jsonschema
import pytest
import typer

from gtid_audit.cli import app
from gtid_audit.commands.command_tree import described_commands
from gtid_audit.commands.plain_commands import PlainCommand
from gtid_audit.document_types.command_documents import COMMANDS, schema_of
from gtid_audit.output_form import OutputForm

PROGRAM: Final = "gtid-audit"
VERDICT_STATUS: Final = range(4)
_INVOKE: Final[Callable[..., Any]] = PlainCommand.invoke


@cache
def commands_by_words() -> frozenset[tuple[str, ...]]:
    return frozenset(each.path for each in described_commands(typer.main.get_command(app), PROGRAM))


@cache
def validator_of(document: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema_of(document, is_closed=True))


def command_of(arguments: Sequence[str]) -> str | None:
    """Return the command that these arguments run; None if there is no such command."""
    words = [each for each in arguments if not each.startswith("-")]
    found = [tuple(words[:count]) for count in range(1, 4)]
    return next((" ".join(each) for each in found if each in commands_by_words()), None)


def check_text(command: str, text: str) -> list[str]:
    """Return which documents of a command these are, one after the other (as with --watch).

    Raises KeyError if the command has no document, ValidationError if it prints no such one.
    """
    decoder, rest, names = json.JSONDecoder(), text.strip(), []
    while rest:
        document, end = decoder.raw_decode(rest)
        possible = COMMANDS[command]
        fitting = [name for name in possible if validator_of(name).is_valid(document)]
        if not fitting:
            validator_of(possible[0]).validate(document)
            raise jsonschema.ValidationError(f"a document of none of {possible}")
        names += fitting
        rest = rest[end:].lstrip()
    return names


def check_printed(arguments: Sequence[str], text: str) -> None:
    """Check what a command printed, if its arguments ask for a document."""
    form = arguments[arguments.index("--format") + 1 :][:1] if "--format" in arguments else []
    command = command_of(arguments)
    if command is not None and ("--json" in arguments or list(form) == [OutputForm.JSON.value]):
        check_text(command, text)


class _CopiedOutput:
    """Standard output that keeps a copy of what is written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.copy: list[str] = []

    def write(self, text: str) -> int:
        self.copy.append(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def checked_documents() -> Iterator[None]:
    """Check every document that a command prints while the context lasts; raise at its end.

    An exception within the command would only be reported as a defect, with another exit status.
    """
    wrong: list[Exception] = []

    def checking(command: PlainCommand, context: typer.Context) -> Any:
        copied = _CopiedOutput(sys.stdout)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stdout", copied)
            status = _INVOKE(command, context)
        given = context.params
        is_document = given.get("as_json") or given.get("form") == OutputForm.JSON.value
        if is_document and status in VERDICT_STATUS:  # after a defect, what there is is shown
            try:
                check_text(context.command_path.removeprefix(f"{PROGRAM} "), "".join(copied.copy))
            except (KeyError, ValueError, jsonschema.ValidationError) as problem:
                wrong.append(problem)
        return status

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainCommand, "invoke", checking)
        yield
    if wrong:
        raise wrong[0]
