"""Hold the in-process bus to its promises: who is called, with what, and what one failure harms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator
from datetime import UTC, datetime

import pytest

from penstock.base.clock import FixedClock
from penstock.base.errors import EventRefused
from penstock.base.ids import is_uuid7
from penstock.envelope.envelope import Envelope
from penstock.publish.bus import EventBus
from penstock.publish.dispatch import Failure
from penstock.publish.port import Outcome
from penstock.publish.publisher import Publisher
from penstock.registry.declare import EventType, Payload
from penstock.registry.registry import Registry

NOW = datetime(2026, 1, 31, 10, 30, tzinfo=UTC)


class ProfileDue(Payload):
    """A profile is due."""

    entity_id: str


PROFILE_DUE = EventType("metadata.profile.due", ProfileDue)


class Heard:
    """A handler that remembers the types, payloads and events it was called with."""

    def __init__(self) -> None:
        self.events: list[Envelope] = []

    def __call__(self, event: Envelope) -> None:
        self.events.append(event)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def payloads(self) -> list[object]:
        return [event.payload for event in self.events]


def fail(event: Envelope) -> None:
    raise ValueError(event.id)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def failures() -> list[Failure]:
    return []


@pytest.fixture
def bus(failures: list[Failure]) -> EventBus:
    return EventBus(source="test.bus", on_error=failures.append, clock=FixedClock(NOW))


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        ("metastore.record.updated", ["metastore.record.updated"]),
        ("metastore.record.*", ["metastore.record.updated", "metastore.record.deleted"]),
        (
            "metastore.**",
            ["metastore.record.updated", "metastore.record.deleted", "metastore.started"],
        ),
        ("metastore.record.upd*", ["metastore.record.updated"]),
        ("CODE.**", ["CODE.MERGED.SUCCESS"]),
        (
            "*",
            [
                "metastore.record.updated",
                "metastore.record.deleted",
                "metastore.started",
                "CODE.MERGED.SUCCESS",
            ],
        ),
        ("asset.produced", []),
    ],
)
def test_a_subscriber_hears_what_it_asked_for_and_nothing_else(
    bus: EventBus, heard: Heard, pattern: str, wanted: list[str]
) -> None:
    bus.subscribe(pattern, heard)

    for name in (
        "metastore.record.updated",
        "metastore.record.deleted",
        "metastore.started",
        "CODE.MERGED.SUCCESS",
    ):
        bus.publish(name)

    assert heard.types == wanted


def test_a_handler_gets_the_whole_event(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("*", heard)

    outcome = bus.publish("a.b", payload={"n": 1}, tags={"mode": "x"}, correlation_id="req-1")

    (event,) = heard.events
    assert event.id == outcome.id
    assert is_uuid7(event.id)
    assert (event.source, event.payload) == ("test.bus", {"n": 1})
    assert (event.tags, event.correlation_id) == ({"mode": "x"}, "req-1")
    assert event.occurred_at == NOW
    assert outcome.accepted_at == "2026-01-31T10:30:00.000Z"


def test_an_event_that_nobody_wants_is_published_all_the_same(bus: EventBus) -> None:
    assert bus.publish("a.b").status == "accepted"


def test_a_pattern_that_no_event_can_have_is_the_callers_mistake(
    bus: EventBus, heard: Heard
) -> None:
    with pytest.raises(ValueError, match="expected an event type or a glob, found 'nodots'"):
        bus.subscribe("nodots", heard)


def test_an_invalid_event_is_refused_and_reaches_nobody(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("*", heard)

    with pytest.raises(EventRefused):
        bus.publish("nodots")

    assert heard.events == []


def test_a_registry_keeps_unknown_types_off_the_bus(heard: Heard) -> None:
    bus = EventBus(source="s", registry=Registry([], mode="strict"))
    bus.subscribe("*", heard)

    with pytest.raises(EventRefused):
        bus.publish("a.b")

    assert heard.events == []


def test_a_typed_subscriber_hears_payloads_that_fit(
    bus: EventBus, heard: Heard, failures: list[Failure]
) -> None:
    subscription = bus.subscribe(PROFILE_DUE, heard)

    bus.publish(PROFILE_DUE, payload=ProfileDue(entity_id="meta-1"))
    bus.publish("metadata.profile.due", payload={"wrong": True})

    assert heard.payloads == [{"entityId": "meta-1"}]
    assert (subscription.handled, subscription.errors) == (1, 1)
    assert failures[0].event.payload == {"wrong": True}


def test_unsubscribing_a_handler_really_removes_it(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("a.b", heard)
    bus.subscribe("*", heard)

    assert bus.unsubscribe(heard) == 2

    bus.publish("a.b")
    assert heard.events == []


def test_unsubscribing_from_one_pattern_leaves_the_others(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("a.b", heard)
    bus.subscribe(PROFILE_DUE, heard)

    assert bus.unsubscribe(heard, PROFILE_DUE) == 1
    assert bus.unsubscribe(heard, "c.d") == 0

    bus.publish("a.b")
    bus.publish("metadata.profile.due", payload={"entityId": "x"})
    assert heard.types == ["a.b"]


def test_unsubscribing_a_handler_leaves_other_handlers(bus: EventBus, heard: Heard) -> None:
    other = Heard()
    bus.subscribe("a.b", heard)
    bus.subscribe("a.b", other)

    bus.unsubscribe(heard)
    bus.publish("a.b")

    assert (heard.types, other.types) == ([], ["a.b"])


def test_a_bound_method_can_be_unsubscribed(bus: EventBus) -> None:
    class Service:
        calls = 0

        def react(self, _: Envelope) -> None:
            self.calls += 1

    service = Service()
    bus.subscribe("a.b", service.react)

    assert bus.unsubscribe(service.react) == 1
    bus.publish("a.b")
    assert service.calls == 0


def test_unsubscribing_a_stranger_removes_nothing(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("a.b", heard)

    assert bus.unsubscribe(fail) == 0

    bus.publish("a.b")
    assert heard.types == ["a.b"]


def test_a_cancelled_subscription_hears_nothing_more(bus: EventBus, heard: Heard) -> None:
    kept, ended = bus.subscribe("a.b", heard), bus.subscribe("a.b", heard)

    ended.cancel()
    ended.cancel()
    bus.publish("a.b")

    assert heard.types == ["a.b"]
    assert (kept.active, ended.active) == (True, False)


def test_once_is_once(bus: EventBus, heard: Heard) -> None:
    subscription = bus.subscribe_once("a.*", heard)

    for name in ("x.y", "a.b", "a.b", "a.c"):
        bus.publish(name)

    assert heard.types == ["a.b"]
    assert not subscription.active
    assert bus.unsubscribe(heard) == 0


def test_once_is_once_even_when_its_handler_publishes_the_same(bus: EventBus) -> None:
    calls: list[str] = []

    def again(event: Envelope) -> None:
        calls.append(event.type)
        bus.publish("a.b")

    bus.subscribe_once("a.b", again)
    bus.publish("a.b")

    assert calls == ["a.b"]


def test_once_is_once_even_when_it_fails(bus: EventBus, failures: list[Failure]) -> None:
    bus.subscribe_once("a.b", fail)

    bus.publish("a.b")
    bus.publish("a.b")

    assert len(failures) == 1


def test_a_failing_handler_harms_no_other_and_not_the_publisher(
    bus: EventBus, heard: Heard, failures: list[Failure]
) -> None:
    before, after = Heard(), heard
    bus.subscribe("a.b", before)
    failing = bus.subscribe("*", fail)
    bus.subscribe("a.b", after)

    first, second = bus.publish("a.b"), bus.publish("a.b")

    assert before.types == after.types == ["a.b", "a.b"]
    assert [failure.event.id for failure in failures] == [first.id, second.id]
    assert all(failure.subscription is failing for failure in failures)
    assert [str(failure.error) for failure in failures] == [first.id, second.id]
    assert (failing.errors, bus.errors) == (2, 2)


def test_failures_are_logged_unless_told_otherwise(
    heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    bus = EventBus(source="s")
    bus.subscribe("a.b", fail)

    with caplog.at_level(logging.ERROR, logger="penstock.bus"):
        outcome = bus.publish("a.b")

    (record,) = caplog.records
    assert f"handler of a.b failed on event {outcome.id} of type a.b" in record.getMessage()
    assert record.exc_info


def test_a_reporter_that_fails_harms_nobody(heard: Heard, caplog: pytest.LogCaptureFixture) -> None:
    def report(failure: Failure) -> None:
        raise RuntimeError("no reporter")

    bus = EventBus(source="s", on_error=report)
    bus.subscribe("a.b", fail)
    bus.subscribe("a.b", heard)

    bus.publish("a.b")

    assert heard.types == ["a.b"]
    assert bus.errors == 1
    assert "on_error itself failed" in caplog.text


def test_what_must_stop_the_program_is_not_swallowed(bus: EventBus, heard: Heard) -> None:
    def interrupt(event: Envelope) -> None:
        if event.payload == "stop":
            raise KeyboardInterrupt
        heard(event)

    bus.subscribe("a.b", interrupt)

    with pytest.raises(KeyboardInterrupt):
        bus.publish("a.b", payload="stop")
    bus.publish("a.b", payload="go on")

    assert heard.payloads == ["go on"]


def test_a_reaction_names_its_cause(bus: EventBus, heard: Heard) -> None:
    def react(event: Envelope) -> None:
        bus.publish("metadata.profile.completed")

    bus.subscribe("metadata.profile.due", react)
    bus.subscribe("metadata.profile.completed", heard)

    due = bus.publish("metadata.profile.due", correlation_id="req-1")

    (completed,) = heard.events
    assert (completed.causation_id, completed.correlation_id) == (due.id, "req-1")


def test_a_chain_of_reactions_is_one_correlation(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("a.one", lambda _: bus.publish("a.two"))
    bus.subscribe("a.two", lambda _: bus.publish("a.three"))
    bus.subscribe("a.*", heard)

    first = bus.publish("a.one")

    by_type = {event.type: event for event in heard.events}
    assert by_type["a.three"].causation_id == by_type["a.two"].id
    assert by_type["a.two"].correlation_id == by_type["a.three"].correlation_id == first.id


def test_a_publisher_can_use_the_bus_as_its_sink(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("*", heard)

    outcome = Publisher(bus, source="other.source").publish("a.b")

    assert [(event.id, event.source) for event in heard.events] == [(outcome.id, "other.source")]


def test_many_are_published_in_order_and_a_bad_one_harms_no_other(
    bus: EventBus, heard: Heard
) -> None:
    bus.subscribe("*", heard)

    results = bus.publish_many([{"type": "a.one"}, {"type": "nodots"}, {"type": "a.two"}])

    assert heard.types == ["a.one", "a.two"]
    assert [isinstance(result, Outcome) for result in results] == [True, False, True]


def test_raw_events_are_checked_too(bus: EventBus, heard: Heard) -> None:
    bus.subscribe("*", heard)

    (refused,) = bus.send([{"type": "nodots"}])

    assert isinstance(refused, EventRefused)
    assert heard.events == []


def test_who_subscribes_while_an_event_goes_round_hears_the_next_one(
    bus: EventBus, heard: Heard
) -> None:
    bus.subscribe_once("a.b", lambda _: bus.subscribe("a.b", heard))

    bus.publish("a.b", payload=1)
    bus.publish("a.b", payload=2)

    assert heard.payloads == [2]


def test_who_is_unsubscribed_while_an_event_goes_round_is_not_called(
    bus: EventBus, heard: Heard
) -> None:
    bus.subscribe("a.b", lambda _: bus.unsubscribe(heard))
    bus.subscribe("a.b", heard)

    bus.publish("a.b")

    assert heard.events == []


@pytest.mark.parametrize("make", [lambda h: h, lambda h: h.__call__])
def test_handlers_are_any_callables(
    bus: EventBus, heard: Heard, make: Callable[[Heard], Callable[[Envelope], None]]
) -> None:
    bus.subscribe("a.b", make(heard))

    bus.publish("a.b")

    assert heard.types == ["a.b"]


def test_an_awaitable_handler_has_run_when_apublish_returns(bus: EventBus) -> None:
    done: list[str] = []

    async def slow(event: Envelope) -> None:
        await asyncio.sleep(0)
        done.append(event.type)

    async def main() -> None:
        bus.subscribe("a.b", slow)
        await bus.apublish("a.b")
        assert done == ["a.b"]

    asyncio.run(main())


def test_an_awaitable_handler_has_run_when_publish_returns_outside_a_loop(bus: EventBus) -> None:
    done: list[str] = []

    async def slow(event: Envelope) -> None:
        await asyncio.sleep(0)
        done.append(event.type)

    bus.subscribe("a.b", slow)
    bus.publish("a.b")

    assert done == ["a.b"]


def test_an_awaitable_handler_is_left_to_the_running_loop(bus: EventBus) -> None:
    done: list[object] = []

    async def slow(event: Envelope) -> None:
        await asyncio.sleep(0)
        done.append(event.payload)

    async def main() -> None:
        bus.subscribe("a.b", slow)
        for n in range(5):
            bus.publish("a.b", payload=n)
        assert done == []
        await bus.settle()

    asyncio.run(main())
    assert done == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("face", ["publish", "apublish"])
def test_a_failing_awaitable_handler_harms_no_other(
    bus: EventBus, heard: Heard, failures: list[Failure], face: str
) -> None:
    async def broken(event: Envelope) -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    bus.subscribe("a.b", broken)
    bus.subscribe("a.b", heard)

    if face == "publish":
        bus.publish("a.b")
    else:
        asyncio.run(bus.apublish("a.b"))

    assert heard.types == ["a.b"]
    assert [str(failure.error) for failure in failures] == ["broken"]


def test_a_handler_that_cancels_itself_is_a_failure_like_others(
    bus: EventBus, failures: list[Failure]
) -> None:
    calls: list[object] = []

    async def cancelled(event: Envelope) -> None:
        calls.append(event.payload)
        raise asyncio.CancelledError

    async def main() -> None:
        bus.subscribe("a.b", cancelled)
        await bus.apublish("a.b", payload=1)
        await bus.apublish("a.b", payload=2)

    asyncio.run(main())
    assert calls == [1, 2]
    assert len(failures) == 2


def test_many_are_awaited_in_order(bus: EventBus) -> None:
    done: list[object] = []

    async def slow(event: Envelope) -> None:
        await asyncio.sleep(0)
        done.append(event.payload)

    bus.subscribe("*", slow)
    events = [{"type": "a.b", "payload": n} for n in range(10)]

    results = asyncio.run(bus.apublish_many(events))

    assert len(results) == 10
    assert done == list(range(10))


def test_an_awaitable_reaction_names_its_cause(bus: EventBus, heard: Heard) -> None:
    async def react(event: Envelope) -> None:
        await asyncio.sleep(0)
        await bus.apublish("a.effect")

    bus.subscribe("a.cause", react)
    bus.subscribe("a.effect", heard)

    outcome = asyncio.run(bus.apublish("a.cause"))

    assert [event.causation_id for event in heard.events] == [outcome.id]


def test_whatever_can_be_awaited_is(bus: EventBus) -> None:
    done: list[str] = []

    async def work(name: str) -> None:
        await asyncio.sleep(0)
        done.append(name)

    class Later:
        def __await__(self) -> Generator[object, None, None]:
            return work("an object").__await__()

    async def main() -> None:
        bus.subscribe("a.b", lambda _: work("a coroutine"))
        bus.subscribe("a.b", lambda _: asyncio.create_task(work("a task")))
        bus.subscribe("a.b", lambda _: Later())
        await bus.apublish("a.b")

    asyncio.run(main())
    assert sorted(done) == ["a coroutine", "a task", "an object"]
