"""Asks for a password on the terminal, so that no file and no environment has it."""

import sys

from gtid_audit.exits import UsageProblem
from topology.target import Secret


def ask_password() -> Secret:
    """Ask for a password on the terminal, without showing it. Raises UsageProblem without one."""
    if not sys.stdin.isatty():
        raise UsageProblem("--ask-password needs a terminal")
    from getpass import getpass

    return Secret(getpass("Password: "))
