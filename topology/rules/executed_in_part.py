"""Text about a transaction that failed, and that counts as executed: perhaps in part (A2, A3)."""

from typing import Final

from gtid import GtidSet

_IN_PART: Final = (
    " {what} counts as executed on {replica} although it failed: another channel or a session"
    " executed it since, or a non-transactional table (MyISAM) has a part of it. When started, the"
    " applier continues after it. Its rows were not compared here: "
)
_IS_PLANNED: Final = "`repair plan` compares them, and plans the start if all of them are there."
_IS_NOT_PLANNED: Final = "compare them before you start it (`gtid-audit repair check-data`)."


def in_part_text(code: str, source: str | None, replica: str, executed: GtidSet) -> str:
    """Return what a start does after transactions that failed and count as executed, as text.

    A plan compares their rows with the source's, and only for row conflicts.
    """
    is_planned = code == "A2" and source is not None
    text = _IN_PART.format(replica=replica, what=executed.shortened())
    return text + (_IS_PLANNED if is_planned else _IS_NOT_PLANNED)
