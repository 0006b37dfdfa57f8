"""See events the way readers see them: a payload of an older version upcasted to the newest.

    Stored (version 1) ── lens.see ──▶ Stored (version 3) ──▶ reducer

What a state comes to depends on the upcasters, so their digest is part of every snapshot's key, and
snapshots made by others are passed over. An upcaster that fails leaves the event as it was stored.
A lens may have another one before it (`privacy.within`); the name says both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from types import CodeType

from penstock.envelope.envelope import JsonObject, Stored
from penstock.registry.registry import Registry
from penstock.registry.upcast import Upcasted
from penstock.store.timetravel.reducer import Reduce

_VERSION_MAX = 2**31
_CONSTANTS = (str, bytes, int, float, tuple, type(None))


@dataclass(frozen=True, slots=True)
class Lens:
    """How events look before they are folded; `name` is empty when they look as stored."""

    see: Callable[[Stored], Stored]
    name: str = ""

    def before(self, reduce: Reduce) -> Reduce:
        """The same reducing, of events seen through this lens."""
        see = self.see

        def seen(state: JsonObject, event: Stored) -> JsonObject:
            return reduce(state, see(event))

        return seen


def as_stored() -> Lens:
    """No lens at all."""
    return Lens(lambda stored: stored)


def upcasting(registry: Registry, first: Lens | None = None) -> Lens:
    """Through the upcasters of a registry, if it has any, after another lens."""
    first = first or as_stored()
    digest = _digest(registry)
    if not digest:
        return first
    see = first.see
    return Lens(lambda stored: _upcasted(see(stored), registry), f"{first.name}{digest}")


def _upcasted(stored: Stored, registry: Registry) -> Stored:
    event = stored.envelope
    brought = registry.upcast(event.type, event.schema_version, event.payload)
    if not isinstance(brought, Upcasted):
        return stored
    newer = event._replace(payload=brought.payload, schema_version=brought.version)
    return replace(stored, envelope=newer)


def _digest(registry: Registry) -> str:
    """What the upcasters do, as far as can be told: their code, and the schemas they lead to."""
    said = []
    for event_type in registry.types():
        newest = registry.find(event_type, None)
        steps = registry.upcasts.steps(event_type, 0, _VERSION_MAX)
        if newest is None or not steps:
            continue
        said.append(f"{event_type} {newest.version} {newest.schema_hash}")
        for version, step in steps.items():
            said.append(f"{version} {getattr(step, '__qualname__', '')} {_written(step)}")
    return sha256("\n".join(said).encode()).hexdigest()[:16] if said else ""


def _written(part: object) -> str:
    """A piece of code, the same in every process that runs it."""
    code = getattr(part, "__code__", part)
    if isinstance(code, CodeType):
        parts = " ".join(map(_written, code.co_consts))
        return f"{code.co_code.hex()} {' '.join(code.co_names)} ({parts})"
    if isinstance(code, frozenset):
        return " ".join(sorted(map(repr, code)))
    return repr(code) if isinstance(code, _CONSTANTS) else type(code).__name__
