"""What a server does besides when rows of one of its tables are written, as it was asked."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SideEffects:
    """What one server does besides when rows of one of its tables are written."""

    schema: str
    table: str
    has_triggers: bool = False
    # Foreign keys of other tables do more than refuse: ON DELETE, ON UPDATE.
    delete_carries: bool = False
    update_carries: bool = False
