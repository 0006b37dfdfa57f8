"""Turn what a Python program holds into plain JSON values, or refuse it and say where.

Models become objects by their wire names, tuples become arrays, instants become RFC 3339 text and
UUIDs text. Nothing else is guessed: a set, bytes, a naive datetime or NaN is refused. The tree that
comes back is new, so changing the original later changes no event.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from uuid import UUID

from pydantic import BaseModel

from penstock.base.errors import EventRefused, Fault
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.typed import model_wire

# Guards against values that contain themselves; the exact limits are the decoder's.
_DEPTH_MAX = 64
_NODES_MAX = 100_000


def plain(value: object, pointer: str = "") -> JsonValue:
    """The JSON value that `value` stands for; EventRefused names the place that is none."""
    return _Reader().read(value, pointer, 0)


def plain_object(value: Mapping[str, object]) -> JsonObject:
    """As `plain`, for a whole event."""
    read = _Reader()
    return {_key(key, ""): read.read(inner, f"/{key}", 1) for key, inner in value.items()}


class _Reader:
    """One walk over one value; it counts, so that it always ends."""

    def __init__(self) -> None:
        self._nodes = 0

    def read(self, value: object, pointer: str, depth: int) -> JsonValue:
        self._nodes += 1
        if self._nodes > _NODES_MAX:
            raise _refused(pointer, f"at most {_NODES_MAX} values", "more", "too_many_nodes")
        if depth > _DEPTH_MAX:
            raise _refused("", f"at most {_DEPTH_MAX} levels", "more", "too_deep")
        if isinstance(value, BaseModel):
            value = model_wire(value)
        if isinstance(value, Mapping):
            return {
                _key(key, pointer): self.read(inner, f"{pointer}/{_escaped(key)}", depth + 1)
                for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [
                self.read(inner, f"{pointer}/{index}", depth + 1)
                for index, inner in enumerate(value)
            ]
        return _leaf(value, pointer)


def _leaf(value: object, pointer: str) -> JsonValue:
    if isinstance(value, Enum):
        value = value.value
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise _refused(pointer, "a finite number", str(value), "number_out_of_range")
        return value
    if isinstance(value, datetime):
        return instant(value, pointer)
    if isinstance(value, UUID):
        return str(value)
    raise _refused(pointer, "a JSON value", type(value).__name__)


def instant(at: datetime, pointer: str) -> str:
    """RFC 3339 text of an instant, to the microsecond it was given in."""
    if at.utcoffset() is None:
        raise _refused(pointer, "an instant with an offset", f"the naive {at.isoformat()}")
    return at.isoformat()


def _key(key: object, pointer: str) -> str:
    if not isinstance(key, str):
        raise _refused(pointer, "keys that are strings", f"{type(key).__name__} {str(key)[:40]}")
    return str(key)


def _escaped(key: object) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")


def _refused(
    pointer: str, expected: str, found: str, reason: str = "envelope_invalid"
) -> EventRefused:
    detail = f"expected {expected}, found {found}"
    return EventRefused(detail, reason=reason, faults=(Fault(pointer, detail),))
