"""Typer commands that start fast: their parameters are texts and flags, used as typed.

Typer (0.29) converts every parameter with Pydantic, even a text to a text. Importing Pydantic takes
as long as auditing a pair. These classes give the parameters of a command a converter that does
nothing. Other versions of Typer ignore the attribute that is set here, and the command works as
usual. A test verifies that Pydantic is not imported.
"""

from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_TAKEN_AS_TYPED = (str, bool, list[str])


class _AsTyped:
    """Replaces Typer's converter of a parameter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401, ARG002 - Typer's
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        return value


class FastCommand(TyperCommand):
    """A command whose parameters are `str`, `list[str]` or flags."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Return the parameters, including --help, each with the converter above."""
        return _made_fast(super().get_params(ctx))


class FastGroup(TyperGroup):
    """A command family whose own options are flags."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Return the parameters, including --help, each with the converter above."""
        return _made_fast(super().get_params(ctx))


def _made_fast(parameters: Any) -> Any:  # noqa: ANN401 - Typer's
    for parameter in parameters:
        if isinstance(parameter, TyperArgument | TyperOption):
            descriptor = getattr(parameter, "type_descriptor", None)
            if getattr(descriptor, "annotation", None) in _TAKEN_AS_TYPED:
                parameter._runtime_param = _AsTyped()  # type: ignore[assignment]  # noqa: SLF001
    return parameters
