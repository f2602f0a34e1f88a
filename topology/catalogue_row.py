"""The shape of one row of the catalogue, as it is written down."""

from typing import NamedTuple


class Row(NamedTuple):
    """One row as written down."""

    code: str
    name: str
    severity: str
    judged: bool
    strategies: tuple[str, ...]
    means: str
    arises: str
    proof: str
