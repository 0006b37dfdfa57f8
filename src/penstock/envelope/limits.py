"""Name the limits of the strict JSON profile, and the reasons for refusing what passes them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

DEPTH_MAX: Final = 32
NODES_MAX: Final = 20_000  # a node is any value: an object, an array or a scalar
KEYS_MAX: Final = 1_024  # in one object
KEY_BYTES_MAX: Final = 256
DIGITS_MAX: Final = 40  # zeros before the first and after the last other digit do not count
EXPONENT_MAX: Final = 308  # of the value in scientific notation: 0.1e309 is 1e308 and fits
INTEGER_BOUND: Final = 2**63


class ProfileReason(StrEnum):
    """Why bytes are outside the profile; `ingress.verdict.Reason` begins with the same words."""

    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    MALFORMED_JSON = "malformed_json"
    DUPLICATE_KEY = "duplicate_key"
    TOO_DEEP = "too_deep"
    TOO_MANY_NODES = "too_many_nodes"
    NUL_CHARACTER = "nul_character"
    LONE_SURROGATE = "lone_surrogate"
    NUMBER_OUT_OF_RANGE = "number_out_of_range"
