"""Writes floating-point numbers as MySQL does.

MySQL prints the shortest digits that give the same number back: positionally up to 15 digits before
the point and 14 zeros behind it, or where digits stand behind the point; else with an exponent
(my_gcvt, strings/dtoa.cc; the bounds were seen on 9.7.4).
"""

import struct
from decimal import Decimal

_POSITIONAL_DIGITS_MAX = 15  # MAX_DECPT_FOR_F_FORMAT
# A single-precision number is given back by nine digits at most, and often by fewer.
_SINGLE_DIGITS = range(6, 10)


def double_text(value: float) -> str:
    """Write a DOUBLE: `1.5`, `1e100`, `-0.001`. A whole number has no point."""
    return _text(repr(value))


def single_text(value: float) -> str:
    """Write a FLOAT by the fewest digits that give it back, at least those MySQL shows (six)."""
    for digits in _SINGLE_DIGITS:
        text = f"{value:.{digits}g}"
        if _as_single(float(text)) == value:
            break
    return _text(text)


def _as_single(value: float) -> float | None:
    try:
        [single] = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:  # the rounding went beyond the largest FLOAT: more digits are needed
        return None
    return float(single)


def _text(text: str) -> str:
    number = Decimal(text).normalize()
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "a column holds no infinity and no NaN"
    written = "".join(map(str, digits))
    point = len(written) + exponent  # the number is 0.written * 10**point
    if written == "0":
        body = "0"
    elif -_POSITIONAL_DIGITS_MAX < point <= max(_POSITIONAL_DIGITS_MAX, len(written) - 1):
        body = f"{abs(number):f}"
    else:
        fraction = f".{written[1:]}" if len(written) > 1 else ""
        body = f"{written[0]}{fraction}e{point - 1}"
    return f"-{body}" if sign else body
