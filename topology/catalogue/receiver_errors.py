"""Error texts of receivers about what they were sent, in every version.

error_texts.py has the rules for all such texts.
"""

from typing import Final

from topology.catalogue.error_row import ErrorText

NOT_QUEUED: Final = "the receiver cannot write what it was sent"

RECEIVER_TEXTS: Final[tuple[ErrorText, ...]] = (
    ErrorText(
        "a transaction without a GTID",
        r"Cannot replicate anonymous transaction",
        "A4",
        "The source committed transactions without a GTID, while its gtid_mode was OFF or"
        " OFF_PERMISSIVE. A channel with auto-position cannot receive them.",
        (
            (
                "Do not only run START REPLICA: the source can begin at a later log file, and skip"
                " these transactions without an error. Then the GTID sets are equal."
            ),
            (
                "While the source has their log: set gtid_mode = ON_PERMISSIVE on both servers, let"
                " the replica apply them by file position (SOURCE_AUTO_POSITION = 0, from the"
                " position of its applier), then set gtid_mode = ON and auto-position on again."
            ),
            (
                "Otherwise rebuild the replica from the source. Or compare and repair the rows of"
                " every table that the source wrote while gtid_mode was OFF or OFF_PERMISSIVE."
            ),
        ),
    ),
    ErrorText(
        NOT_QUEUED,
        r"Relay log write failure|could not queue event from (?:master|source)",
        "A4",
        "The receiver got an event that it cannot write to its relay log: the disk is full or"
        " refuses writes, the event is damaged, or it has no GTID and gtid_mode of the replica is"
        " ON.",
        (
            "Read the lines before this one in the error log of the replica: they have the cause.",
            (
                "If the event has no GTID, do not only run START REPLICA with auto-position: the"
                " source can skip it. Set gtid_mode = ON_PERMISSIVE on both servers, and let the"
                " replica apply it by file position first."
            ),
        ),
    ),
)
