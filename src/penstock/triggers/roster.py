"""Find the triggers that want an event, without asking all of them.

    Roster ── candidates(tenant, type, source) ──▶ triggers in order of creation

Built when a definition changes, and kept between passes. Which triggers want a type from a source
is worked out once and remembered; programs publish the same few names again and again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, TypeAlias

from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.trigger import Per, TriggerStatus

_REMEMBERED_MAX: Final = 50_000  # names are a publisher's to choose, so there may be many
Candidates: TypeAlias = tuple[CompiledTrigger, ...]


class Mode(StrEnum):
    """What a run of a trigger is for."""

    EVENT = "event"
    DEBOUNCE = "debounce"
    BATCH = "batch"
    LATEST = "latest"


def mode_of(compiled: CompiledTrigger) -> Mode:
    """What a run of the trigger is for."""
    if compiled.spec.debounce_ms is not None:
        return Mode.DEBOUNCE
    return _MODES[compiled.spec.per]


_MODES: Final = {Per.EVENT: Mode.EVENT, Per.BATCH: Mode.BATCH, Per.LATEST: Mode.LATEST}


class Roster:
    """The triggers in force: active and shadow ones, newest versions, every tenant's."""

    __slots__ = ("_by_id", "_by_tenant", "_remembered")

    def __init__(self, compiled: Iterable[CompiledTrigger] = ()) -> None:
        live = [c for c in compiled if c.spec.status is not TriggerStatus.DISABLED]
        live.sort(key=lambda c: (c.trigger.created_at, c.trigger.id))
        self._by_id = {c.trigger.id: c for c in live}
        self._by_tenant: dict[str, list[CompiledTrigger]] = {}
        for each in live:
            self._by_tenant.setdefault(each.trigger.tenant_id, []).append(each)
        self._remembered: dict[tuple[str, str, str], Candidates] = {}

    def __iter__(self) -> Iterator[CompiledTrigger]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, trigger_id: str) -> CompiledTrigger | None:
        """The trigger in force by that id, if there is one."""
        return self._by_id.get(trigger_id)

    def candidates(self, tenant_id: str, event_type: str, source: str) -> Candidates:
        """Those whose type and source fit, oldest first."""
        key = (tenant_id, event_type, source)
        found = self._remembered.get(key)
        if found is None:
            if len(self._remembered) >= _REMEMBERED_MAX:
                self._remembered.clear()
            found = tuple(
                c for c in self._by_tenant.get(tenant_id, ()) if c.wants(event_type, source)
            )
            self._remembered[key] = found
        return found
