"""Writes floating-point numbers as MySQL does.

MySQL prints the fewest digits that are read back as the same number. It uses positional notation
for up to 15 digits before the point, for up to 14 zeros after the point, and for numbers with
digits after the point. Otherwise it uses an exponent (my_gcvt, strings/dtoa.cc; the limits were
verified on 9.7.4).
"""

import struct
from decimal import Decimal

_POSITIONAL_DIGITS_MAX = 15  # MAX_DECPT_FOR_F_FORMAT
# Nine digits always identify a single-precision number; often fewer are enough.
_SINGLE_DIGITS = range(6, 10)


def double_text(value: float) -> str:
    """Write a DOUBLE: `1.5`, `1e100`, `-0.001`. A whole number has no point."""
    return _text(repr(value))


def single_text(value: float) -> str:
    """Write a FLOAT with the fewest digits that identify it, at least MySQL's six."""
    for digits in _SINGLE_DIGITS:
        text = f"{value:.{digits}g}"
        if _as_single(float(text)) == value:
            break
    return _text(text)


def _as_single(value: float) -> float | None:
    try:
        [single] = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:  # rounding exceeded the largest FLOAT: more digits are needed
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
