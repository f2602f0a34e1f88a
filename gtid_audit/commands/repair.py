"""The `repair` family: plan a repair, apply it, and follow what is or was applied."""

from typing import Any

import typer

from gtid_audit.commands import apply_repair, data_check, follow_repair, plan
from gtid_audit.commands.plain_commands import PlainCommand


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(help="Plan repairs, and apply them.", no_args_is_help=False, **settings)
    family.callback()(_repair)
    family.command("plan", cls=PlainCommand)(plan.plan)
    family.command("check-data", cls=PlainCommand)(data_check.check_data)
    family.command("apply", cls=PlainCommand)(apply_repair.apply)
    family.command("resume", cls=PlainCommand)(apply_repair.resume)
    family.command("state", cls=PlainCommand)(follow_repair.state)
    family.command("list", cls=PlainCommand)(follow_repair.list_all)
    family.command("stop", cls=PlainCommand)(follow_repair.stop)
    return family


def _repair() -> None:
    """Plan repairs, and apply them."""
