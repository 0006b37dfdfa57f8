"""Let events in: judge them while the caller waits, and make the good ones durable.

    items ── judge ──▶ Rejected ──▶ dead letter, refused with its reason
                └────▶ Accepted ──▶ known? ──▶ duplicate
                                      └─────▶ transport.send ──▶ accepted (durable)

The door answers early; it decides nothing that the ingress would not decide again. It keeps working
while PostgreSQL is away: duplicates are then found by the ingress, and a refused message is put on
the queue, where the ingress refuses it again and keeps it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import structlog

from penstock.base.clock import Clock
from penstock.base.errors import StoreUnavailable
from penstock.base.ids import derived_id, uuid7
from penstock.envelope import check
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject, JsonValue
from penstock.ingress.pipeline import judge, judge_tree, settled_form
from penstock.ingress.recent import RecentIds
from penstock.ingress.verdict import Accepted, Arrival, Rejected, Verdict, Via, conflict
from penstock.registry.registry import Registry
from penstock.transport.port import UNBOUND, Message, Transport

Known = Callable[[str, Sequence[str]], dict[str, bytes]]  # tenant, ids -> content hashes
Keep = Callable[[Sequence[Rejected], datetime], None]
_RECENT_MOST = 100_000
_log = structlog.get_logger("door")


@dataclass(frozen=True, slots=True)
class Item:
    """One event as it came: its bytes, and its tree when somebody has decoded it already."""

    raw: bytes
    tree: JsonValue = None


@dataclass(frozen=True, slots=True)
class DoorOutcome:
    """What the caller hears about one item."""

    id: str | None
    status: Literal["accepted", "duplicate", "rejected"]
    accepted_at: datetime
    event: JsonObject | None = None
    rejected: Rejected | None = None


class Door:
    """Where events come in: the HTTP API, the SDK in-process, and our own operator events."""

    def __init__(
        self,
        *,
        transport: Transport,
        registry: Callable[[], Registry],
        known: Known,
        keep: Keep,
        clock: Clock,
    ) -> None:
        self._transport = transport
        self._registry = registry
        self._known = known
        self._keep = keep
        self._clock = clock
        started_ms = int(clock.now().timestamp() * 1000)
        self._recent = RecentIds(most=_RECENT_MOST, started_ms=started_ms)

    def publish(
        self, items: Sequence[Item], *, tenant_id: str | None, via: Via, key: str | None = None
    ) -> list[DoorOutcome]:
        """Judge and make durable; QueueUnavailable means nothing was stored."""
        call = self._judge(items, tenant_id, via, key)
        if call.unsure:
            call.settle(self._look_up(call))
        sent = self._send(call)
        if call.refused:
            self._refuse(call)
        if sent is not None:
            sent.result()
        return self._remember(call)

    async def publish_async(
        self, items: Sequence[Item], *, tenant_id: str | None, via: Via, key: str | None = None
    ) -> list[DoorOutcome]:
        """As `publish`, without holding a thread while the disk works."""
        call = self._judge(items, tenant_id, via, key)
        if call.unsure:
            call.settle(await asyncio.to_thread(self._look_up, call))
        sent = self._send(call)
        if call.refused:
            await asyncio.to_thread(self._refuse, call)
        if sent is not None:
            await asyncio.wrap_future(sent)
        return self._remember(call)

    def _judge(
        self, items: Sequence[Item], tenant_id: str | None, via: Via, key: str | None
    ) -> _Call:
        now = _whole_ms(self._clock.now())
        registry = self._registry()
        verdicts = []
        for index, item in enumerate(items):
            fallback = uuid7() if key is None else derived_id(0, tenant_id or "", key, str(index))
            arrival = Arrival(now, fallback, via, tenant_id)
            verdicts.append(
                judge(item.raw, arrival, registry)
                if item.tree is None
                else judge_tree(item.tree, item.raw, arrival, registry)
            )
        return _Call(items, verdicts, now, via, tenant_id, self._recent, derived=key is not None)

    def _look_up(self, call: _Call) -> dict[tuple[str, str], bytes]:
        tenants: dict[str, list[str]] = {}
        for tenant, event_id in call.unsure:
            tenants.setdefault(tenant, []).append(event_id)
        try:
            return {
                (tenant, event_id): content
                for tenant, ids in tenants.items()
                for event_id, content in self._known(tenant, ids).items()
            }
        except StoreUnavailable:
            return {}  # the ingress finds duplicates anyway

    def _send(self, call: _Call) -> Future[None] | None:
        messages = call.messages()
        return self._transport.send(messages) if messages else None

    def _refuse(self, call: _Call) -> None:
        for rejected in call.refused:
            _log.warning(
                "event_rejected",
                reason=rejected.reason,
                event_id=rejected.event_id,
                event_type=rejected.event_type,
                source=rejected.source,
                via=rejected.via,
                bytes=len(rejected.raw),
                dead_letter_id=rejected.dead_letter_id,
            )
        try:
            self._keep(call.refused, call.now)
        except StoreUnavailable:
            if any(b"\n" in rejected.raw for rejected in call.refused):
                raise  # the queue keeps lines; the caller is asked to try again
            self._transport.send([call.message(r.raw, r.tenant_id) for r in call.refused]).result()

    def _remember(self, call: _Call) -> list[DoorOutcome]:
        now_ms = int(call.now.timestamp() * 1000)
        for accepted in call.fresh:
            envelope = accepted.envelope
            self._recent.add(
                (envelope.tenant_id, envelope.id), accepted.content_hash, now_ms=now_ms
            )
        return call.outcomes()


class _Call:
    """One publish call: pure bookkeeping between judging and answering."""

    def __init__(
        self,
        items: Sequence[Item],
        verdicts: Sequence[Verdict],
        now: datetime,
        via: Via,
        tenant_id: str | None,
        recent: RecentIds,
        *,
        derived: bool,
    ) -> None:
        self.now = now
        self._items = items
        self._verdicts = list(verdicts)
        self._via = via
        self._tenant_id = tenant_id
        self._seen: dict[tuple[str, str], bytes] = {}
        self.unsure: list[tuple[str, str]] = []
        for verdict in verdicts:
            if isinstance(verdict, Accepted) and ("id" in verdict.claimed or derived):
                key = (verdict.envelope.tenant_id, verdict.envelope.id)
                content = recent.find(key)
                if content is not None:
                    self._seen[key] = content
                elif derived or recent.may_be_known(key[1]):
                    self.unsure.append(key)
        self._sort()

    def settle(self, known: dict[tuple[str, str], bytes]) -> None:
        """Take in what the store knows."""
        self._seen.update(known)
        self._sort()

    def _sort(self) -> None:
        """Split the verdicts: new ones, repeats, and what is refused."""
        self.fresh: list[Accepted] = []
        self.refused: list[Rejected] = []
        self._final: list[tuple[Verdict, bool]] = []  # verdict, is a repeat
        seen = dict(self._seen)
        for item, verdict in zip(self._items, self._verdicts, strict=True):
            final, repeat = verdict, False
            if isinstance(verdict, Accepted):
                key = (verdict.envelope.tenant_id, verdict.envelope.id)
                before = seen.setdefault(key, verdict.content_hash)
                repeat = key in self._seen or before is not verdict.content_hash
                if before != verdict.content_hash:
                    final = conflict(item.raw, verdict, self._via)
            if isinstance(final, Rejected):
                self.refused.append(final)
            elif not repeat:
                self.fresh.append(final)
            self._final.append((final, repeat))

    def messages(self) -> list[Message]:
        return [
            self.message(encode(settled_form(accepted)), accepted.envelope.tenant_id)
            for accepted in self.fresh
        ]

    def message(self, raw: bytes, tenant_id: str) -> Message:
        return Message(
            json=raw,
            accepted_ms=int(self.now.timestamp() * 1000),
            tenant_id=tenant_id or UNBOUND,
            via=self._via,
        )

    def outcomes(self) -> list[DoorOutcome]:
        return [self._outcome(verdict, repeat) for verdict, repeat in self._final]

    def _outcome(self, verdict: Verdict, repeat: bool) -> DoorOutcome:
        if isinstance(verdict, Rejected):
            return DoorOutcome(verdict.event_id, "rejected", self.now, None, verdict)
        event = check.write(verdict.envelope)
        status: Literal["accepted", "duplicate"] = "duplicate" if repeat else "accepted"
        return DoorOutcome(verdict.envelope.id, status, self.now, event)


def _whole_ms(at: datetime) -> datetime:
    """The queue keeps milliseconds; what the caller hears must be what is stored."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)
