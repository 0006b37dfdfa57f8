"""Write arrays in the form that PostgreSQL itself sends them: binary, one copy, no escaping.

What an append sends is arrays for the most part. Written as text they would cost more than the
statement; written here they cost a few microseconds. The form is that of array_recv in
PostgreSQL: dimensions, whether there are NULLs, the element's type, length and lower bound, then
each element with its size. tests/store/append/test_arrays.py has PostgreSQL read them back.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

TEXT, BYTEA, INT2, INT4, INT8 = 25, 17, 21, 23, 20  # fixed for ever: pg_type.dat
_CODES = {INT2: "h", INT4: "i", INT8: "q"}
_NULL = b"\xff\xff\xff\xff"
_EMPTY = struct.Struct("!iii").pack
_HEADER = struct.Struct("!iiiii").pack


def sized(data: bytes) -> bytes:
    """One element as an array holds it."""
    return len(data).to_bytes(4, "big") + data


def array_of(elements: bytes, count: int, kind: int = TEXT) -> bytes:
    """An array of so many elements, none of them NULL, that are joined already."""
    return _HEADER(1, 0, kind, count, 1) + elements if count else _EMPTY(0, 0, kind)


def pack_bytes(items: Sequence[bytes | None], element: int = TEXT) -> bytes:
    """An array of texts or of byte strings."""
    if not items:
        return _EMPTY(0, 0, element)
    parts = [_NULL if x is None else sized(x) for x in items]
    return _HEADER(1, int(None in items), element, len(items), 1) + b"".join(parts)


def pack_integers(items: Sequence[int], element: int = INT4) -> bytes:
    """An array of integers."""
    if not items:
        return _EMPTY(0, 0, element)
    code = _CODES[element]
    size = struct.calcsize(f"!{code}")
    flat = [word for item in items for word in (size, item)]
    return _HEADER(1, 0, element, len(items), 1) + struct.pack(
        f"!{('i' + code) * len(items)}", *flat
    )


def literal(items: Sequence[str]) -> bytes | None:
    """An array of texts as a text of its own, for an array of arrays; None when there is none."""
    if not items:
        return None
    quoted = [item.replace("\\", "\\\\").replace('"', '\\"') for item in items]
    return ('{"' + '","'.join(quoted) + '"}').encode()
