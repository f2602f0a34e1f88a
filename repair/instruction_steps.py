"""An instruction by hand as steps, one for each of its sentences.

`reclone` has some twenty sentences. In one paragraph, the next one is hard to find at night.

    reclone: do NOT restore b from a as it is: … Keep a copy of b's data directory. On b run `…`

A statement in backticks may have any text, so a full stop within it ends nothing. Neither does one
without a space behind it (127.0.0.1, auto.cnf).
"""

import re
from dataclasses import dataclass

_NAMED = re.compile(r"([a-z_]+): ")


@dataclass(frozen=True, slots=True)
class InstructionSteps:
    """The name of a strategy, or "", and what to do, in order."""

    name: str
    steps: tuple[str, ...]


def steps_of(instruction: str) -> InstructionSteps:
    """Return an instruction of a plan (`NotPlanned.by_hand`) as steps."""
    named = _NAMED.match(instruction)
    name, text = ("", instruction) if named is None else (named[1], instruction[named.end() :])
    found, start, is_quoted = [], 0, False
    for at, character in enumerate(text):
        if character == "`":
            is_quoted = not is_quoted
        if not is_quoted and text.startswith(". ", at):
            found.append(text[start : at + 1])
            start = at + 2
    last = text[start:]
    return InstructionSteps(name, (*found, last if last.endswith(".") else f"{last}."))
