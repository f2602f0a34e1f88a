"""The set that a consumer, a backup or a clone offers, as an operand of `handshake --offered`.

topology/readings/set_in_text.py lists the forms in which a set is stored.
"""

from gtid import GtidSet
from gtid_audit.exits import UsageProblem
from gtid_audit.operands.sets_from_operands import STDIN, parsed, text_of
from topology.readings.set_in_text import NoSetInText, set_in_text


def read_offered(operand: str) -> GtidSet:
    """Return the set in an operand. Raises UsageProblem."""
    text, where = text_of(operand, "A")
    is_stored = operand == STDIN or operand.startswith("@")
    if is_stored and not text.strip():
        raise UsageProblem(f"{where}: it is empty; pass '' for the set of a new server")
    try:
        return set_in_text(text, where, parsed, is_stored=is_stored)
    except NoSetInText as problem:
        raise UsageProblem(str(problem)) from problem
