"""Judge JSON bytes exactly, whatever they are: the slow path of the codec and its specification.

    bytes ── check_shape ──▶ parse ──▶ examine ──▶ tree
             depth, nodes    syntax    keys, numbers, characters: each refusal with its pointer

`check_shape` needs no parser: it counts brackets and commas outside strings with a few passes of C
speed, so a bomb is refused before anything is built or any recursion starts. The parser is the
standard library's, which knows the syntax; what it would change or let pass is caught by hooks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final, NoReturn, TypeAlias, cast

import orjson

from penstock.base.errors import NotInProfile
from penstock.base.pointers import pointer_step
from penstock.envelope.envelope import JsonValue
from penstock.envelope.limits import KEY_BYTES_MAX, KEYS_MAX, ProfileReason
from penstock.envelope.numbers import (
    Unfit,
    float_fault,
    integer_fault,
    read_decimal,
    read_integer,
)

SPACES: Final = b" \t\r\n"
_ROUND: Final = bytes.maketrans(b"[{]}", b"(())")
_NOT_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[{]}")
_BOM: Final = b"\xef\xbb\xbf"

# Where a value stands: the way to its container, and its key or index there.
_Way: TypeAlias = "tuple[_Way, str | int] | None"


class _Twice(dict[str, Any]):
    """An object that had a key twice; `key` says which."""

    key: str


def check_shape(raw: bytes, *, depth_max: int, nodes_max: int) -> None:
    """Refuse what is nested too deep or has too many values; exact for well-formed JSON."""
    skeleton = _outside_strings(raw)
    if _is_deep(skeleton, depth_max):
        _check_syntax(raw)
        detail = f"expected at most {depth_max} levels of nesting, found more"
        _refuse(ProfileReason.TOO_DEEP, detail)
    opened = skeleton.count(b"[") + skeleton.count(b"{")
    empty = skeleton.count(b"[]") + skeleton.count(b"{}")
    # Every value but the root follows a comma or is the first of a container that is not empty.
    nodes = 1 + skeleton.count(b",") + opened - empty
    if nodes > nodes_max:
        detail = f"expected at most {nodes_max} values, found {nodes}"
        _refuse(ProfileReason.TOO_MANY_NODES, detail)


def _is_deep(skeleton: bytes, depth_max: int) -> bool:
    layers = skeleton.translate(_ROUND, _NOT_BRACKETS)
    for _ in range(depth_max):
        if not layers:
            return False
        layers = layers.replace(b"()", b"")  # peels exactly the innermost layer everywhere
    return b"()" in layers or layers.count(b"(") > depth_max


def _check_syntax(raw: bytes) -> None:
    """Refuse what only looks nested: a missing quote turns texts and brackets inside out."""
    _text_of(raw)
    try:
        orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        # Its own limits are far above ours; meeting one of them proves the depth.
        if not re.search("depth|memory", error.msg):
            _refuse(ProfileReason.MALFORMED_JSON, _syntax_detail(error))


def parse(raw: bytes) -> JsonValue:
    """The tree of `raw`, exactly, or NotInProfile. The caller has run `check_shape`."""
    text = _text_of(raw)
    try:
        tree = _DECODER.decode(text)
    except JSONDecodeError as error:
        _refuse(ProfileReason.MALFORMED_JSON, _syntax_detail(error))
    examine(tree, texts=b"\\u" in raw)
    return cast("JsonValue", tree)


def _text_of(raw: bytes) -> str:
    if raw.startswith(_BOM):
        _refuse(ProfileReason.NOT_UTF8, "expected UTF-8 without a byte order mark, found one")
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        _refuse(
            ProfileReason.NOT_UTF8,
            f"expected UTF-8, found byte 0x{raw[error.start]:02x} at byte {error.start}",
        )
    if (nul := raw.find(b"\0")) >= 0:
        _refuse(ProfileReason.NUL_CHARACTER, f"expected no U+0000, found one at byte {nul}")
    return text


def examine(tree: object, *, texts: bool, numbers: bool = False) -> None:
    """Refuse what syntax allows and the profile does not.

    `texts` asks to look into strings and `numbers` to measure them; else they are known to fit.
    """
    skip = _PLAIN - {str} if texts else _PLAIN
    skip = skip - {int, float} if numbers else skip
    waiting: list[tuple[Any, _Way]] = [(tree, None)]
    while waiting:
        value, way = waiting.pop()
        if isinstance(value, dict):
            _examine_keys(value, way, texts=texts)
            waiting += [(item, (way, key)) for key, item in value.items() if type(item) not in skip]
        elif isinstance(value, list):
            waiting += [(item, (way, i)) for i, item in enumerate(value) if type(item) not in skip]
        elif (unfit := _FAULTS.get(type(value), _no_fault)(value)) is not None:
            _refuse(unfit.reason, unfit.detail, way)


def _examine_keys(container: dict[str, Any], way: _Way, *, texts: bool) -> None:
    if len(container) > KEYS_MAX:
        detail = f"expected at most {KEYS_MAX} keys in an object, found {len(container)}"
        _refuse(ProfileReason.TOO_MANY_NODES, detail, way)
    for key in container:
        if texts and (unfit := _text_fault(key)) is not None:
            _refuse(unfit.reason, f"{unfit.detail}, in a key", way)
        if len(key) * 4 > KEY_BYTES_MAX and len(key.encode()) > KEY_BYTES_MAX:
            detail = f"expected keys of at most {KEY_BYTES_MAX} bytes, found {len(key.encode())}"
            _refuse(ProfileReason.TOO_LARGE, detail, way)
    # Last, so that a key which becomes part of a pointer is known to be short and whole.
    if isinstance(container, _Twice):
        detail = f"expected each key once, found {container.key!r} again"
        _refuse(ProfileReason.DUPLICATE_KEY, detail, (way, container.key))


def _text_fault(text: str) -> Unfit | None:
    if "\0" in text:
        return Unfit(ProfileReason.NUL_CHARACTER, "expected no U+0000, found one")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        code = f"U+{ord(text[error.start]):04X}"
        return Unfit(ProfileReason.LONE_SURROGATE, f"expected whole characters, found lone {code}")
    return None


def _no_fault(_: object) -> None:
    return None


_PLAIN: Final = frozenset((bool, type(None), int, Decimal, float, str))
_FAULTS: Final[dict[type, Callable[[Any], Unfit | None]]] = {
    int: integer_fault,
    float: float_fault,
    str: _text_fault,
    Unfit: lambda unfit: unfit,
}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    twice, seen = _Twice(made), set[str]()
    for key, _ in pairs:
        if key in seen:
            twice.key = key
            break
        seen.add(key)
    return twice


def _constant(literal: str) -> Unfit:
    return Unfit(ProfileReason.MALFORMED_JSON, f"expected JSON, found {literal}")


_DECODER: Final = JSONDecoder(
    object_pairs_hook=_object,
    parse_int=read_integer,
    parse_float=cast("Callable[[str], Any]", read_decimal),
    parse_constant=_constant,
)


def _outside_strings(raw: bytes) -> bytes:
    """`raw` without white space and with `s` for each string, right for well-formed JSON."""
    if b"\\" in raw:
        # Pairs of backslashes first, so that what is left before a quote really escapes it.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"s".join(raw.split(b'"')[::2]).translate(None, SPACES)


def _syntax_detail(error: JSONDecodeError) -> str:
    found = repr(error.doc[error.pos : error.pos + 12]) if error.pos < len(error.doc) else "the end"
    at = len(error.doc[: error.pos].encode())
    return f"expected well-formed JSON, found {found} at byte {at} ({error.msg})"


def _refuse(reason: ProfileReason, detail: str, way: _Way = None) -> NoReturn:
    raise NotInProfile(reason, detail, pointer="".join(reversed(list(_steps(way)))))


def _steps(way: _Way) -> Iterator[str]:
    while way is not None:
        way, key = way
        yield f"/{pointer_step(key)}"
