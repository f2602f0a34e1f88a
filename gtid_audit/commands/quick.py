"""Typer commands that start at once: their parameters are texts and flags, taken as typed.

Typer (0.29) turns every parameter into its type by Pydantic, even a text into a text; importing
Pydantic costs as much time as auditing a pair. These classes give the parameters of a command a
converter that does nothing. Where Typer has no such place (other versions), the attribute set here
is never read, and the command works as any other; a test sees that Pydantic stays out.
"""

from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

_TAKEN_AS_TYPED = (str, bool, list[str])


class _AsTyped:
    """Stands where Typer keeps a parameter's converter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ANN401, ARG002 - Typer's
        if value is None and (param.multiple or param.nargs == -1):
            return ()
        return value


class QuickCommand(TyperCommand):
    """A command whose parameters are `str`, `list[str]` or flags."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Return the parameters, --help among them, each with its converter."""
        return _quickened(super().get_params(ctx))


class QuickGroup(TyperGroup):
    """A family of commands whose own options are flags."""

    def get_params(self, ctx: Any) -> Any:  # noqa: ANN401 - Typer's
        """Return the parameters, --help among them, each with its converter."""
        return _quickened(super().get_params(ctx))


def _quickened(parameters: Any) -> Any:  # noqa: ANN401 - Typer's
    for parameter in parameters:
        if isinstance(parameter, TyperArgument | TyperOption):
            descriptor = getattr(parameter, "type_descriptor", None)
            if getattr(descriptor, "annotation", None) in _TAKEN_AS_TYPED:
                parameter._runtime_param = _AsTyped()  # type: ignore[assignment]  # noqa: SLF001
    return parameters
