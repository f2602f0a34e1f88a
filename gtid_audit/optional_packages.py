"""Checks whether the packages of an extra are installed before a command needs them.

An error states the command that adds the smallest extra with them, for pip, pipx or uv. `--help` of
a command states what it needs: the texts are here, too.
"""

from importlib.util import find_spec
from typing import Final

from gtid_audit.exits import UsageProblem
from topology.adapters.install_command import install_command

INSTALL_COLUMNS: Final = install_command("columns")
INSTALL_PANDAS: Final = install_command("pandas")
INSTALL_SPARK: Final = install_command("spark")
INSTALL_SERVE: Final = install_command("serve")
NEEDS_SERVE: Final = f"Needs the extra [serve]: {INSTALL_SERVE}"
NEEDS_COLUMNS: Final = f"Needs the extra [columns]: {INSTALL_COLUMNS}"
FILES_NEED_COLUMNS: Final = f"Log files need the extra [columns]: {INSTALL_COLUMNS}"
DDL_NEEDS_COLUMNS: Final = f"To find DDL in logs: {INSTALL_COLUMNS}"
NEEDS_SPARK: Final = f"Needs the extra [spark], and Java: {INSTALL_SPARK}"
AUDIT_NEEDS: Final = (
    "--snapshots needs the extra [columns]; --out and --engine spark need the extra [spark]:"
    f" {INSTALL_SPARK}"
)
SUBMIT_NEEDS: Final = (
    f"Needs Java, and Spark: that of SPARK_HOME, spark-submit in PATH, or {INSTALL_SPARK}"
)


class MissingExtra(UsageProblem):
    """This installation does not have the packages of an extra."""


def require_columns() -> None:
    """Raise MissingExtra if this installation cannot make ledgers."""
    _require("reading log files needs", ("numpy", "numba", "pyarrow"), INSTALL_COLUMNS)


def require_parquet() -> None:
    """Raise MissingExtra if this installation cannot read or write stored snapshots."""
    _require("stored snapshots need", ("pyarrow",), INSTALL_COLUMNS)


def require_arrow() -> None:
    """Raise MissingExtra if this installation cannot make Arrow tables."""
    _require("to_arrow() needs", ("pyarrow",), INSTALL_COLUMNS)


def require_pandas() -> None:
    """Raise MissingExtra if this installation cannot make pandas frames."""
    _require("to_pandas() needs", ("pandas",), INSTALL_PANDAS)


def require_spark() -> None:
    """Raise MissingExtra if PySpark is not installed."""
    _require("--engine spark, and --out of any engine, need", ("pyspark",), INSTALL_SPARK)


def require_serve() -> None:
    """Raise MissingExtra if this installation has no web server."""
    _require("serve needs", ("starlette", "uvicorn"), INSTALL_SERVE)


def _require(needs: str, packages: tuple[str, ...], install: str) -> None:
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"{needs} {', '.join(missing)}, not installed here: {install}")
