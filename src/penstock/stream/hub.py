"""Fan the log out: one reader per process, woken by commits, feeding every live client.

    NOTIFY or 1 s ──▶ read after position ──▶ match ──▶ write once ──▶ every subscription's buffer

The hub reads all tenants by position, so a missing position shows: the log has no gaps, and a hole
is logged as an alarm. It never waits for a client; a client that is behind reads pages of the log
on its own (`Subscription`). With nobody live the hub only follows the head.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

import structlog

from penstock.base.backoff import Backoff
from penstock.base.clock import Clock, SystemClock
from penstock.base.errors import AccessDenied, QueryInvalid, StoreUnavailable
from penstock.envelope.envelope import JsonObject, Stored
from penstock.registry.registry import Registry
from penstock.store.query import EventQuery, matches
from penstock.store.view import view
from penstock.stream import feed as feeds
from penstock.stream import frames
from penstock.stream.buffer import BYTES_MAX, EVENTS_MAX, Buffer
from penstock.stream.feed import Read
from penstock.stream.filter import refuse_json_path
from penstock.stream.frames import Form, Parcel
from penstock.stream.history import read_page
from penstock.stream.notices.notice import Notice, wanted_by
from penstock.stream.port import Announcer, LogReader, StillValid, Waker
from penstock.stream.subscription import End, Page, Subscription
from penstock.stream.vigil import close_revoked

log = structlog.get_logger(__name__)
T = TypeVar("T")

READ_EVENTS_MAX = 256
STREAMS_PER_TOKEN_MAX = 1_024
_SLICE_S = 0.004  # the longest the hub works before it lets the others run
_HISTORY_THREADS = 2  # together with the hub's own: the connections the stream may take


@dataclass(frozen=True, slots=True)
class HubStats:
    """What the hub counts about itself, for metrics and health."""

    clients: int
    position: int
    sent_events: int
    lagged: int
    holes: int
    unsendable: int


class Hub:
    """All live clients of this process, and the one task that feeds them."""

    def __init__(
        self, reader: LogReader, *, registry: Callable[[], Registry],
        still_valid: StillValid, wake: Waker | None = None, notices: Announcer | None = None,
        clock: Clock | None = None,
        events_max: int = EVENTS_MAX, bytes_max: int = BYTES_MAX, poll_s: float = 1.0,
        recheck_s: float = 2.0, streams_max: int = STREAMS_PER_TOKEN_MAX,
    ) -> None:  # fmt: skip
        self._reader = reader
        self._registry = registry
        self._still_valid = still_valid
        self._waker = wake
        self._notices = notices
        self._clock = clock or SystemClock()
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._poll_s = poll_s
        self._recheck_s = recheck_s
        self._streams_max = streams_max
        self._position: int | None = None
        self._everybody: set[Subscription] = set()
        self._attached: dict[EventQuery, set[Subscription]] = defaultdict(set)
        self._counts = {"sent_events": 0, "lagged": 0, "holes": 0, "unsendable": 0}
        self._woken = asyncio.Event()
        self._ready = asyncio.Event()
        self._moved = asyncio.Event()  # another one each time the hub has come further
        self._tasks: list[asyncio.Task[None]] = []
        self._follower = ThreadPoolExecutor(1, thread_name_prefix="stream-live")
        self._historians = ThreadPoolExecutor(_HISTORY_THREADS, thread_name_prefix="stream-history")

    async def start(self) -> None:
        """Begin to follow the log; returns at once, whether or not PostgreSQL answers yet."""
        self._tasks = [asyncio.create_task(self._follow()), asyncio.create_task(self._watch())]
        if self._waker is not None:
            self._tasks.append(asyncio.create_task(self._waker.listen(self._woken.set)))
        if self._notices is not None:
            self._tasks.append(asyncio.create_task(self._notices.listen(self.announce)))

    async def stop(self) -> None:
        """End every subscription and stop following."""
        self.end_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._follower.shutdown(wait=False, cancel_futures=True)
        self._historians.shutdown(wait=False, cancel_futures=True)

    def end_all(self) -> None:
        """Tell every client that the server stops; call it before waiting for connections."""
        for subscription in tuple(self._everybody):
            subscription.end(End.STOPPING)

    async def admit(self, token_id: str, after: int | None, *, wait_s: float = 5.0) -> None:
        """Return if a client may subscribe: the log answers, has that position, and there is room.

        A position the log has not reached is refused: its client would wait for ever.
        """
        try:
            async with asyncio.timeout(wait_s):
                await self._ready.wait()
        except TimeoutError:
            raise StoreUnavailable("expected the log to answer, found no connection") from None
        if sum(each.token_id == token_id for each in self._everybody) >= self._streams_max:
            raise AccessDenied(
                f"expected at most {self._streams_max} streams of one token at a time",
                known=True,
                remedy="Close a stream, or use another token.",
            )
        if after is None:
            return
        head = await self._on(self._historians, self._reader.head)
        if after > head:
            raise QueryInvalid(
                f"expected a position up to {head}, found {after}",
                parameter="after",
                remedy="Resume from a position of this log; leave `after` out to start now.",
            )
        await self._reach(head, wait_s)

    async def _reach(self, head: int, wait_s: float) -> None:
        """Wait for the hub to come to `head`, so that `caught.up` is not said ahead of events."""
        self._woken.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while self.position < head:
                    await self._moved.wait()

    def subscribe(
        self, query: EventQuery, *, after: int | None = None, form: Form = Form.NATIVE,
        token_id: str = "", path: str = "/ws",
    ) -> Subscription:  # fmt: skip
        """A new subscription, after `admit`; give it back with `unsubscribe`."""
        if self._position is None:
            raise StoreUnavailable("expected the position of the log, found none yet")
        if query.json_path is not None:
            raise refuse_json_path()
        subscription = Subscription(
            self, query, feeds.begin(after, self.position), form=form, token_id=token_id,
            path=path, buffer=Buffer(self._events_max, self._bytes_max),
        )  # fmt: skip
        self._everybody.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forget a subscription and everything kept for it."""
        subscription.end(End.GONE)
        self._everybody.discard(subscription)

    def announce(self, notice: Notice) -> None:
        """Tell the clients of one tenant, unless their filter is for other types."""
        for each in tuple(self._everybody):
            if wanted_by(each.query, notice):
                each.mention(frames.notice(each.form, self.now(), notice.type, notice.data))

    def stats(self) -> HubStats:
        """The counters, for /metrics/prometheus and health."""
        return HubStats(clients=len(self._everybody), position=self.position, **self._counts)

    # What subscriptions need (`subscription.Source`).

    @property
    def position(self) -> int:
        """Everything up to here was handed to the live subscriptions."""
        return self._position or 0

    def now(self) -> datetime:
        return self._clock.now()

    def attach(self, subscription: Subscription) -> None:
        self._attached[subscription.query].add(subscription)
        # The hub may have slept with nobody live; what was committed since is already due.
        self._woken.set()

    def detach(self, subscription: Subscription, *, dropped: int | None = None) -> None:
        if dropped is not None:
            self._counts["lagged"] += 1
            log.info("stream client lagged", token=subscription.token_id, dropped=dropped)
        members = self._attached.get(subscription.query)
        if members is not None:
            members.discard(subscription)
            if not members:
                del self._attached[subscription.query]

    async def read(self, query: EventQuery, form: Form, read: Read) -> Page:
        job = partial(
            read_page, self._reader, query, read, form=form, bytes_max=self._bytes_max // 2,
            view=self._view, emitted_at=self.now(),
        )  # fmt: skip
        return await self._on(self._historians, job)

    # Following the log.

    async def _follow(self) -> None:
        backoff, rng, failures = Backoff(base_s=0.1, max_s=2.0), random.SystemRandom(), 0
        while True:
            self._woken.clear()
            try:
                more = await self._advance()
                failures = 0
            except Exception:
                failures += 1
                log.exception("the live stream could not read the log", failures=failures)
                await asyncio.sleep(backoff.delay_s(failures, rng))
                continue
            if not more:
                await self._nap()

    async def _nap(self) -> None:
        # Not asyncio.wait_for, which can swallow a cancellation that comes with the wake-up.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._poll_s):
                await self._woken.wait()

    async def _advance(self) -> bool:
        """Hand out what is new; whether there may be more."""
        if self._position is None or not self._attached:
            head = await self._on(self._follower, self._reader.head)
            # Whoever joined meanwhile did so at the old position, and is owed what came after it.
            if self._position is None or not self._attached:
                self._position = max(head, self.position)
                self._ready.set()
                self._tell_moved()
            return bool(self._attached)
        rows = await self._on(
            self._follower, partial(self._reader.after, self.position, READ_EVENTS_MAX)
        )
        self._raise_alarm([stored.position for stored in rows])
        slice_ends = time.monotonic() + _SLICE_S
        for stored in rows:
            self._hand_out(stored)
            self._position = stored.position
            if time.monotonic() > slice_ends:
                await asyncio.sleep(0)
                slice_ends = time.monotonic() + _SLICE_S
        self._tell_moved()
        return len(rows) == READ_EVENTS_MAX

    def _tell_moved(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()

    def _hand_out(self, stored: Stored) -> None:
        """Give one event to all who want it; one that cannot be written holds up no other."""
        try:
            self._push(stored)
        except Exception:
            self._counts["unsendable"] += 1
            log.exception("an event could not be sent", position=stored.position)

    def _push(self, stored: Stored) -> None:
        parcel = Parcel(stored, self._view, self.now())
        tenant = stored.envelope.tenant_id
        for query, members in tuple(self._attached.items()):
            if query.tenant_id == tenant and matches(query, stored):
                self._counts["sent_events"] += len(members)
                for subscription in tuple(members):
                    subscription.push(parcel)

    def _raise_alarm(self, positions: list[int]) -> None:
        for hole in feeds.holes(self.position, positions):
            self._counts["holes"] += 1
            log.error("the log has a hole", first=hole.first, last=hole.last)

    async def _watch(self) -> None:
        await close_revoked(
            lambda: tuple(self._everybody), self._still_valid, every_s=self._recheck_s
        )

    def _view(self, stored: Stored, *, upcast: bool = True) -> JsonObject:
        return view(stored, self._registry(), upcast=upcast)

    async def _on(self, pool: ThreadPoolExecutor, job: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(pool, job)
