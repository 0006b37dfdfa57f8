"""The hub feeds every client all of its events once, and raises an alarm on a hole."""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain, repeat

import pytest
from structlog.testing import capture_logs

from penstock.base.errors import AccessDenied, QueryInvalid, StoreUnavailable
from penstock.envelope.envelope import Envelope, Severity, Stored
from penstock.registry.registry import Registry
from penstock.store.onward.reach import Span, Stretch, stretch
from penstock.store.query import EventQuery
from penstock.stream.frames import Form
from penstock.stream.hub import Hub
from penstock.stream.subscription import End, Subscription

AT = datetime(2026, 1, 31, tzinfo=UTC)
EVERYTHING = EventQuery(tenant_id="acme")


class MemoryLog:
    """A log in memory: what a `LogReader` promises, and nothing else."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: list[Stored] = []
        self._head = 0
        self.away = False
        self.reads = 0

    def commit(
        self, count: int = 1, *, tenant: str = "acme", kind: str = "a.b", text: str = ""
    ) -> None:
        with self._lock:
            for _ in range(count):
                self._head += 1
                envelope = Envelope(
                    f"e-{self._head}", kind, "s", AT, {"text": text}, tenant_id=tenant
                )
                self._rows.append(
                    Stored(self._head, envelope, AT, Severity.INFO, "default", None, b"")
                )

    def skip(self, count: int) -> None:
        with self._lock:
            self._head += count

    def after(self, position: int, limit: int, *, tenant_id: str | None = None) -> list[Stored]:
        with self._lock:
            self.reads += 1
            if self.away:
                raise StoreUnavailable("the log is away")
            rows = (
                row
                for row in self._rows
                if row.position > position and tenant_id in (None, row.envelope.tenant_id)
            )
            return [row for row, _ in zip(rows, range(limit), strict=False)]

    def matching(self, query: EventQuery, *, after: int, until: int, limit: int) -> Stretch:
        rows = self.after(after, limit, tenant_id=query.tenant_id)
        return stretch([row for row in rows if row.position <= until], Span(after, until), limit)

    def head(self) -> int:
        with self._lock:
            if self.away:
                raise StoreUnavailable("the log is away")
            return self._head


@dataclass
class Client:
    """Takes from a subscription and keeps what it got."""

    subscription: Subscription
    positions: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    bodies: list[dict[str, object]] = field(default_factory=list)

    async def read_until(self, done: Callable[[Client], bool]) -> None:
        async with asyncio.timeout(10):
            while not done(self):
                batch = self.subscription.take()
                if batch is None:
                    await self.subscription.advance()
                    continue
                for frame in batch:
                    self.kinds.append(frame.type)
                    self.bodies.append(json.loads(frame.body))
                    if frame.type == "workflow.event.received":
                        assert frame.position is not None
                        self.positions.append(frame.position)

    async def read_to(self, position: int) -> None:
        await self.read_until(lambda me: bool(me.positions) and me.positions[-1] >= position)


def hub_over(log: MemoryLog, **options: object) -> Hub:
    registry = Registry([], mode="open")
    settings: dict[str, object] = {
        "poll_s": 0.005,
        "still_valid": lambda _token: True,
        "registry": lambda: registry,
    }
    return Hub(log, **(settings | options))  # type: ignore[arg-type]


def run(test: Callable[[Hub, MemoryLog], Awaitable[None]], **options: object) -> None:
    async def around() -> None:
        log = MemoryLog()
        log.commit(10)
        hub = hub_over(log, **options)
        await hub.start()
        try:
            await hub.admit("t", None)
            await test(hub, log)
        finally:
            await hub.stop()

    asyncio.run(around())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


def test_a_live_client_gets_an_acknowledgement_and_then_what_is_committed_next() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EVERYTHING))
        log.commit(3)

        await client.read_to(13)

        assert client.kinds[0] == "connection.ack"
        assert client.positions == [11, 12, 13]

    run(test)


@pytest.mark.parametrize("after", range(11))
def test_a_client_resumes_from_any_position(after: int) -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EVERYTHING, after=after))
        log.commit(5)

        await client.read_to(15)

        assert client.positions == list(range(after + 1, 16))
        assert client.kinds.count("caught.up") == 1
        assert "lagged" not in client.kinds

    run(test)


def test_many_clients_resume_while_writers_write_and_nobody_misses_or_repeats_anything() -> None:
    rng = random.Random(5)

    async def test(hub: Hub, log: MemoryLog) -> None:
        clients = []

        async def write() -> None:
            for _ in range(150):
                log.commit(rng.randrange(1, 30), tenant=rng.choice(("acme", "acme", "other")))
                await asyncio.sleep(0)

        writing = asyncio.create_task(write())
        for _ in range(12):
            after = rng.randrange(hub.position + 1)
            clients.append((after, Client(hub.subscribe(EVERYTHING, after=after))))
            await asyncio.sleep(0)
        reading = [asyncio.create_task(c.read_until(lambda _: False)) for _, c in clients]
        await writing
        log.commit(1)
        end = log.head()
        await until(lambda: all(c.positions[-1:] == [end] for _, c in clients))
        for task in reading:
            task.cancel()

        ours = [row.position for row in log.after(0, 10**6, tenant_id="acme")]
        for after, client in clients:
            assert client.positions == [p for p in ours if p > after]

    run(test)


def test_a_client_that_does_not_read_is_told_and_then_gets_everything() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        stalled, lively = (Client(hub.subscribe(EVERYTHING)) for _ in range(2))
        for _ in range(100):
            log.commit(20)
            await lively.read_to(log.head())

        assert stalled.subscription.bytes_held <= 1024 * 1024
        await stalled.read_to(log.head())

        assert stalled.positions == lively.positions == list(range(11, 2011))
        assert stalled.kinds.count("lagged") == 1
        told = next(body["data"] for body in stalled.bodies if body["type"] == "lagged")
        assert told == {"from": "10", "dropped": 257, "resume": "/ws?after=10"}
        assert stalled.kinds.index("lagged") == 1, "it is told before the first event"
        assert hub.stats().lagged == 1

    run(test)


def test_a_stalled_client_never_holds_more_than_its_buffer() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        stalled = Client(hub.subscribe(EVERYTHING))
        resumed = Client(hub.subscribe(EVERYTHING, after=0))
        await resumed.read_until(lambda me: bool(me.positions))
        for _ in range(40):
            log.commit(3, text="x" * 20_000)
            await until(lambda: hub.position == log.head())
            assert stalled.subscription.bytes_held <= 100_000
            assert resumed.subscription.bytes_held <= 100_000

        await stalled.read_to(log.head())
        await resumed.read_to(log.head())

        assert stalled.positions == list(range(11, 131))
        assert resumed.positions == list(range(1, 131))

    run(test, bytes_max=100_000)


def test_an_event_bigger_than_the_whole_buffer_is_delivered() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EVERYTHING, after=0))
        log.commit(1, text="x" * 50_000)
        log.commit(1)

        await client.read_to(12)

        assert client.positions == list(range(1, 13))

    run(test, bytes_max=10_000)


def test_a_client_sees_only_its_tenant_and_what_its_filter_lets_through() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EventQuery(tenant_id="acme", types=("a.*",)), after=10))
        for _ in range(20):
            log.commit(1, kind="b.c")
            log.commit(1, tenant="other")
            log.commit(1)

        await client.read_to(70)

        assert client.positions == list(range(13, 71, 3))

    run(test)


def test_a_changed_filter_counts_from_the_last_event_handed_over() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EventQuery(tenant_id="acme", types=("a.b",))))
        log.commit(1)
        log.commit(4, kind="c.d")
        await client.read_to(11)
        await until(lambda: hub.position == 15)
        log.commit(2)
        await until(lambda: hub.position == 17)  # two more wait in the buffer

        client.subscription.refilter(EventQuery(tenant_id="acme", types=("c.d",)))
        log.commit(1, kind="c.d")
        await client.read_to(18)

        applied = next(body["data"] for body in client.bodies if body["type"] == "filter.applied")
        assert applied == {"after": "15"}
        assert client.positions == [11, 18]

    run(test)


def test_the_position_moves_on_even_when_nothing_matches() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        subscription = hub.subscribe(EventQuery(tenant_id="nobody"))
        log.commit(5)

        await until(lambda: subscription.position == 15)

    run(test)


def test_with_nobody_live_the_hub_follows_the_head_without_reading_events() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        log.commit(1000)

        await until(lambda: hub.position == 1010)

        assert log.reads == 0

    run(test)


def test_a_hole_in_the_log_is_an_alarm_and_the_stream_goes_on() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EVERYTHING))
        log.commit(1)
        log.skip(2)
        log.commit(1)

        with capture_logs() as lines:
            await client.read_to(14)

        assert client.positions == [11, 14]
        assert hub.stats().holes == 1
        assert [
            (line["first"], line["last"]) for line in lines if line["log_level"] == "error"
        ] == [(12, 13)]

    run(test)


def test_a_log_that_goes_away_and_comes_back_costs_nobody_an_event() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        live, resumed = (
            Client(hub.subscribe(EVERYTHING)),
            Client(hub.subscribe(EVERYTHING, after=0)),
        )
        log.away = True
        log.commit(5)
        with capture_logs() as lines:
            await resumed.read_until(lambda me: "error" in me.kinds)
            await until(lambda: any(line["log_level"] == "error" for line in lines))
        log.away = False

        await live.read_to(15)
        await resumed.read_to(15)

        assert live.positions == list(range(11, 16))
        assert resumed.positions == list(range(1, 16))
        assert resumed.kinds.count("error") == 1
        assert resumed.bodies[1]["data"]["code"] == "store_unavailable"  # type: ignore[index]

    run(test)


def broken_at_first() -> Callable[[], Registry]:
    """A registry that fails for the first event that is looked at."""
    answers: Iterator[Registry | None] = chain([None], repeat(Registry([], mode="open")))

    def registry() -> Registry:
        answer = next(answers)
        if answer is None:
            raise RuntimeError("no view of this one")
        return answer

    return registry


def test_a_live_event_that_cannot_be_written_holds_up_no_other() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        client = Client(hub.subscribe(EVERYTHING))
        with capture_logs() as lines:
            log.commit(3)
            await client.read_to(13)

        assert client.positions == [12, 13]
        assert hub.stats().unsendable == 1
        assert [line["position"] for line in lines if line["log_level"] == "error"] == [11]

    run(test, registry=broken_at_first())


def test_an_old_event_that_cannot_be_written_holds_up_no_other() -> None:
    async def test(hub: Hub, _log: MemoryLog) -> None:
        client = Client(hub.subscribe(EVERYTHING, after=0))
        with capture_logs() as lines:
            await client.read_to(10)

        assert client.positions == list(range(2, 11))
        assert [line["position"] for line in lines if line["log_level"] == "error"] == [1]

    run(test, registry=broken_at_first())


def test_a_json_path_is_refused_with_a_remedy() -> None:
    async def test(hub: Hub, _log: MemoryLog) -> None:
        with pytest.raises(QueryInvalid) as caught:
            hub.subscribe(EventQuery(tenant_id="acme", json_path="$.a"))

        assert caught.value.parameter == "jsonPath"

    run(test)


def test_a_position_the_log_has_not_reached_is_refused() -> None:
    async def test(hub: Hub, _log: MemoryLog) -> None:
        await hub.admit("t", 10)
        with pytest.raises(QueryInvalid, match="expected a position up to 10, found 11"):
            await hub.admit("t", 11)

    run(test)


@pytest.mark.parametrize("somebody_is_live", [False, True])
def test_caught_up_is_not_said_ahead_of_what_was_stored_before(somebody_is_live: bool) -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        if somebody_is_live:
            hub.subscribe(EVERYTHING)
        for _ in range(20):
            log.commit(3)  # the hub sleeps and has not heard of it
            after = log.head() - 3
            await hub.admit("t", after)
            client = Client(hub.subscribe(EVERYTHING, after=after))
            await client.read_until(lambda me: "caught.up" in me.kinds)
            assert client.positions == [after + 1, after + 2, after + 3]
            hub.unsubscribe(client.subscription)

    run(test, poll_s=5.0)


def test_one_token_has_a_limited_number_of_streams() -> None:
    async def test(hub: Hub, _log: MemoryLog) -> None:
        first = hub.subscribe(EVERYTHING, token_id="t")
        hub.subscribe(EVERYTHING, token_id="t")
        with pytest.raises(AccessDenied, match="at most 2 streams"):
            await hub.admit("t", None)

        hub.unsubscribe(first)
        await hub.admit("t", None)
        await hub.admit("u", None)

    run(test, streams_max=2)


def test_a_hub_whose_log_never_answered_says_so() -> None:
    async def test() -> None:
        log = MemoryLog()
        log.away = True
        hub = hub_over(log)
        with capture_logs():
            await hub.start()
            with pytest.raises(StoreUnavailable):
                await hub.admit("t", None, wait_s=0.05)
            with pytest.raises(StoreUnavailable):
                hub.subscribe(EVERYTHING)
            await hub.stop()

    asyncio.run(test())


def test_the_streams_of_a_revoked_token_end_and_those_of_others_go_on() -> None:
    revoked: set[str] = set()

    async def test(hub: Hub, _log: MemoryLog) -> None:
        mine = [hub.subscribe(EVERYTHING, token_id="mine") for _ in range(3)]
        other = asyncio.create_task(hub.subscribe(EVERYTHING, token_id="other").over())
        revoked.add("mine")

        async with asyncio.timeout(5):
            assert [await one.over() for one in mine] == [End.REVOKED] * 3
        assert not other.done()
        other.cancel()

    run(test, still_valid=lambda token: token not in revoked, recheck_s=0.01)


def test_a_store_that_cannot_say_whether_a_token_counts_ends_nothing() -> None:
    asked = []

    def unknown(token: str) -> bool:
        asked.append(token)
        raise StoreUnavailable("away")

    async def test(hub: Hub, _log: MemoryLog) -> None:
        over = asyncio.create_task(hub.subscribe(EVERYTHING, token_id="t").over())
        with capture_logs():
            await until(lambda: len(asked) >= 2)

        assert not over.done()
        over.cancel()

    run(test, still_valid=unknown, recheck_s=0.005)


def test_stopping_ends_every_stream() -> None:
    async def test(hub: Hub, _log: MemoryLog) -> None:
        subscription = hub.subscribe(EVERYTHING)

        hub.end_all()

        assert await subscription.over() is End.STOPPING

    run(test)


def test_a_client_that_leaves_its_answers_unread_is_cut_off() -> None:
    async def test(hub: Hub, _log: MemoryLog) -> None:
        subscription = hub.subscribe(EVERYTHING)
        for _ in range(200):
            subscription.refilter(EVERYTHING)

        assert await subscription.over() is End.FLOODING

    run(test)


def test_clients_of_both_forms_get_the_same_events() -> None:
    async def test(hub: Hub, log: MemoryLog) -> None:
        native = Client(hub.subscribe(EVERYTHING))
        events = Client(hub.subscribe(EVERYTHING, form=Form.CLOUDEVENTS))
        log.commit(3)

        await native.read_to(13)
        await events.read_to(13)

        assert native.positions == events.positions
        assert [body["id"] for body in events.bodies[1:]] == ["e-11", "e-12", "e-13"]

    run(test)
