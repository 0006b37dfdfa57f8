"""Hold the rule of every field of the envelope: the table of docs/events.md as functions.

A rule answers with nothing when the value is right, so that a good event costs one look-up and one
test per field. What a publisher sent is shown in a fault only where it is a name, never content.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from penstock.base.clock import parse_instant
from penstock.base.errors import Fault
from penstock.base.pointers import pointer_step
from penstock.envelope.context import METADATA_KEY, context_faults
from penstock.envelope.envelope import JsonValue
from penstock.envelope.limits import INTEGER_BOUND
from penstock.envelope.names import source_fault, type_fault

TAGS_MAX: Final = 64
TAG_VALUE_CHARS_MAX: Final = 256
_VERSION_MAX: Final = 2**31 - 1  # PostgreSQL keeps it as an integer

_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_TENANT: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")
_fits_tag_key: Final = re.compile(r"[A-Za-z0-9._-]{1,64}").fullmatch
_REFERENCE_CHARS_MAX: Final = 256
_REFERENCE: Final = re.compile(r"[^\x00-\x1f\x7f-\x9f]+")
_TRACEPARENT: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

Rule: TypeAlias = Callable[[JsonValue], "tuple[Fault, ...]"]


def is_tenant(text: str) -> bool:
    """Whether `text` can be the name of a tenant."""
    return _TENANT.fullmatch(text) is not None


def unknown_field(key: str) -> Fault:
    """The fault of a key that no envelope has, with the field that may have been meant."""
    near = _ALSO_CALLED.get(key) or next(iter(difflib.get_close_matches(key, RULES, 1)), None)
    hint = f"; did you mean {near}?" if near else ""
    return Fault(
        f"/{pointer_step(key)}", f"expected a field of the envelope, found {key[:80]!r}{hint}"
    )


def read_instant(value: JsonValue) -> datetime | Fault:
    """The instant of `occurredAt`, or what is wrong with it."""
    if not isinstance(value, str):
        return Fault("/occurredAt", f"expected a string, found {kind(value)}")
    try:
        return parse_instant(value)
    except ValueError as error:
        return Fault("/occurredAt", str(error))


def _is_reference(text: str) -> bool:
    if not 0 < len(text) <= _REFERENCE_CHARS_MAX:
        return False
    # Of ASCII, what can be printed is what is no control character; nearly all references are.
    return (text.isascii() and text.isprintable()) or _REFERENCE.fullmatch(text) is not None


def _text(field: str, fits: Callable[[str], object], expected: str) -> Rule:
    pointer = f"/{field}"

    def rule(value: JsonValue) -> tuple[Fault, ...]:
        if isinstance(value, str) and fits(value):
            return ()
        return (Fault(pointer, f"expected {expected}, found {_shown(value)}"),)

    return rule


def _name(field: str, fault_of: Callable[[str], str | None]) -> Rule:
    pointer = f"/{field}"

    def rule(value: JsonValue) -> tuple[Fault, ...]:
        if not isinstance(value, str):
            return (Fault(pointer, f"expected a string, found {kind(value)}"),)
        fault = fault_of(value)
        return () if fault is None else (Fault(pointer, fault),)

    return rule


def _positive(field: str, most: int) -> Rule:
    pointer = f"/{field}"

    def rule(value: JsonValue) -> tuple[Fault, ...]:
        if type(value) is int and 0 < value <= most:
            return ()
        found = value if type(value) is int else _shown(value)
        return (Fault(pointer, f"expected an integer from 1 to {most}, found {found}"),)

    return rule


def _any(_: JsonValue) -> tuple[Fault, ...]:
    return ()


def _tags(value: JsonValue) -> tuple[Fault, ...]:
    if not isinstance(value, dict):
        return (Fault("/tags", f"expected an object of strings, found {kind(value)}"),)
    if len(value) > TAGS_MAX:
        return (Fault("/tags", f"expected at most {TAGS_MAX} tags, found {len(value)}"),)
    for key, text in value.items():
        if not (type(text) is str and len(text) <= TAG_VALUE_CHARS_MAX and _fits_tag_key(key)):
            return _tag_faults(value)
    return ()


def _tag_faults(tags: Mapping[str, JsonValue]) -> tuple[Fault, ...]:
    found = ((key, _tag_fault(key, text)) for key, text in tags.items())
    return tuple(
        Fault(f"/tags/{pointer_step(key)}", fault) for key, fault in found if fault is not None
    )


def _tag_fault(key: str, text: JsonValue) -> str | None:
    if not _fits_tag_key(key):
        return f"expected a tag key of 1 to 64 of [A-Za-z0-9._-], found {key[:80]!r}"
    if not isinstance(text, str):
        return f"expected a string, found {kind(text)}"
    if len(text) > TAG_VALUE_CHARS_MAX:
        return f"expected at most {TAG_VALUE_CHARS_MAX} characters, found {len(text)}"
    return None


def _metadata(value: JsonValue) -> tuple[Fault, ...]:
    if not isinstance(value, dict):
        return (Fault("/metadata", f"expected an object, found {kind(value)}"),)
    if METADATA_KEY not in value:
        return ()
    return tuple(
        Fault(f"/metadata/{METADATA_KEY}{fault.pointer}", fault.detail)
        for fault in context_faults(value[METADATA_KEY])
    )


def _shown(value: JsonValue) -> str:
    return repr(value[:80]) if isinstance(value, str) else kind(value)


def kind(value: JsonValue) -> str:
    """What JSON calls a value, with its article."""
    return _KINDS.get(type(value), "a number")


_KINDS: Final = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    type(None): "null",
}
_REFERENCE_EXPECTED: Final = "1 to 256 characters, none a control character"

RULES: Final[Mapping[str, Rule]] = {
    "id": _text("id", _ID.fullmatch, "1 to 128 of [A-Za-z0-9._:-]"),
    "type": _name("type", type_fault),
    "source": _name("source", source_fault),
    "occurredAt": _any,  # read_instant judges it, so that it is parsed once
    "payload": _any,
    "tags": _tags,
    "correlationId": _text("correlationId", _is_reference, _REFERENCE_EXPECTED),
    "causationId": _text("causationId", _is_reference, _REFERENCE_EXPECTED),
    "traceparent": _text("traceparent", _TRACEPARENT.fullmatch, "a W3C traceparent of version 00"),
    "ttl": _positive("ttl", INTEGER_BOUND - 1),
    "metadata": _metadata,
    "schemaVersion": _positive("schemaVersion", _VERSION_MAX),
    "tenantId": _text("tenantId", _TENANT.fullmatch, "a tenant of 1 to 64 of [A-Za-z0-9._-]"),
}
REQUIRED: Final = ("type", "source")
_ALSO_CALLED: Final = {
    "createdAt": "occurredAt",
    "data": "payload",
    "eventType": "type",
    "time": "occurredAt",
    "timestamp": "occurredAt",
    "version": "schemaVersion",
}
