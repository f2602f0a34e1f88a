"""The environment variables of options. Pure: which variables an option has, and which has none.

An option of a command has up to two names, and the first one wins:

    GTID_AUDIT_SPARK_TRENDS_RUNS    the command and the option, for every option
    GTID_AUDIT_TIMEOUT              the option alone, if all commands mean the same by it (SHARED)

`--out` is not shared: it is a directory, a Parquet file or a zip, as the command needs it.
"""

from collections.abc import Sequence
from typing import Final

PREFIX: Final = "GTID_AUDIT"
# Options that mean the same in every command that has them.
SHARED: Final = frozenset(
    {
        "--accepted",
        "--admin",
        "--allow-uuid",
        "--ask-password",
        "--cluster",
        "--content",
        "--debug",
        "--engine",
        "--fleet",
        "--format",
        "--history",
        "--journal",
        "--json",
        "--max-age",
        "--no-color",
        "--quiet",
        "--store",
        "--timeout",
        "--watch",
    }
)
# Options that only a command line can give, and why.
NOT_FROM_ENVIRONMENT: Final = {
    "--help": "it asks a question, and is not a setting",
    "--version": "it asks a question, and is not a setting",
    "--show-completion": "it asks a question, and is not a setting",
    "--install-completion": "it changes a file, once",
    "--yes": "it permits a change of servers: the operator types it",
    "--approve": "it permits a change of servers: the operator types it",
    "--forget": "it says that rows are equal, once: the operator types it",
    "--server": "whose rows are equal: it belongs to --forget",
}


def variables_of(command: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the variables of an option, the one that wins first.

    >>> variables_of(("repair", "plan"), "--timeout")
    ('GTID_AUDIT_REPAIR_PLAN_TIMEOUT', 'GTID_AUDIT_TIMEOUT')
    >>> variables_of(("repair", "apply"), "--yes")
    ()
    """
    if option in NOT_FROM_ENVIRONMENT:
        return ()
    names = [_name(*command, option.removeprefix("--"))]
    if option in SHARED:
        names.append(_name(option.removeprefix("--")))
    return tuple(dict.fromkeys(names))


def _name(*words: str) -> str:
    return "_".join([PREFIX, *words]).replace("-", "_").upper()
