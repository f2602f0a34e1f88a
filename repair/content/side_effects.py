"""Other changes that a server makes when rows of one of its tables are written."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SideEffects:
    """Other changes that one server makes when rows of one of its tables are written."""

    schema: str
    table: str
    has_triggers: bool = False
    # Foreign keys of other tables that change rows: ON DELETE, ON UPDATE.
    delete_carries: bool = False
    update_carries: bool = False
