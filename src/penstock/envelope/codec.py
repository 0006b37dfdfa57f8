"""Turn bytes into JSON values and back: the one strict decoder that every door uses.

    bytes ── orjson ──▶ tree ── orjson ──▶ the same bytes?  ── yes ──▶ nothing odd in them? ──▶ tree
                                                 │ no                        │ perhaps
                                           profile.parse               profile.examine

orjson is fast but keeps the last of two equal keys and rounds long numbers. Writing its tree again
and comparing shows both: if the text comes back, apart from white space, nothing was lost. Every
other message takes the exact path, and both agree: tests/envelope/test_codec_agreement.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from json import JSONDecoder
from operator import methodcaller
from typing import Any, Final, cast

import orjson

from penstock.base.errors import NotInProfile
from penstock.envelope.envelope import MESSAGE_BYTES_MAX, JsonValue
from penstock.envelope.limits import DEPTH_MAX, KEY_BYTES_MAX, KEYS_MAX, NODES_MAX, ProfileReason
from penstock.envelope.numbers import read_stored_decimal, read_stored_integer
from penstock.envelope.profile import SPACES, check_shape, examine, parse

__all__ = [
    "ProfileReason",
    "canonical",
    "decode",
    "decode_array",
    "decode_several",
    "encode",
    "load_stored",
    "sorted_form",
]

_STORED_DECODER: Final = JSONDecoder(
    parse_int=cast("Any", read_stored_integer), parse_float=cast("Any", read_stored_decimal)
)
# Digits and points as `0`, all else blank: shows runs that may be more than a float holds.
_RUNS: Final = bytes(0x30 if byte in b".0123456789" else 0x20 for byte in range(256))
_RUN_SUSPECT: Final = b"0" * 17
_WRITE: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
_MINIMAL_NODE_BYTES: Final = 2  # one digit and a comma
_MINIMAL_KEY_BYTES: Final = 6  # "k":0,
_NUMERALS: Final = b"0123456789.+-"
_BEFORE_NUMBER: Final = b":,[ \t\n\r"
_NUMBER_REACH: Final = 64  # a number of more digits is looked at closely, whatever it is
_PLAIN_BYTES_MAX: Final = KEYS_MAX * _MINIMAL_KEY_BYTES  # has neither too many keys nor nodes
_braces: Final = methodcaller("count", b"{")
_brackets: Final = methodcaller("count", b"[")
_unspaced: Final = methodcaller("translate", None, SPACES)


def decode(
    raw: bytes,
    *,
    bytes_max: int = MESSAGE_BYTES_MAX,
    nodes_max: int = NODES_MAX,
    depth_max: int = DEPTH_MAX,
) -> JsonValue:
    """The value that `raw` says, unchanged; NotInProfile if it is not in the strict profile."""
    size = len(raw)
    if size > bytes_max:
        raise NotInProfile(
            ProfileReason.TOO_LARGE, f"expected at most {bytes_max} bytes, found {size}"
        )
    if raw.count(b"{") + raw.count(b"[") > depth_max or size > nodes_max * _MINIMAL_NODE_BYTES:
        check_shape(raw, depth_max=depth_max, nodes_max=nodes_max)
    try:
        tree = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return parse(raw)
    suspect = _has_tiny_float(raw)
    try:
        written = orjson.dumps(tree, option=orjson.OPT_STRICT_INTEGER)
    except orjson.JSONEncodeError:  # an integer of more than 53 bits, perhaps of too many
        written, suspect = orjson.dumps(tree), True
    if written != raw and written.translate(None, SPACES) != raw.translate(None, SPACES):
        return parse(raw)
    if suspect or _has_odd_escape(raw) or not _has_small_keys(raw, size):
        examine(tree, texts=b"\\u" in raw, numbers=suspect)
    return cast("JsonValue", tree)


def decode_several(raws: Sequence[bytes]) -> list[JsonValue] | None:
    """What `decode` says of each; None when that takes a closer look at any of them.

    Joined they are read in one go. That each comes back as its own bytes shows that it was read by
    itself, and not as part of its neighbour.
    """
    if not raws or not _is_shallow(raws):
        return None
    found = _read_together(b"[%b]" % b",".join(raws))
    if found is None:
        return None
    trees, written = found
    if written != raws and list(map(_unspaced, written)) != list(map(_unspaced, raws)):
        return None
    return trees if all(map(_has_small_keys, raws, map(len, raws))) else None


def decode_array(body: bytes, *, items_max: int) -> tuple[list[bytes], list[JsonValue]] | None:
    """The bytes and the value of every item of a compact array; None when that is not so plain.

    What is written for the items, joined, is the body itself, so each has its own bytes there.
    """
    if body[:1] != b"[" or body.count(b"{") > items_max * DEPTH_MAX:
        return None
    found = _read_together(body)
    if found is None:
        return None
    trees, raws = found
    if not 0 < len(trees) <= items_max or b"[%b]" % b",".join(raws) != body:
        return None
    if not _is_shallow(raws) or not all(map(_has_small_keys, raws, map(len, raws))):
        return None
    return raws, trees


def _is_shallow(raws: Sequence[bytes]) -> bool:
    """Whether none of them can be too long, too deep, or of too many parts."""
    return (
        max(map(len, raws)) <= _PLAIN_BYTES_MAX
        and max(map(_braces, raws)) + max(map(_brackets, raws)) <= DEPTH_MAX
    )


def _read_together(array: bytes) -> tuple[list[JsonValue], list[bytes]] | None:
    """The items of an array, and each written again; None when any may be odd."""
    if _has_tiny_float(array) or _has_odd_escape(array) or array.count(b"[") > len(array) // 8:
        return None
    try:
        trees: list[JsonValue] = orjson.loads(array)
        return trees, [orjson.dumps(tree, option=orjson.OPT_STRICT_INTEGER) for tree in trees]
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return None


def encode(value: JsonValue) -> bytes:
    """Compact UTF-8 JSON, a Decimal as its own digits; NotInProfile for what JSON cannot say."""
    return _write(value, _WRITE)


def canonical(value: JsonValue) -> bytes:
    """`encode` with the keys of every object sorted, so that their order does not matter."""
    return _write(value, _WRITE | orjson.OPT_SORT_KEYS)


def sorted_form(value: JsonValue) -> bytes:
    """`canonical` for what was decoded, which holds no number that JSON cannot say."""
    return orjson.dumps(value, default=_digits, option=_WRITE | orjson.OPT_SORT_KEYS)


def load_stored(text: str | bytes) -> JsonValue:
    """The value of JSON that we stored, exactly; jsonb text has no exponents, only digits."""
    raw = text.encode() if isinstance(text, str) else text
    if _RUN_SUSPECT in raw.translate(_RUNS):
        return cast("JsonValue", _STORED_DECODER.decode(raw.decode()))
    return cast("JsonValue", orjson.loads(raw))


def _has_tiny_float(raw: bytes) -> bool:
    """Whether there may be a float too small: a number, e-3 and two more digits.

    One in a thousand UUIDs has such letters, so what stands before the number counts as well.
    """
    at = raw.find(b"e-3")
    while at >= 0:
        if raw[at + 3 : at + 5].isdigit() and raw[at - 1 : at].isdigit():
            before = raw[max(0, at - _NUMBER_REACH) : at].rstrip(_NUMERALS)
            if not before or before[-1] in _BEFORE_NUMBER:
                return True
        at = raw.find(b"e-3", at + 3)
    return False


def _has_odd_escape(raw: bytes) -> bool:
    """Whether U+0000 may be escaped, or a quote, which hides where a key ends."""
    return b"\\" in raw and (b"\\u" in raw or b'\\"' in raw)


def _has_small_keys(raw: bytes, size: int) -> bool:
    """Whether keys are certainly short and few; no quote in the text is escaped."""
    if size > KEYS_MAX * _MINIMAL_KEY_BYTES and raw.count(b":") > KEYS_MAX:
        return False
    quote = 0
    while quote + KEY_BYTES_MAX < size:
        # The last quote within reach; without one, something longer than a key may be starts here.
        quote = raw.rfind(b'"', quote + 1, quote + KEY_BYTES_MAX + 2)
        if quote < 0:
            return False
    return True


def _write(value: JsonValue, option: int) -> bytes:
    try:
        written = orjson.dumps(value, default=_digits, option=option)
    except orjson.JSONEncodeError as error:
        raise NotInProfile(
            _reason_of(str(error)), f"expected a JSON value, found: {error}"
        ) from None
    if b"null" in written:
        _refuse_non_finite(value)  # orjson writes NaN and Infinity as null
    return written


def _digits(value: object) -> orjson.Fragment:
    if isinstance(value, Decimal) and value.is_finite():
        text = str(value)
        # Never as an integer: those have a narrower range, and it was not sent as one.
        return orjson.Fragment(f"{text}.0" if text.lstrip("-").isdecimal() else text)
    raise TypeError(f"{type(value).__name__} is not JSON")


def _reason_of(complaint: str) -> ProfileReason:
    for words, reason in _COMPLAINTS.items():
        if words in complaint:
            return reason
    return ProfileReason.MALFORMED_JSON


_COMPLAINTS: Final = {
    "surrogates": ProfileReason.LONE_SURROGATE,
    "Recursion": ProfileReason.TOO_DEEP,
    "Integer": ProfileReason.NUMBER_OUT_OF_RANGE,
}


def _refuse_non_finite(value: object) -> None:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, float) and not math.isfinite(item):
            raise NotInProfile(
                ProfileReason.NUMBER_OUT_OF_RANGE, f"expected a finite number, found {item}"
            )
