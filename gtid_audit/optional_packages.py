"""Checks whether the packages of an extra are installed before a command needs them.

An error states the command that installs the smallest extra that helps.
"""

from importlib.util import find_spec
from typing import Final

from gtid_audit.exits import UsageProblem

INSTALL_COLUMNS: Final = "pip install 'gtid-audit[columns]'"
INSTALL_PANDAS: Final = "pip install 'gtid-audit[pandas]'"
INSTALL_SPARK: Final = "pip install 'gtid-audit[spark]'"


class MissingExtra(UsageProblem):
    """This installation has not the packages of an extra."""


def require_columns() -> None:
    """Raise MissingExtra if this installation cannot make ledgers."""
    missing = [name for name in ("numpy", "numba", "pyarrow") if find_spec(name) is None]
    if missing:
        raise MissingExtra(f"reading files needs {', '.join(missing)}: {INSTALL_COLUMNS}")


def require_parquet() -> None:
    """Raise MissingExtra if this installation cannot read or write stored snapshots."""
    if find_spec("pyarrow") is None:
        raise MissingExtra(
            f"stored snapshots need PyArrow, which is not installed: {INSTALL_COLUMNS}"
        )


def require_arrow() -> None:
    """Raise MissingExtra if this installation cannot make Arrow tables."""
    if find_spec("pyarrow") is None:
        raise MissingExtra(f"to_arrow() needs PyArrow, which is not installed: {INSTALL_COLUMNS}")


def require_pandas() -> None:
    """Raise MissingExtra if this installation cannot make pandas frames."""
    if find_spec("pandas") is None:
        raise MissingExtra(f"to_pandas() needs pandas, which is not installed: {INSTALL_PANDAS}")


def require_spark() -> None:
    """Raise MissingExtra if PySpark is not installed."""
    if find_spec("pyspark") is None:
        need = "--engine spark, and --out of any engine, need PySpark"
        raise MissingExtra(f"{need}, which is not installed: {INSTALL_SPARK}")
