"""Other changes that a server makes beside the rows that a script writes."""

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


@dataclass(frozen=True, slots=True)
class ScheduledEvents:
    """The events that the event scheduler of a server runs, as far as the account sees them."""

    names: tuple[str, ...] = ()
    may_hide_some: bool = False  # the scheduler is ON, and the account has no EVENT ON *.*
    unread: str = ""  # why the server was not asked; "" if it was
