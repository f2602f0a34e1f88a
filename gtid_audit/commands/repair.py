"""The `repair` family: plan a repair, apply it, and follow what is or was applied."""

from typing import Any

import typer

from gtid_audit.commands import apply_plan, plan, procedures


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(help="Plan repairs, and apply them.", no_args_is_help=False, **settings)
    family.callback()(_repair)
    family.command("plan")(plan.plan)
    family.command("apply")(apply_plan.apply)
    family.command("resume")(apply_plan.resume)
    family.command("state")(procedures.state)
    family.command("list")(procedures.list_all)
    family.command("stop")(procedures.stop)
    return family


def _repair() -> None:
    """Plan repairs, and apply them."""
