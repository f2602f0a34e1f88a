"""Prompts for a password on the terminal, so that it is in no file and no environment."""

import sys

from gtid_audit.exits import UsageProblem
from topology.readings.target import Secret


def ask_password() -> Secret:
    """Prompt for a password, without echo. Raises UsageProblem if there is no terminal."""
    if not sys.stdin.isatty():
        raise UsageProblem("--ask-password needs a terminal")
    from getpass import getpass

    return Secret(getpass("Password: "))
