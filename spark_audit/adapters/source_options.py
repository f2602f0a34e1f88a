"""Reads and checks the options of the data source `mysql_snapshot`: see option_texts.py."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_audit.adapters.option_texts import (
    Credentials,
    Readers,
    by_lower_name,
    credentials_in,
    number_to,
    read_options,
)
from topology.adapters.inventory.problem import InventoryProblem

COUNT_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of one `load()`."""

    fleet: Path  # on the driver
    cluster: str | None = None  # only this one
    partitions: int | None = None  # maximum number of tasks
    connections: int | None = None  # maximum for one task at a time
    credentials: Credentials = Credentials.DRIVER

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Read the options; names in any case, as Spark passes them. Raises InventoryProblem."""
        given = by_lower_name(options)
        values, problems = read_options(
            given, READERS, account_is_in="the fleet file defines where it is"
        )
        if not given.get("fleet"):
            problems.append("option fleet: is missing; set it to the path of a fleet file")
        if problems:
            raise InventoryProblem(*problems)
        return cls(**values)


def _name(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


READERS: Final[Readers] = {
    "fleet": Path,
    "cluster": _name,
    "partitions": number_to(COUNT_MAX),
    "connections": number_to(COUNT_MAX),
    "credentials": credentials_in,
}
