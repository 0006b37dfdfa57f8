"""Spell a JSON value in one way, the same before it is stored and after it is read back.

Keys are sorted, and numbers are the values they are read back as: PostgreSQL's jsonb keeps a number
but not its spelling (1e16 comes back as 10000000000000000, -0.0 as 0.0). What is hashed is hashed
in this form; tests/envelope/test_form.py holds it to PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

import orjson

from penstock.envelope.codec import canonical, encode
from penstock.envelope.envelope import JsonValue
from penstock.envelope.numbers import read_stored_decimal, read_stored_integer

# Digits as `0`, the letter of an exponent as `e`, all else blank: shows what may be an exponent.
_EXPONENTS = bytes(
    0x30 if byte in b"0123456789" else 0x65 if byte in b"eE" else 0x20 for byte in range(256)
)
_EXPONENT = re.compile(rb"(?:^|[\[:,])-?[0-9.]+[eE]")
_EMPTY = b"{}"


def json_form(value: JsonValue) -> bytes:
    """The one spelling of a value."""
    written = canonical(value)
    return canonical(_respelt(value)) if _has_odd_number(written) else written


def json_forms(values: Sequence[JsonValue]) -> list[bytes]:
    """The one spelling of each; for values that orjson has read."""
    written = [orjson.dumps(value, option=orjson.OPT_SORT_KEYS) for value in values]
    if _has_odd_number(b",".join(written)):
        return [json_form(value) for value in values]
    return written


def _has_odd_number(written: bytes) -> bool:
    """Whether a number may come back in another spelling; ids have such letters, but no number."""
    if b"-0.0" in written:
        return True
    return b"0e" in written.translate(_EXPONENTS) and _EXPONENT.search(written) is not None


def metadata_form(value: Mapping[str, JsonValue]) -> bytes:
    """The one spelling of metadata."""
    return json_form(dict(value)) if value else _EMPTY


def tags_form(tags: Mapping[str, str]) -> bytes:
    """The one spelling of tags: strings have only one."""
    return orjson.dumps(dict(tags), option=orjson.OPT_SORT_KEYS) if tags else _EMPTY


def _respelt(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _respelt(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_respelt(item) for item in value]
    if isinstance(value, float | Decimal):
        return _plain_number(value)
    return value


def _plain_number(value: float | Decimal) -> JsonValue:
    """The number that comes back when PostgreSQL has spelt it: without exponent, zero unsigned."""
    text = format(Decimal(encode(value).decode()), "f")
    if not text.strip("-0."):
        text = text.removeprefix("-")
    return read_stored_decimal(text) if "." in text else read_stored_integer(text)
