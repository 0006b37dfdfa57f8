"""Bring an old payload up to a newer version, one declared step at a time.

    EventType(…, version=3, upcasts={1: rename_total, 2: split_name})
        stored as 1 ── rename_total ──▶ 2 ── split_name ──▶ 3, checked against schema 3

A step that is not declared leaves the payload as it is: a compatible change needs none. What is
stored never changes, and an upcaster that fails shows the original. An upcaster works on a copy, so
one that is not pure harms nobody but itself. A personal field that is hidden stays as it is, and is
not checked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.registry.declare import Upcast, Vocabulary
from penstock.registry.hidden import seen
from penstock.registry.schema import SchemaVersion, check_payload

_WORDS_MAX = 200


@dataclass(frozen=True, slots=True)
class Upcasted:
    """A payload as a newer version has it."""

    payload: JsonValue
    version: int


@dataclass(frozen=True, slots=True)
class UpcastFailed:
    """Why a payload could not be brought to a newer version."""

    version: int
    detail: str


class Upcasts:
    """Every step that code declares, by type and by the version it starts from."""

    __slots__ = ("_steps",)

    def __init__(self, vocabularies: Iterable[Vocabulary] = ()) -> None:
        self._steps: dict[str, dict[int, Upcast]] = {
            event.name: dict(event.upcasts)
            for vocabulary in vocabularies
            for event in vocabulary.events
            if event.upcasts
        }

    def steps(self, event_type: str, since: int, to: int) -> dict[int, Upcast]:
        """The declared steps from one version to another, in order."""
        declared = self._steps.get(event_type, {})
        return {n: declared[n] for n in sorted(declared) if since <= n < to}

    def bring(
        self, payload: JsonValue, since: int | None, target: SchemaVersion
    ) -> Upcasted | UpcastFailed | None:
        """The payload at the target's version; None when no step leads there."""
        brought = self.climb(target.event_type, payload, since, target.version)
        if not isinstance(brought, Upcasted):
            return brought
        faults = seen(check_payload(target, brought.payload), brought.payload)
        if faults:
            place = faults[0].pointer or "(root)"
            detail = f"the upcasted payload does not fit: {place} {faults[0].detail}"
            return UpcastFailed(target.version, detail)
        return brought

    def climb(
        self, event_type: str, payload: JsonValue, since: int | None, to: int
    ) -> Upcasted | UpcastFailed | None:
        """The payload after every declared step, unchecked; None when there is no step."""
        steps = self.steps(event_type, since, to) if since is not None else {}
        if not steps:
            return None
        brought = _climb(payload, steps, to)
        return brought if isinstance(brought, UpcastFailed) else Upcasted(brought, to)


def _climb(payload: JsonValue, steps: dict[int, Upcast], to: int) -> JsonValue | UpcastFailed:
    found = _copied(payload)
    for version, step in steps.items():
        if not isinstance(found, dict):
            return UpcastFailed(to, f"expected an object to upcast at version {version}")
        try:
            found = _copied(cast("JsonValue", step(found)))
        except Exception as error:  # noqa: BLE001  somebody's code; its failure is shown as a value
            reason = f"{type(error).__name__}: {error}"[:_WORDS_MAX]
            return UpcastFailed(to, f"the upcaster from version {version} failed with {reason}")
    return found


def _copied(value: JsonValue) -> JsonValue:
    """A copy that shares nothing that could be changed; TypeError for what is not JSON."""
    if isinstance(value, dict):
        return cast("JsonObject", {_name(key): _copied(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return [_copied(item) for item in value]
    if value is None or isinstance(value, str | int | float | Decimal):
        return value
    raise TypeError(f"expected JSON, found {type(value).__name__}")


def _name(key: object) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"expected text as the name of a field, found {type(key).__name__}")
