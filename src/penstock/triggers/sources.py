"""Let the events of a source through at its pace, in order, losing none.

    event ── source free? ──▶ triggers
               │ no                ▲
               └──▶ held ── later ─┘   counted again, so that a burst is spread out

While a source has held events, newer ones queue behind them. The first event over the limit pauses
the source; what was let through counts, what was held does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

from penstock.base.clock import format_instant
from penstock.envelope.envelope import Stored
from penstock.triggers.delivery import Held, SourcePause
from penstock.triggers.ongoing import Ongoing
from penstock.triggers.state import SourceName, SourceState
from penstock.triggers.words import RetryState


def let_through(p: Ongoing, events: Sequence[Stored], judge: Callable[[Stored], None]) -> None:
    """Judge new events in order, those of free sources; hold the others."""
    has_limits = bool(p.limits.sources)
    for stored in events:
        name = (stored.envelope.tenant_id, stored.envelope.source)
        source = p.state.sources.get(name)
        if source is None and has_limits and p.limits.of_source(name[1]) is not None:
            source = p.state.source(name)
        if source is None or (not source.held and _is_free(p, name, source)):
            count(p, stored)
            judge(stored)
        else:
            _hold(p, name, source, stored)


def release_held(p: Ongoing, judge: Callable[[Stored], None]) -> None:
    """Judge held events of sources that may go on, in order, as many as a pass takes."""
    left = p.inputs.due_limit
    names = sorted(name for name, source in p.state.sources.items() if source.held)
    first = p.number % len(names) if names else 0  # so that no source is always the last
    for name in names[first:] + names[:first]:
        source = p.state.sources[name]
        left -= _release_forced(p, source, left, judge)
        while left > 0 and source.held:
            held = next(iter(source.held.values()))
            if not _is_free(p, name, source):
                _note_refusal(p, source, held)
                break
            _release(p, source, held, judge)
            left -= 1


def _release_forced(
    p: Ongoing, source: SourceState, most: int, judge: Callable[[Stored], None]
) -> int:
    forced = sorted(source.forced)[:most]
    for position in forced:
        _release(p, source, source.held[position], judge)
    return len(forced)


def drop(p: Ongoing, source: SourceState, held: Held, by: str) -> None:
    """Take a held event out of the line: no trigger will see it."""
    source.let_go(held.position)
    metadata = {**held.metadata, "cancelledBy": by, "cancelledAt": format_instant(p.at)}
    p.held[held.position] = replace(
        held, retry_state=RetryState.CANCELLED, released_pass=p.number, metadata=metadata,
        next_attempt_at=None,
    )  # fmt: skip
    p.source_tally((held.tenant_id, held.source)).dropped += 1


def set_source_pause(p: Ongoing, name: SourceName, pause: SourcePause | None) -> None:
    """Pause a source, or let it go on."""
    p.state.source(name).pause = pause
    p.source_pauses.add(name)


def count(p: Ongoing, stored: Stored) -> None:
    """Count an event that is judged, and how long it took to get here."""
    envelope = stored.envelope
    tally = p.source_tally((envelope.tenant_id, envelope.source))
    lag = max(0, int((p.at - envelope.occurred_at) / timedelta(milliseconds=1)))
    tally.total += 1
    tally.total_lag_ms += lag
    tally.last_lag_ms = lag
    tally.max_lag_ms = max(tally.max_lag_ms, lag)
    tally.last_event_at = p.at


def _is_free(p: Ongoing, name: SourceName, source: SourceState) -> bool:
    """Whether one more event may pass; it is counted if so, and pauses the source if not."""
    if source.pause is not None:
        if source.pause.is_open(p.at):
            return False
        set_source_pause(p, name, None)
    limit = p.limits.of_source(name[1])
    if limit is None:
        return True
    p.touched_sources.add(name)
    if source.count_since(p.at, limit.interval_ms) < limit.limit:
        source.count_one(p.at)
        return True
    pause = SourcePause(
        *name,
        paused_at=p.at,
        until=p.at + timedelta(milliseconds=limit.pause_ms),
        reason="rate_limit",
        details={"limit": limit.limit, "intervalMs": limit.interval_ms},
    )
    set_source_pause(p, name, pause)
    return False


def _hold(p: Ongoing, name: SourceName, source: SourceState, stored: Stored) -> None:
    pause = source.pause
    held = Held(
        position=stored.position,
        event_id=stored.envelope.id,
        tenant_id=name[0],
        source=name[1],
        held_pass=p.number,
        held_at=p.at,
        reason="in_order" if pause is None else pause.reason,
        next_attempt_at=p.at if pause is None else pause.until,
    )
    source.hold(held)
    p.held[held.position] = held
    p.source_tally(name).throttled += 1


def _note_refusal(p: Ongoing, source: SourceState, held: Held) -> None:
    """Say for the first in line when it is tried again; a pause that only goes on says nothing."""
    pause = source.pause
    if pause is not None and pause.paused_at == p.at and held.next_attempt_at != pause.until:
        again = replace(
            held, attempts=held.attempts + 1, next_attempt_at=pause.until, reason=pause.reason
        )
        source.hold(again)
        p.held[held.position] = again


def _release(p: Ongoing, source: SourceState, held: Held, judge: Callable[[Stored], None]) -> None:
    source.let_go(held.position)
    p.held[held.position] = replace(
        held, retry_state=RetryState.COMPLETED, released_pass=p.number, next_attempt_at=None,
        attempts=held.attempts + 1,
    )  # fmt: skip
    stored = p.event_at(held.position)
    if stored is not None:
        p.released.append(held.position)
        count(p, stored)
        judge(stored)
