"""Cut a published body into its events without changing a byte of any of them.

    {…}                       one event
    […] or {"events": […]}    a batch: each item's own bytes, so that a refused one is kept verbatim

Only brackets and strings are looked at; whether an item is an event is for the door to judge. Pure,
and linear in the body: a string is skipped in one step, and a body with too many brackets, or too
deep ones, is given up on and judged as one (malformed) message.
"""

from __future__ import annotations

import re

_SPACE = b" \t\n\r"
_EVENTS = re.compile(rb'[ \t\n\r]*\{[ \t\n\r]*"events"[ \t\n\r]*:[ \t\n\r]*\[')
_LIST = re.compile(rb"[ \t\n\r]*\[")
# Possessive (`++`, `*+`): what was skipped is never tried again in another way.
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_BETWEEN = re.compile(rb'(?:[^"\[\]{},]++|' + _STRING + rb")*+([\[\]{},])", re.DOTALL)
_INSIDE = re.compile(rb'(?:[^"\[\]{}]++|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)
_OPENING = b"[{"
_DEPTH_MAX = 64
_BRACKETS_MAX = 1_000_000


class TooManyItems(Exception):
    """The batch has more items than it may."""


def split(body: bytes, *, items_max: int) -> list[bytes] | None:
    """The items of a batch, verbatim; None when the body is no batch, or not a whole one."""
    opened = _LIST.match(body)
    wrapped = None if opened is not None else _EVENTS.match(body)
    start = opened or wrapped
    if start is None:
        return None
    found = _items(body, start.end(), items_max)
    if found is None:
        return None
    items, end = found
    rest = body[end:].strip(_SPACE)
    return items if rest == (b"}" if wrapped else b"") else None


def _items(body: bytes, at: int, items_max: int) -> tuple[list[bytes], int] | None:
    """The items from just after the opening bracket, and where the closing one ends."""
    items: list[bytes] = []
    begun, depth = at, 1
    for _ in range(_BRACKETS_MAX):
        found = (_BETWEEN if depth == 1 else _INSIDE).match(body, at)
        if found is None:
            return None
        at, mark = found.end(), found.group(1)
        if mark in _OPENING:
            depth += 1
            if depth > _DEPTH_MAX:
                return None
        elif depth > 1:
            depth -= 1
        else:
            item = body[begun : at - 1].strip(_SPACE)
            if mark == b"]" and not item and not items:
                return items, at
            if not item or mark == b"}":
                return None
            items.append(item)
            if len(items) > items_max:
                raise TooManyItems
            if mark == b"]":
                return items, at
            begun = at
    return None
