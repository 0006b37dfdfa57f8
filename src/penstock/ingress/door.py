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
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

import structlog

from penstock.base.clock import Clock
from penstock.base.errors import StoreUnavailable
from penstock.base.ids import derived_id, uuid7
from penstock.envelope.envelope import JsonValue
from penstock.ingress.call import Call, DoorOutcome
from penstock.ingress.pipeline import judge, judge_tree, queued_form
from penstock.ingress.protect import NOTHING_PERSONAL, Protect
from penstock.ingress.recent import RecentIds
from penstock.ingress.several import judge_several
from penstock.ingress.verdict import Arrival, Rejected, Verdict, Via
from penstock.registry.registry import Registry
from penstock.transport.port import Transport

Known = Callable[[str, Sequence[str]], dict[str, bytes]]  # tenant, ids -> content hashes
Keep = Callable[[Sequence[Rejected], datetime], None]
_RECENT_MOST = 100_000
_log = structlog.get_logger("door")


class Item(NamedTuple):
    """One event as it came: its bytes, and its tree when somebody has decoded it already."""

    raw: bytes
    tree: JsonValue = None
    is_compact: bool = False  # the bytes are what we would write for the tree


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
        protect: Protect = NOTHING_PERSONAL,
    ) -> None:
        self._transport = transport
        self._registry = registry
        self._known = known
        self._keep = keep
        self._clock = clock
        self._protect = protect
        started_ms = int(clock.now().timestamp() * 1000)
        self._recent = RecentIds(most=_RECENT_MOST, started_ms=started_ms)

    def publish(
        self,
        items: Sequence[Item],
        *,
        tenant_id: str | None,
        via: Via,
        key: str | None = None,
        operator: bool = True,
    ) -> list[DoorOutcome]:
        """Judge and make durable; QueueUnavailable means nothing was stored."""
        call = self._judge(items, tenant_id, via, key, operator)
        if call.unsure:
            call.settle(self._look_up(call))
        sent = self._send(call)
        if call.refused:
            self._refuse(call)
        if sent is not None:
            sent.result()
        return self._remember(call)

    async def publish_async(
        self,
        items: Sequence[Item],
        *,
        tenant_id: str | None,
        via: Via,
        key: str | None = None,
        operator: bool = True,
    ) -> list[DoorOutcome]:
        """As `publish`, without holding a thread while the disk works."""
        call = self._judge(items, tenant_id, via, key, operator)
        if call.unsure:
            call.settle(await asyncio.to_thread(self._look_up, call))
        sent = self._send(call)
        if call.refused:
            await asyncio.to_thread(self._refuse, call)
        if sent is not None:
            await asyncio.wrap_future(sent)
        return self._remember(call)

    def _judge(
        self,
        items: Sequence[Item],
        tenant_id: str | None,
        via: Via,
        key: str | None,
        operator: bool,
    ) -> Call:
        now = _whole_ms(self._clock.now())
        registry = self._registry()
        call = Call(now, via, self._recent, derived=key is not None)
        nonce = uuid7()
        arrivals = []
        named = Arrival(now, "", via, tenant_id, (nonce,), operator)
        for index, item in enumerate(items):
            if isinstance(item.tree, dict) and "id" in item.tree:
                arrivals.append(named)  # it brings its id, so its place names nothing
                continue
            fallback = "" if key is None else derived_id(0, tenant_id or "", key, str(index))
            arrivals.append(Arrival(now, fallback, via, tenant_id, (nonce, str(index)), operator))
        keyed = self._protect.keyed
        verdicts = _verdicts(items, arrivals, registry)
        for item, arrival, verdict in zip(items, arrivals, verdicts, strict=True):
            if isinstance(verdict, Rejected):
                call.add(item.raw, _named(verdict, arrival), b"")
                continue
            # What came in a dialect is queued in our own words.
            is_compact = item.is_compact and verdict.claimed is item.tree
            written = queued_form(verdict, item.raw, arrival, is_compact=is_compact)
            if isinstance(written, Rejected):
                call.add(item.raw, _named(written, arrival), b"")
            else:
                call.add(item.raw, keyed(verdict, registry), written)
        call.recall()
        return call

    def _look_up(self, call: Call) -> dict[tuple[str, str], bytes]:
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

    def _send(self, call: Call) -> Future[None] | None:
        messages = call.messages((entry.written, entry.key[0]) for entry in call.fresh)
        return self._transport.send(messages) if messages else None

    def _refuse(self, call: Call) -> None:
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
            refused = call.messages((each.raw, each.tenant_id) for each in call.refused)
            self._transport.send(refused).result()

    def _remember(self, call: Call) -> list[DoorOutcome]:
        self._recent.add([(key, content) for key, content, _ in call.fresh], now_ms=call.at_ms)
        return call.outcomes()


def _verdicts(
    items: Sequence[Item], arrivals: Sequence[Arrival], registry: Registry
) -> list[Verdict]:
    raws = [item.raw for item in items]
    trees = [item.tree for item in items]
    if None not in trees:
        return judge_several(raws, arrivals, registry, trees)
    return [
        judge(item.raw, arrival, registry)
        if item.tree is None
        else judge_tree(item.tree, item.raw, arrival, registry)
        for item, arrival in zip(items, arrivals, strict=True)
    ]


def _named(rejected: Rejected, arrival: Arrival) -> Rejected:
    """The rejection with the id that its key stands for: a retry repeats what is let in later."""
    if rejected.event_id is not None or not arrival.fallback_id:
        return rejected
    return replace(rejected, event_id=arrival.fallback_id)


def _whole_ms(at: datetime) -> datetime:
    """The queue keeps milliseconds; what the caller hears must be what is stored."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


__all__ = ["Door", "DoorOutcome", "Item"]
