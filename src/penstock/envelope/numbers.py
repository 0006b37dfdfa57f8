"""Read number literals without changing what they say.

A float stands for the digits it is written with. A literal that says other digits becomes a Decimal
with its own, so the number is never changed. PostgreSQL keeps the number but writes 1e22 as
10000000000000000000000; the `stored` readers bring such digits back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal

from penstock.envelope.limits import DIGITS_MAX, EXPONENT_MAX, INTEGER_BOUND, ProfileReason

_INTEGER_CHARS_MAX = 20  # a sign and the 19 digits of 2^63 - 1
# No message is long enough for its zeros to bring a longer exponent back into range.
_EXPONENT_CHARS_MAX = 7


@dataclass(frozen=True, slots=True)
class Unfit:
    """A literal outside the profile. It stands in the tree until a pointer to it is known."""

    reason: ProfileReason
    detail: str


def read_integer(literal: str) -> int | Unfit:
    """The integer, or why it is outside the profile."""
    if len(literal) <= _INTEGER_CHARS_MAX:
        value = int(literal)
        if -INTEGER_BOUND < value < INTEGER_BOUND:
            return value
    return _unfit(f"expected an integer between -2^63 and 2^63, found {_short(literal)}")


def read_decimal(literal: str) -> float | Decimal | Unfit:
    """The number of a literal with a fraction or an exponent, or why it is outside the profile."""
    mantissa, _, exponent = literal.lower().partition("e")
    digits = mantissa.lstrip("-").replace(".", "").strip("0")
    if not digits:
        return -0.0 if literal.startswith("-") else 0.0
    if len(digits) > DIGITS_MAX:
        return _unfit(
            f"expected at most {DIGITS_MAX} significant digits, found {len(digits)}"
            f" in {_short(literal)}"
        )
    if len(exponent.lstrip("+-").lstrip("0")) <= _EXPONENT_CHARS_MAX:
        value = Decimal(literal)
        if abs(value.adjusted()) <= EXPONENT_MAX and math.isfinite(float(literal)):
            return _held(literal, value)
    return _unfit(
        f"expected a magnitude between 1e-{EXPONENT_MAX} and 1.797e{EXPONENT_MAX},"
        f" found {_short(literal)}"
    )


def read_stored_integer(literal: str) -> int | float | Decimal:
    """The number of an integer literal that PostgreSQL wrote, which may have been 1e300."""
    value = read_integer(literal)
    return read_stored_decimal(literal) if isinstance(value, Unfit) else value


def read_stored_decimal(literal: str) -> float | Decimal:
    """The number of any literal that was in the profile when it was stored."""
    return _held(literal, Decimal(literal))


def integer_fault(value: int) -> Unfit | None:
    """Why a parsed integer is outside the profile, if it is."""
    if -INTEGER_BOUND < value < INTEGER_BOUND:
        return None
    return _unfit(f"expected an integer between -2^63 and 2^63, found {value}")


def float_fault(value: float) -> Unfit | None:
    """Why a parsed float is outside the profile, if it is."""
    if value == 0 or 1e-308 <= abs(value) < math.inf:
        return None
    return _unfit(f"expected a magnitude between 1e-{EXPONENT_MAX} and 1.797e308, found {value!r}")


def _short(text: str) -> str:
    """A literal cut to a length that fits a sentence."""
    return text if len(text) <= 48 else f"{text[:32]}… ({len(text)} characters)"


def _held(literal: str, value: Decimal) -> float | Decimal:
    held = float(literal)
    return held if math.isfinite(held) and Decimal(repr(held)) == value else value


def _unfit(detail: str) -> Unfit:
    return Unfit(ProfileReason.NUMBER_OUT_OF_RANGE, f"{detail}; a string can carry it")
