"""Hold both faces of the publisher to its promises, with a scripted sink and no real waiting."""

from __future__ import annotations

import asyncio
import os
import random
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeAlias, Unpack

import pytest

from penstock.base.backoff import Backoff
from penstock.base.clock import FixedClock
from penstock.base.errors import AccessDenied, EventRefused, QueueUnavailable
from penstock.base.ids import is_uuid7
from penstock.envelope.envelope import JsonObject
from penstock.publish.cause import handling
from penstock.publish.port import Outcome, Result, Sink, Undelivered
from penstock.publish.prepare import Fields, Publishable
from penstock.publish.publisher import Publisher
from penstock.registry.declare import EventType, Payload
from penstock.registry.registry import Registry

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)
AWAY = QueueUnavailable("away", retry_after_s=0)
Move: TypeAlias = "Exception | int | Callable[[Sequence[JsonObject]], list[Result]]"


def taken(event: JsonObject) -> Outcome:
    return Outcome(str(event["id"]), "accepted", "2026-01-31T10:30:00.000Z", event)


@dataclass
class Scripted:
    """A sink that plays a script: raise, take the first n, or answer; then it takes everything."""

    script: list[Move] = field(default_factory=list)
    calls: list[list[JsonObject]] = field(default_factory=list)

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        self.calls.append(list(events))
        move = self.script.pop(0) if self.script else len(events)
        if isinstance(move, Exception):
            raise move
        if isinstance(move, int):
            return [taken(event) for event in events[:move]]
        return move(events)


@dataclass
class ScriptedAsync(Scripted):
    """The same, awaited; its blocking face must not be used by the awaiting one."""

    async def asend(self, events: Sequence[JsonObject]) -> list[Result]:
        return Scripted.send(self, events)

    def send(self, events: Sequence[JsonObject]) -> list[Result]:
        raise AssertionError(f"the awaiting face called send with {len(events)} events")


class Blocking:
    """Calls the blocking face."""

    sink: type[Scripted] = Scripted

    def __init__(self, publisher: Publisher) -> None:
        self.publisher = publisher

    def publish(self, event: Publishable, /, **fields: Unpack[Fields]) -> Outcome:
        return self.publisher.publish(event, **fields)

    def publish_many(self, events: Iterable[Publishable]) -> list[Result]:
        return self.publisher.publish_many(events)


class Awaiting(Blocking):
    """Calls the awaiting face of a sink that has one."""

    sink: type[Scripted] = ScriptedAsync

    def publish(self, event: Publishable, /, **fields: Unpack[Fields]) -> Outcome:
        return asyncio.run(self.publisher.apublish(event, **fields))

    def publish_many(self, events: Iterable[Publishable]) -> list[Result]:
        return asyncio.run(self.publisher.apublish_many(events))


class OnThread(Awaiting):
    """Calls the awaiting face of a sink that can only block."""

    sink = Scripted


@dataclass
class Stage:
    """A publisher with its sink, and every wait it asked for."""

    face: type[Blocking]
    waits: list[float] = field(default_factory=list)

    def open(self, *script: Move, **options: Any) -> tuple[Blocking, Scripted]:
        async def asleep(seconds: float) -> None:
            self.waits.append(seconds)

        sink = self.face.sink(list(script))
        options = {"source": "test.publisher", "backoff": Backoff(jitter=0), **options}
        publisher = Publisher(
            sink, sleep=self.waits.append, asleep=asleep, clock=FixedClock(NOW), **options
        )
        return self.face(publisher), sink


@pytest.fixture(params=[Blocking, Awaiting, OnThread])
def stage(request: pytest.FixtureRequest) -> Stage:
    return Stage(request.param)


def test_an_event_arrives_with_everything_filled_in(stage: Stage) -> None:
    publisher, sink = stage.open()

    outcome = publisher.publish("metastore.record.updated", payload={"n": 1}, tags={"mode": "x"})

    assert sink.calls == [[outcome.event]]
    assert is_uuid7(outcome.id)
    assert outcome.status == "accepted"
    assert outcome.event == {
        "id": outcome.id,
        "type": "metastore.record.updated",
        "source": "test.publisher",
        "occurredAt": "2026-01-31T10:30:00.000Z",
        "payload": {"n": 1},
        "tags": {"mode": "x"},
    }


def test_a_ready_event_arrives(stage: Stage) -> None:
    publisher, _ = stage.open()

    outcome = publisher.publish({"type": "a.b", "id": "evt-1", "source": "mine"})

    assert outcome.event == {"type": "a.b", "id": "evt-1", "source": "mine"}


def test_a_typed_payload_arrives(stage: Stage) -> None:
    class Moved(Payload):
        """It moved."""

        new_place: str

    publisher, _ = stage.open()

    outcome = publisher.publish(EventType("thing.moved", Moved), payload=Moved(new_place="here"))

    assert outcome.event["payload"] == {"newPlace": "here"}
    assert outcome.event["schemaVersion"] == 1


def test_an_invalid_event_is_refused_and_never_sent(stage: Stage) -> None:
    publisher, sink = stage.open()

    with pytest.raises(EventRefused) as caught:
        publisher.publish("nodots", ttl_ms=-1)

    assert {fault.pointer for fault in caught.value.faults} == {"/type", "/ttl"}
    assert caught.value.reason == "envelope_invalid"
    assert sink.calls == []


def test_a_payload_that_is_no_json_is_refused_and_never_sent(stage: Stage) -> None:
    publisher, sink = stage.open()

    with pytest.raises(EventRefused, match="expected a JSON value, found set"):
        publisher.publish("a.b", payload={1, 2})

    assert sink.calls == []


def test_a_registry_refuses_types_it_does_not_know(stage: Stage) -> None:
    publisher, sink = stage.open(registry=Registry([], mode="strict"))

    with pytest.raises(EventRefused) as caught:
        publisher.publish("a.b")

    assert caught.value.reason == "type_unknown"
    assert sink.calls == []


def test_a_refusal_of_the_server_is_raised_with_its_reason(stage: Stage) -> None:
    refused = EventRefused("no", reason="type_unknown", dead_letter_id="dl-1")
    publisher, _ = stage.open(lambda _: [refused])

    with pytest.raises(EventRefused) as caught:
        publisher.publish("a.b")

    assert caught.value is refused
    assert stage.waits == []


def test_a_queue_that_comes_back_is_waited_for_with_backoff(stage: Stage) -> None:
    publisher, sink = stage.open(AWAY, AWAY, AWAY)

    publisher.publish("a.b")

    assert stage.waits == pytest.approx([0.1, 0.2, 0.4])
    assert len(sink.calls) == 4


def test_every_attempt_sends_the_same_event_with_the_same_id(stage: Stage) -> None:
    publisher, sink = stage.open(AWAY, AWAY)

    publisher.publish("a.b", payload={"n": 1})

    assert sink.calls[0] == sink.calls[1] == sink.calls[2]


def test_changing_the_payload_between_attempts_changes_nothing(stage: Stage) -> None:
    payload = {"n": 1}

    def change(events: Sequence[JsonObject]) -> list[Result]:
        payload["n"] = 2
        raise AWAY

    publisher, sink = stage.open(change)

    publisher.publish("a.b", payload=payload)

    assert sink.calls[0] == sink.calls[1]


def test_retry_after_is_honoured(stage: Stage) -> None:
    publisher, _ = stage.open(QueueUnavailable("full", retry_after_s=7))

    publisher.publish("a.b")

    assert stage.waits == pytest.approx([7.1])


def test_waits_are_jittered(stage: Stage) -> None:
    first, _ = stage.open(AWAY, backoff=Backoff(), rng=random.Random(1))
    second, _ = stage.open(AWAY, backoff=Backoff(), rng=random.Random(2))

    first.publish("a.b")
    second.publish("a.b")

    assert stage.waits[0] != stage.waits[1]
    assert all(0.08 <= wait <= 0.12 for wait in stage.waits)


def test_when_every_attempt_fails_the_error_hands_back_the_event(stage: Stage) -> None:
    publisher, sink = stage.open(*[AWAY] * 6)

    with pytest.raises(QueueUnavailable) as caught:
        publisher.publish("a.b")

    assert len(sink.calls) == 6
    assert len(stage.waits) == 5
    assert isinstance(caught.value, Undelivered)
    assert list(caught.value.unsent) == sink.calls[0]


def test_what_was_handed_back_can_be_published_again_as_the_same_event(stage: Stage) -> None:
    publisher, sink = stage.open(AWAY, attempts=1)
    with pytest.raises(Undelivered) as caught:
        publisher.publish("a.b", payload={"n": 1})

    publisher.publish_many(caught.value.unsent)

    assert sink.calls[0] == sink.calls[1]


def test_one_attempt_means_no_retry(stage: Stage) -> None:
    publisher, sink = stage.open(AWAY, attempts=1)

    with pytest.raises(QueueUnavailable):
        publisher.publish("a.b")

    assert (len(sink.calls), stage.waits) == (1, [])


def test_a_wrong_token_is_not_retried(stage: Stage) -> None:
    publisher, sink = stage.open(AccessDenied("who are you"))

    with pytest.raises(AccessDenied):
        publisher.publish("a.b")

    assert (len(sink.calls), stage.waits) == (1, [])


def test_many_events_are_answered_in_their_order(stage: Stage) -> None:
    refused = EventRefused("no", reason="type_unknown")

    def mixed(events: Sequence[JsonObject]) -> list[Result]:
        duplicate = Outcome(str(events[1]["id"]), "duplicate", "", events[1])
        return [taken(events[0]), duplicate, refused]

    publisher, sink = stage.open(mixed)

    results = publisher.publish_many(
        [
            {"type": "a.b", "payload": 0},
            {"type": "nodots"},
            {"type": "a.b", "payload": 2},
            {"type": "a.b", "payload": object()},
            {"type": "a.b", "payload": 4},
        ]
    )

    assert [each["payload"] for each in sink.calls[0]] == [0, 2, 4]
    assert [r.reason if isinstance(r, EventRefused) else r.status for r in results] == [
        "accepted",
        "envelope_invalid",
        "duplicate",
        "envelope_invalid",
        "type_unknown",
    ]


def test_only_what_got_no_answer_is_sent_again(stage: Stage) -> None:
    publisher, sink = stage.open(2, AWAY, 1)

    results = publisher.publish_many({"type": "a.b", "id": f"evt-{n}"} for n in range(4))

    assert [[event["id"] for event in call] for call in sink.calls] == [
        ["evt-0", "evt-1", "evt-2", "evt-3"],
        ["evt-2", "evt-3"],
        ["evt-2", "evt-3"],
        ["evt-3"],
    ]
    assert [r.id for r in results if isinstance(r, Outcome)] == [f"evt-{n}" for n in range(4)]
    assert stage.waits == pytest.approx([0.1])


def test_many_of_nothing_is_nothing(stage: Stage) -> None:
    publisher, sink = stage.open()

    assert publisher.publish_many([]) == []
    assert sink.calls == []


def test_what_is_published_while_handling_says_so(stage: Stage) -> None:
    publisher, sink = stage.open()

    with handling({"id": "evt-0", "correlationId": "req-1"}):
        publisher.publish("a.b")
        publisher.publish("a.b", correlation_id="own")

    found = [(call[0]["causationId"], call[0]["correlationId"]) for call in sink.calls]
    assert found == [("evt-0", "req-1"), ("evt-0", "own")]


def test_a_closed_publisher_publishes_nothing(stage: Stage) -> None:
    publisher, _ = stage.open()
    publisher.publisher.close()

    with pytest.raises(RuntimeError, match="expected an open publisher"):
        publisher.publish("a.b")


@dataclass
class Connection(Scripted):
    """A sink that says whether it was closed."""

    closed: list[str] = field(default_factory=list)

    def close(self) -> None:
        self.closed.append("close")

    async def aclose(self) -> None:
        self.closed.append("aclose")


def test_an_address_in_the_place_of_a_sink_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match="found an address; say url=… and token=…"):
        Publisher("http://127.0.0.1:8700")  # type: ignore[arg-type]


def test_a_sink_that_was_handed_in_is_left_open() -> None:
    sink = Connection()

    async def awaited() -> None:
        async with Publisher(sink):
            pass

    with Publisher(sink):
        pass
    asyncio.run(awaited())

    assert sink.closed == []


def test_a_sink_that_the_publisher_opened_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Connection()
    monkeypatch.setattr("penstock.publish.publisher.open_sink", lambda *_: sink)

    async def awaited() -> None:
        async with Publisher():
            pass

    with Publisher():
        pass
    asyncio.run(awaited())

    assert sink.closed == ["close", "aclose"]


def test_without_a_sink_the_environment_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def opener(*said: object) -> Sink:
        asked.append(said)
        return Connection()

    monkeypatch.setattr("penstock.publish.publisher.open_sink", opener)

    Publisher()
    Publisher(url="http://127.0.0.1:1", token="pst")

    assert asked == [(None, None, os.environ), ("http://127.0.0.1:1", "pst", os.environ)]


def test_the_event_loop_is_free_while_a_blocking_sink_works() -> None:
    """The sink waits for something that only the loop can do: a blocked loop would never do it."""
    released = threading.Event()

    def wait(events: Sequence[JsonObject]) -> list[Result]:
        assert released.wait(10)
        return [taken(event) for event in events]

    async def both() -> None:
        publishing = asyncio.create_task(Publisher(Scripted([wait]), source="s").apublish("a.b"))
        await asyncio.sleep(0)
        released.set()
        await publishing

    asyncio.run(both())


def test_threads_may_share_a_publisher() -> None:
    sink = Scripted()
    publisher = Publisher(sink, source="s")
    threads = [
        threading.Thread(target=lambda: [publisher.publish("a.b") for _ in range(20)])
        for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({call[0]["id"] for call in sink.calls}) == 160
