"""The shape of one row of the catalogue, as its authors write it."""

from typing import NamedTuple


class Row(NamedTuple):
    """One row as its author writes it."""

    code: str
    name: str
    severity: str
    has_rule: bool
    means: str
    arises: str
    proof: str
