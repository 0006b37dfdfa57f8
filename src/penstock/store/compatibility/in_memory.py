"""Keep payloads in memory: the specification of reading them back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from penstock.envelope.envelope import Stored
from penstock.registry.evidence import KeptPayload


class InMemoryPayloads:
    """Stored events of any tenant, in the order of the log."""

    def __init__(self, events: Sequence[Stored]) -> None:
        self._newest_first = sorted(events, key=lambda stored: -stored.position)

    def page(
        self, tenant_id: str, event_type: str, *, before: int | None, since: datetime,
        limit: int, within_s: float,  # noqa: ARG002  memory is quick
    ) -> list[KeptPayload]:  # fmt: skip
        found = [
            _kept(stored)
            for stored in self._newest_first
            if (stored.envelope.tenant_id, stored.envelope.type) == (tenant_id, event_type)
            and (before is None or stored.position < before)
            and stored.received_at >= since
        ]
        return found[:limit]


def _kept(stored: Stored) -> KeptPayload:
    event = stored.envelope
    return KeptPayload(stored.position, event.id, event.source, event.schema_version, event.payload)
