"""Writes a number with its noun: "1 server", "1,200 servers". All texts of gtid-audit use it.

It is in the lowest package because sets, findings, scripts and views all write such numbers.
"""


def counted(number: int, noun: str) -> str:
    """Return a count as text, in the plural unless it is 1. The plural is the noun and an s."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
