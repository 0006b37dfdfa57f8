"""Foresee what a pass will ask of the past, so that a host can fetch it in a few queries.

    positions_due ──▶ fetch events ──▶ wanted ──▶ fetch the rest ──▶ run_pass

A guess, never a promise: acts and launches within the pass may make it ask for more. What was
matched and rendered here is kept in the inputs, and not done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from penstock.envelope.envelope import Stored
from penstock.triggers.compiled import CompiledTrigger
from penstock.triggers.delivery import Delivery
from penstock.triggers.inputs import PassInputs, Past, Wants
from penstock.triggers.sight import Sight
from penstock.triggers.state import State
from penstock.triggers.template import TemplateFailed
from penstock.triggers.trigger import TriggerStatus
from penstock.triggers.waiting import Batch, TriggerState
from penstock.triggers.words import Reason

_EXPIRED_GUESS = 8


def positions_due(state: State, inputs: PassInputs) -> list[int]:
    """The positions of earlier events that the pass is likely to judge."""
    if not inputs.due_limit:
        return []
    positions = {d.event_position for _, d in _due(state, inputs)}
    for source in state.sources.values():
        if source.held and (inputs.acts or not source.is_paused(inputs.judged_at)):
            positions.update(islice(source.held, inputs.due_limit))
    return sorted(positions)


def wanted(state: State, inputs: PassInputs, past: Past) -> Wants:
    """What the pass is likely to ask; `past.event_at` must be able to answer already."""
    wants = _Wanting(state, inputs)
    for compiled, delivery in _due(state, inputs) if inputs.due_limit else ():
        stored = past.event_at(delivery.event_position)
        if stored is not None:
            wants.add(compiled, inputs.sights.of(stored, inputs.roster))
    for stored in (*_released(state, inputs, past), *(inputs.admitted or inputs.events)):
        if stored is not None:
            sight = inputs.sights.of(stored, inputs.roster)
            for compiled in sight.matches():
                wants.add(compiled, sight)
    return wants.done()


class _Wanting:
    """Wants, while they are gathered."""

    def __init__(self, state: State, inputs: PassInputs) -> None:
        self._state, self._at = state, inputs.judged_at
        self._keys: set[tuple[str, str, bool]] = set()
        self._correlations: set[tuple[str, str, bool]] = set()
        self._causes: dict[int, Stored] = {}
        self._times: dict[str, tuple[str, datetime, bool]] = {}

    def add(self, compiled: CompiledTrigger, sight: Sight) -> None:
        """What judging an event at a trigger will ask."""
        trigger_id, stored = compiled.trigger.id, sight.stored
        shadow = compiled.spec.status is TriggerStatus.SHADOW
        envelope = stored.envelope
        if envelope.correlation_id is not None:
            self._correlations.add((trigger_id, envelope.correlation_id, shadow))
        if envelope.causation_id is not None:
            self._causes[stored.position] = stored
        if compiled.spec.idempotency_key_expression is not None:
            key = _key(compiled, sight, self._at)
            if key is not None:
                self._keys.add((trigger_id, key, shadow))
        window = compiled.spec.throttle_window_ms
        known = self._state.triggers.get(trigger_id)
        if window is not None and (
            known is None or known.times_version != compiled.trigger.version
        ):
            since = self._at - timedelta(milliseconds=window)
            self._times[trigger_id] = (trigger_id, since, shadow)

    def done(self) -> Wants:
        """All that was gathered."""
        return Wants(
            frozenset(self._keys),
            frozenset(self._correlations),
            tuple(self._causes.values()),
            tuple(self._times.values()),
        )


def _key(compiled: CompiledTrigger, sight: Sight, at: datetime) -> str | None:
    try:
        return sight.key_for(compiled, at)
    except TemplateFailed:
        return None


def _released(state: State, inputs: PassInputs, past: Past) -> Iterator[Stored | None]:
    """Held events that may be let through."""
    if not inputs.due_limit or inputs.admitted is not None:
        return
    for source in state.sources.values():
        if source.held and (inputs.acts or not source.is_paused(inputs.judged_at)):
            for position in islice(source.held, inputs.due_limit):
                yield past.event_at(position)


def _due(state: State, inputs: PassInputs) -> Iterator[tuple[CompiledTrigger, Delivery]]:
    """Deliveries that the pass may judge again."""
    acted = {act.target_id for act in inputs.acts}
    for compiled in inputs.roster:
        known = state.triggers.get(compiled.trigger.id)
        if known is None or not known.waiting:
            continue
        if known.version != compiled.trigger.version:
            names: list[str] = list(islice(known.waiting, inputs.due_limit))
        elif known.is_paused(inputs.judged_at) and known.trigger_id not in acted:
            names = [n for n, d in known.waiting.items() if d.reason is Reason.FORCED]
        else:
            names = _names(known, compiled, inputs)
        for name in (*names, *(act_id for act_id in acted if act_id in known.waiting)):
            yield compiled, known.waiting[name]


def _names(known: TriggerState, compiled: CompiledTrigger, inputs: PassInputs) -> list[str]:
    room = _room(known, compiled, inputs)
    found = [name for _, name in (*known.line[:room], *known.parked[: inputs.due_limit])]
    found += known.names_due(inputs.judged_at)[: inputs.due_limit]
    freed = (known.active.get(end.run_id) for end in inputs.run_ends)
    found += [known.groups[key] for key in freed if key is not None and key in known.groups]
    members = [
        member
        for name in found
        for batch in (_batch(known, name),)
        if batch is not None
        for _, member in batch.members
    ]
    return list(dict.fromkeys([n for n in found if n in known.waiting] + members))


def _batch(known: TriggerState, name: str) -> Batch | None:
    delivery = known.waiting.get(name)
    return known.batches.get(name) if delivery is None else known.batch_of(delivery)


def _room(known: TriggerState, compiled: CompiledTrigger, inputs: PassInputs) -> int:
    """How many in line may have their turn, those that turn out to have expired included."""
    spec, room = compiled.spec, inputs.due_limit
    if spec.max_concurrency is not None:
        ended = sum(end.run_id in known.active for end in inputs.run_ends)
        room = min(room, max(0, spec.max_concurrency - len(known.active) + ended))
    if spec.throttle_count is not None and spec.throttle_window_ms is not None:
        since = inputs.judged_at - timedelta(milliseconds=spec.throttle_window_ms)
        taken = sum(at > since for at in known.times)
        room = min(room, max(0, spec.throttle_count - taken))
    return room and room + _EXPIRED_GUESS
