"""The `repair` family: plan a repair, apply it, and follow what is or was applied."""

from typing import Any

import typer

from gtid_audit.commands import apply_repair, data_check, follow_repair, plan


def commands(settings: dict[str, Any]) -> typer.Typer:
    """Return the command family."""
    family = typer.Typer(help="Plan repairs, and apply them.", no_args_is_help=False, **settings)
    family.callback()(_repair)
    family.command("plan")(plan.plan)
    family.command("check-data")(data_check.check_data)
    family.command("apply")(apply_repair.apply)
    family.command("resume")(apply_repair.resume)
    family.command("state")(follow_repair.state)
    family.command("list")(follow_repair.list_all)
    family.command("stop")(follow_repair.stop)
    return family


def _repair() -> None:
    """Plan repairs, and apply them."""
