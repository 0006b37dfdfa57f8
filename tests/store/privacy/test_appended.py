"""What is appended is hidden too, and never while an event loop or other callers wait for it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.store.append.support import SlowLog, started
from tests.store.privacy.support import MARKED, NOON, PAYLOAD, PLAIN, REGISTRY, vault

from penstock.base.clock import FixedClock
from penstock.envelope.envelope import JsonObject
from penstock.ingress.lot import Judged
from penstock.registry.registry import Registry
from penstock.store.append.appends import Appends
from penstock.store.append.in_memory import LogInMemory
from penstock.store.privacy.hide import Hiding

_WHO_PREPARES = pytest.mark.parametrize(
    ("event_type", "events", "on_its_own"),
    [(PLAIN, 1, False), (PLAIN, 17, True), (MARKED, 1, True), (MARKED, 17, True)],
)


class Watched(Hiding):
    """Notes on which thread it was asked to hide."""

    def __init__(self) -> None:
        super().__init__(vault())
        self.asked_on: list[str] = []

    def hide(self, judged: Sequence[Judged], registry: Registry) -> Sequence[Judged]:
        self.asked_on.append(threading.current_thread().name)
        return super().hide(judged, registry)


def event(event_type: str) -> JsonObject:
    return {"type": event_type, "source": "crm.api", "payload": PAYLOAD}


@_WHO_PREPARES
def test_keys_are_not_asked_for_in_the_event_loop(
    event_type: str, events: int, on_its_own: bool
) -> None:
    hiding, log = Watched(), LogInMemory(lambda: NOON)
    appends = Appends(log, registry=lambda: REGISTRY, clock=FixedClock(NOON), protect=hiding)

    asyncio.run(appends.of().aappend([event(PLAIN)]))
    asyncio.run(appends.of().aappend([event(event_type)] * events))

    unknown_yet, asked_on = hiding.asked_on
    mine = threading.current_thread().name
    assert unknown_yet not in (mine, "append"), "which types are marked was not known then"
    assert asked_on != mine
    assert (asked_on != "append") == on_its_own
    payloads = [stored.envelope.payload for stored in log.events[1:]]
    assert len(payloads) == events
    if event_type == MARKED:
        assert all(isinstance(p, dict) and "$enc" in str(p["email"]) for p in payloads)
    else:
        assert payloads == [PAYLOAD] * events
    appends.close()


@_WHO_PREPARES
def test_keys_are_not_asked_for_while_those_wait_who_share_a_commit(
    event_type: str, events: int, on_its_own: bool
) -> None:
    hiding, log = Watched(), SlowLog()
    appends = Appends(log, registry=lambda: REGISTRY, clock=FixedClock(NOON), protect=hiding)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(appends.of().append, [event(PLAIN)])
        assert log.entered.acquire(timeout=20)

        second = pool.submit(appends.of().append, [event(event_type)] * events)
        started(appends.coordinator, 1)
        log.gate.release(2)
        for each in (first, second):
            each.result(20)

    assert (hiding.asked_on[1] != "append") == on_its_own
    appends.close()


def test_an_append_asks_for_the_registry_once() -> None:
    asked: list[Registry] = []

    def registry() -> Registry:  # in a worker, each time is a question to PostgreSQL
        asked.append(REGISTRY)
        return REGISTRY

    log = LogInMemory(lambda: NOON)
    appends = Appends(log, registry=registry, clock=FixedClock(NOON), protect=Watched())
    for event_type in (PLAIN, PLAIN, MARKED):
        appends.of().append([event(event_type)])

    assert len(asked) == 3
    appends.close()
