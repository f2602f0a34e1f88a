"""The sources of accounts for a command that a user runs: prompt, environment, the user's files."""

from typing import TYPE_CHECKING

from gtid_audit.operands.prompt import ask_password
from gtid_audit.output import warn

if TYPE_CHECKING:
    from topology.adapters.inventory.targets import Accounts


def accounts_of_user(*, ask: bool) -> "Accounts":
    """Return the sources, after a prompt for the password with `ask`. Raises UsageProblem."""
    from topology.adapters.inventory.secrets import environment
    from topology.adapters.inventory.targets import Accounts

    typed = ask_password() if ask else None
    return Accounts(environment(), warn, typed, reads_defaults=True)
