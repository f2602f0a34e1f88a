"""Describes every command of the command line: for the manual page, the documentation and tests.

It reads what Typer made of the commands, through names that Click publishes.
"""

from collections.abc import Iterator
from typing import Any

from gtid_audit.commands.environment_names import variables_of
from gtid_audit.commands.plain_commands import GLOBAL, command_path
from gtid_audit.described_commands import DescribedCommand, DescribedParameter


def described_commands(root: Any, name: str) -> Iterator[DescribedCommand]:  # noqa: ANN401 - Typer's
    """Yield the commands of a program in the order of --help; families are not commands."""
    with root.make_context(name, [], resilient_parsing=True) as ctx:
        yield from _below(ctx)


def global_options(root: Any, name: str) -> tuple[DescribedParameter, ...]:  # noqa: ANN401 - Typer's
    """Return the options before the command, of which every command also has GLOBAL."""
    with root.make_context(name, [], resilient_parsing=True) as ctx:
        return tuple(_described(each, ctx) for each in root.get_params(ctx))


def _below(ctx: Any) -> Iterator[DescribedCommand]:  # noqa: ANN401 - Typer's
    for name in ctx.command.list_commands(ctx):
        command = ctx.command.get_command(ctx, name)
        with command.make_context(name, [], parent=ctx, resilient_parsing=True) as inner:
            if hasattr(command, "list_commands"):
                yield from _below(inner)
                continue
            own = [each for each in command.get_params(inner) if each.name not in GLOBAL]
            yield DescribedCommand(
                command_path(inner),
                command.help or "",
                command.epilog or "",
                tuple(_described(each, inner) for each in own if each.name != "help"),
            )


def _described(parameter: Any, ctx: Any) -> DescribedParameter:  # noqa: ANN401 - Typer's
    is_option = parameter.param_type_name == "option"
    # Click keeps the names of --help in a set. The short one comes first.
    names = (*sorted(parameter.opts, key=len), *parameter.secondary_opts)
    placeholder = "" if is_option and parameter.is_flag else parameter.display_type_rich(ctx)
    path = () if parameter.name in GLOBAL else command_path(ctx)
    longest = max(parameter.opts, key=len)
    return DescribedParameter(
        names=names if is_option else (parameter.metavar or parameter.name,),
        long_name=longest if is_option else "",
        placeholder=placeholder if is_option else "",
        text=parameter.help or "",
        is_option=is_option,
        is_required=parameter.required,
        variables=variables_of(path, longest) if is_option else (),
    )
