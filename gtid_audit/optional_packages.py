"""Checks whether the packages of an extra are installed before a command needs them.

An error states the command that installs them.
"""

from importlib.util import find_spec
from typing import Final

from gtid_audit.exits import UsageProblem

INSTALL_SPARK: Final = "pip install 'gtid-audit[spark]'"


def require_columns() -> None:
    """Raise UsageProblem if this installation cannot make ledgers."""
    missing = [name for name in ("numpy", "numba", "pyarrow") if find_spec(name) is None]
    if missing:
        raise UsageProblem(
            f"reading files needs {', '.join(missing)}: pip install 'gtid-audit[columns]'"
        )


def require_parquet() -> None:
    """Raise UsageProblem if this installation cannot read or write stored snapshots."""
    if find_spec("pyarrow") is None:
        raise UsageProblem(
            f"stored snapshots need PyArrow, which is not installed: {INSTALL_SPARK}"
        )


def require_spark() -> None:
    """Raise UsageProblem if PySpark is not installed."""
    if find_spec("pyspark") is None:
        need = "--engine spark, and --out of any engine, need PySpark"
        raise UsageProblem(f"{need}, which is not installed: {INSTALL_SPARK}")


def require_serve() -> None:
    """Raise UsageProblem if this installation has no web server."""
    missing = [name for name in ("starlette", "uvicorn") if find_spec(name) is None]
    if missing:
        raise UsageProblem(f"serve needs {', '.join(missing)}: pip install 'gtid-audit[serve]'")
