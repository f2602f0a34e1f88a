"""The names of log files: `binlog.000012`, `relay-bin-channel.000003`."""


def number_at_end(name: str) -> int | None:
    """Return the number that a server gave to a file; None if its name does not end with one."""
    digits = name.rpartition(".")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else None


def is_next(name: str, other: str) -> bool:
    """Return whether the other name is the one that a server gives to the file after this one."""
    number = number_at_end(name)
    is_same = name.rpartition(".")[0] == other.rpartition(".")[0]
    return is_same and number is not None and number_at_end(other) == number + 1
