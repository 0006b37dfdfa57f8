"""Pass over personal fields that are hidden: what stands in their place says nothing of their type.

{"$enc": …, "subject": …}   {"$masked": true, "subject": …}   {"$erased": true, "subject": …}

A ciphertext that is taken out of its event says beside that where it stood: `event` and `at`.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.errors import Fault
from penstock.envelope.envelope import JsonValue
from penstock.registry.insight import at

TRACED = frozenset({"$enc", "subject", "event", "at"})
_WORDS = frozenset({"$enc", "$masked", "$erased", "$unreadable"})


def is_hidden(value: JsonValue) -> bool:
    """Whether a value stands for one that cannot be seen."""
    if not isinstance(value, dict) or "subject" not in value:
        return False
    return not _WORDS.isdisjoint(value) if len(value) == 2 else value.keys() == TRACED


def seen(faults: Iterable[Fault], payload: JsonValue) -> tuple[Fault, ...]:
    """The faults that are not about a hidden field or something in it."""
    return tuple(fault for fault in faults if not _is_about_hidden(fault.pointer, payload))


def _is_about_hidden(pointer: str, payload: JsonValue) -> bool:
    steps = pointer.split("/")
    return any(is_hidden(at(payload, "/".join(steps[:n]))) for n in range(2, len(steps) + 1))
