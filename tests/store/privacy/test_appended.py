"""What is appended is hidden too, and never while an event loop waits for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest
from tests.store.privacy.support import MARKED, NOON, PAYLOAD, PLAIN, REGISTRY, vault

from penstock.base.clock import FixedClock
from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Judged
from penstock.registry.registry import Registry
from penstock.store.append.appends import Appends
from penstock.store.append.in_memory import LogInMemory
from penstock.store.privacy.hide import Hiding


class Watched(Hiding):
    """Notes on which thread it was asked to hide."""

    def __init__(self) -> None:
        super().__init__(vault())
        self.asked_on: list[int] = []

    def hide(self, judged: Sequence[Judged], registry: Registry) -> Sequence[Judged]:
        self.asked_on.append(threading.get_ident())
        return super().hide(judged, registry)


def event(event_type: str) -> JsonObject:
    return {"type": event_type, "source": "crm.api", "payload": PAYLOAD}


@pytest.mark.parametrize(
    ("event_type", "events", "in_loop"),
    [(PLAIN, 1, True), (PLAIN, 17, False), (MARKED, 1, False), (MARKED, 17, False)],
)
def test_keys_are_not_asked_for_in_the_event_loop(
    event_type: str, events: int, in_loop: bool
) -> None:
    hiding, log = Watched(), LogInMemory(lambda: NOON)
    appends = Appends(log, registry=lambda: REGISTRY, clock=FixedClock(NOON), protect=hiding)

    asyncio.run(appends.of().aappend([event(event_type)] * events))

    (asked_on,) = hiding.asked_on
    assert (asked_on == threading.get_ident()) == in_loop
    assert len(log.events) == events
    payloads = [stored.envelope.payload for stored in log.events]
    if event_type == MARKED:
        assert all(isinstance(p, dict) and "$enc" in str(p["email"]) for p in payloads)
    else:
        assert payloads == [PAYLOAD] * events
    appends.close()
