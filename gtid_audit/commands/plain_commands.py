"""The classes of all commands: options for every command, environment variables, a fast start.

1. Every command accepts --quiet, --no-color and --debug, also after its name.
2. Every option can be set by environment variables; environment_names.py has their names.
3. Typer (0.29) converts each parameter with Pydantic, even a text to a text. Importing Pydantic
   takes as long as auditing a pair. Texts, flags and paths get a converter of ours here. Versions
   of Typer that do not call `get_runtime_param` convert them without Pydantic. A test verifies that
   Pydantic is not imported.

Only names that Click and Typer publish are used.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from gtid_audit.commands.environment_names import variables_of
from gtid_audit.exits import USAGE_PROBLEMS

GLOBAL: Final = ("quiet", "no_color", "debug")  # parameters of the root that all commands have
_TRUE: Final = frozenset({"1", "true", "yes", "on", "y", "t"})
_FALSE: Final = frozenset({"0", "false", "no", "off", "n", "f"})
_TAKEN_AS_TYPED: Final = (str, bool, list[str], Path, list[Path])


class PlainCommand(TyperCommand):
    """A command of ours."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Return the parameters, including --help and those of every command."""
        return _prepared([*super().get_params(ctx), *_global_parameters(ctx)], ctx)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Run the command. A usage problem gets a note about options from the environment."""
        try:
            return super().invoke(ctx)
        except USAGE_PROBLEMS as problem:
            for note in environment_notes(ctx):
                problem.add_note(note)
            raise


class PlainGroup(TyperGroup):
    """A command family of ours."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Return the parameters, including --help and those of every command."""
        return _prepared([*super().get_params(ctx), *_global_parameters(ctx)], ctx)


def command_path(ctx: Any) -> tuple[str, ...]:  # noqa: ANN401 - Typer's
    """Return the words of a command, without the program."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, ctx.info_name)
        ctx = ctx.parent
    return tuple(words)


def environment_notes(ctx: Any) -> Iterator[str]:  # noqa: ANN401 - Typer's
    """Report which options the environment set: a wrong one is not on the command line."""
    found = []
    while ctx is not None:
        for each in ctx.command.get_params(ctx):
            source = ctx.get_parameter_source(each.name)
            if source is not None and source.name == "ENVIRONMENT":
                [name, *_] = [one for one in each.envvar if os.environ.get(one)]
                found.append(f"{each.opts[0]} by {name}")
        ctx = ctx.parent
    if found:
        yield f"the environment sets {', '.join(dict.fromkeys(found))}"


class _Converter:
    """Takes a value as it was typed. Used instead of Typer's converter of a parameter."""

    def __init__(self, annotation: Any) -> None:  # noqa: ANN401 - a type, as Typer has it
        self._annotation = annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._annotation is bool:
            return _flag_of(value, param, ctx)
        if self._annotation is Path:
            return Path(value)
        if self._annotation == list[Path]:
            return [Path(each) for each in value]
        return value


def _flag_of(value: bool | str, param: Any, ctx: Any) -> bool:  # noqa: ANN401 - Typer's
    """Return a flag; the environment has it as text."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower()
    if word not in _TRUE | _FALSE:
        raise typer.BadParameter("expected 1 or 0", ctx=ctx, param=param)
    return word in _TRUE


def _global_parameters(ctx: Any) -> list[Any]:  # noqa: ANN401 - Typer's
    if ctx.parent is None:
        return []
    return [each for each in ctx.find_root().command.params if each.name in GLOBAL]


def _prepared(parameters: Sequence[Any], ctx: Any) -> list[Any]:  # noqa: ANN401 - Typer's
    path = command_path(ctx)
    for each in parameters:
        if isinstance(each, TyperArgument | TyperOption):
            annotation = getattr(getattr(each, "type_descriptor", None), "annotation", None)
            if annotation in _TAKEN_AS_TYPED:
                converter = _Converter(annotation)
                setattr(each, "get_runtime_param", lambda made=converter: made)  # noqa: B010
        if isinstance(each, TyperArgument):
            # Typer prints the Python type, for example `DSN <list[str]>`.
            setattr(each, "display_type_rich", lambda ctx: None)  # noqa: ARG005, B010
        if isinstance(each, TyperOption):
            where = () if each.name in GLOBAL else path
            each.envvar = variables_of(where, max(each.opts, key=len)) or None
            each.show_envvar = False
    return list(parameters)
