"""Old payloads are folded as their newest version, and snapshots know by which upcasters."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from tests.store.timetravel.support import ISSUE, said, travel_over, value

from penstock.envelope.envelope import JsonObject
from penstock.registry.book import RegistryBook
from penstock.registry.declare import EventType, Payload, Vocabulary
from penstock.registry.in_memory import InMemoryRegistryStore
from penstock.registry.registry import Registry
from penstock.store.timetravel.in_memory import SnapshotsInMemory
from penstock.store.timetravel.lens import _written, as_stored, upcasting


class Paid(Payload):
    """An amount was paid."""

    cents: int


def to_cents(payload: JsonObject) -> JsonObject:
    return {"cents": int(str(payload["amount"])) * 100}


def to_mills(payload: JsonObject) -> JsonObject:
    return {"cents": int(str(payload["amount"])) * 1000}


def fails(payload: JsonObject) -> JsonObject:
    raise KeyError("amount")


def registry(upcast: Any = None) -> Registry:
    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    steps = {} if upcast is None else {1: upcast}
    paid = EventType("shop.order.paid", Paid, sources=("shop.api",), version=2, upcasts=steps)
    book.declare([Vocabulary("shop", (paid,))])
    return book.current()


OLD = said(1, {"amount": 3}, type="shop.order.paid", schema_version=1)
NEW = said(2, {"cents": 450}, type="shop.order.paid", schema_version=2)


def test_an_old_payload_is_folded_as_its_newest_version() -> None:
    travel = travel_over([OLD, NEW], lens=lambda: upcasting(registry(to_cents)))

    assert value(travel, as_of=1) == {"cents": 300}
    assert value(travel) == {"cents": 450}


def test_the_steps_of_a_replay_show_what_the_upcasted_payload_changed() -> None:
    travel = travel_over([OLD, NEW], lens=lambda: upcasting(registry(to_cents)))

    assert [step.changes[0].after for step in travel.replay(ISSUE).steps] == [300, 450]


def test_an_upcaster_that_fails_leaves_the_event_as_it_was_stored() -> None:
    assert value(travel_over([OLD], lens=lambda: upcasting(registry(fails)))) == {"amount": 3}


def test_without_upcasters_events_are_seen_as_stored() -> None:
    assert upcasting(registry()).name == as_stored().name == ""
    assert upcasting(registry()).see(OLD) is OLD


def test_snapshots_made_by_other_upcasters_are_passed_over() -> None:
    snapshots = SnapshotsInMemory()
    for upcast, cents in ((to_cents, 300), (to_mills, 3_000), (to_cents, 300)):
        travel = travel_over(
            [OLD], snapshots=snapshots, every=1, lens=lambda u=upcast: upcasting(registry(u))
        )
        assert value(travel) == {"cents": cents}

    assert len(snapshots.kept) == 2


def test_the_worker_extends_only_what_today_s_upcasters_made() -> None:
    snapshots = SnapshotsInMemory()
    by_cents = travel_over(
        [OLD], snapshots=snapshots, every=1, lens=lambda: upcasting(registry(to_cents))
    )
    by_cents.state(ISSUE)

    for upcast, extended in ((to_mills, 0), (to_cents, 1)):
        travel = travel_over(
            [OLD, NEW], snapshots=snapshots, every=1, lens=lambda u=upcast: upcasting(registry(u))
        )
        assert travel.extend() == extended


def test_the_digest_of_an_upcaster_is_the_same_in_every_process() -> None:
    program = (
        "from penstock.store.timetravel.lens import _written\n"
        "def step(p): return [x for x in p if x in {'a', 'b', 'c', 'd'}] or (lambda: 1.5)()\n"
        "print(_written(step))"
    )

    def step(p: Any) -> Any:
        return [x for x in p if x in {"a", "b", "c", "d"}] or (lambda: 1.5)()

    heard = {
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, check=True,
            env={"PYTHONHASHSEED": str(seed)},
        ).stdout
        for seed in range(3)
    }  # fmt: skip

    assert len(heard) == 1
    assert " at 0x" not in _written(step)
