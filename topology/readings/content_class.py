"""The classes of transactions, by what they would change."""

from enum import Enum


class ContentClass(Enum):
    """The class of a transaction, which decides whether its content may be left out."""

    EMPTY = "empty"
    HARMLESS = "harmless"
    DDL = "DDL"
    DATA = "data"
    UNREAD = "unread"
