"""Read mailboxes and call handlers, each behind an error boundary of its own.

    read   on the publisher's thread; what must be awaited moves on to the running loop, or to one
           of its own where none is running
    aread  on the running loop

A handler that raises is counted and reported, and its mailbox is read on. Whoever holds the key of
a mailbox gives it back in every case, so that no subscriber is ever left without a reader.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextvars import Context
from dataclasses import dataclass

from penstock.envelope.envelope import Envelope
from penstock.publish.subscription import Letter, Subscription

_log = logging.getLogger("penstock.bus")


@dataclass(frozen=True, slots=True)
class Failure:
    """A handler that raised, and over which event."""

    subscription: Subscription
    event: Envelope
    error: Exception


def log_failure(failure: Failure) -> None:
    """Write the failure to the log of this process; what happens unless told otherwise."""
    _log.error(
        "handler of %s failed on event %s of type %s",
        failure.subscription.pattern,
        failure.event.id,
        failure.event.type,
        exc_info=failure.error,
    )


class Dispatcher:
    """Calls handlers and counts how that went."""

    def __init__(self, on_error: Callable[[Failure], object]) -> None:
        self.errors = 0
        self._on_error = on_error
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    def read(self, subscriptions: Iterable[Subscription]) -> None:
        """Read every mailbox that nobody reads yet until it is empty."""
        for subscription in subscriptions:
            key = subscription.claim()
            if key is not None:
                self._read(subscription, key)

    async def aread(self, subscriptions: Iterable[Subscription]) -> None:
        """As `read`, all at once; awaits the handlers, too."""
        # Tasks of their own: a publisher that is cancelled cancels nobody's handler.
        tasks = [
            self._spawn(self._aread(subscription, key), subscription, key)
            for subscription in subscriptions
            if (key := subscription.claim()) is not None
        ]
        if tasks:
            await asyncio.wait(tasks)

    async def settle(self) -> None:
        """Wait until every handler that was left to this event loop has run."""
        loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                tasks = [task for task in self._tasks if task.get_loop() is loop]
            if not tasks:
                return
            await asyncio.wait(tasks)

    def _read(self, subscription: Subscription, key: object) -> None:
        handed_over = False
        try:
            while (letter := subscription.take(key)) is not None:
                waiting = self._start(subscription, letter)
                if waiting is None:
                    continue
                if _loop_is_running():
                    begun = letter, _within(waiting, letter.context)
                    rest = self._aread(subscription, key, begun)
                    self._spawn(rest, subscription, key)
                    handed_over = True
                    return
                asyncio.run(self._finish(subscription, letter, waiting))
        finally:
            if not handed_over:
                subscription.release(key)

    async def _aread(
        self,
        subscription: Subscription,
        key: object,
        begun: tuple[Letter, Awaitable[object]] | None = None,
    ) -> None:
        """Read until empty; `begun` is a letter whose handler has been called already."""
        if begun is not None:
            await self._finish(subscription, *begun)
        while (letter := subscription.take(key)) is not None:
            waiting = self._start(subscription, letter)
            if waiting is not None:
                await self._finish(subscription, letter, waiting)

    def _start(self, subscription: Subscription, letter: Letter) -> Awaitable[object] | None:
        """Call the handler; what it wants awaited comes back."""
        try:
            result = subscription.call(letter)
        except Exception as error:  # noqa: BLE001  the boundary: it records, and others go on
            self._failed(subscription, letter, error)
            return None
        if inspect.isawaitable(result):
            return result
        self._succeeded(subscription)
        return None

    async def _finish(
        self, subscription: Subscription, letter: Letter, waiting: Awaitable[object]
    ) -> None:
        try:
            await _within(waiting, letter.context)
        except asyncio.CancelledError:
            reader = asyncio.current_task()
            if reader is not None and reader.cancelling():
                raise
            self._failed(subscription, letter, RuntimeError("the handler cancelled itself"))
        except Exception as error:  # noqa: BLE001  the boundary: it records, and others go on
            self._failed(subscription, letter, error)
        else:
            self._succeeded(subscription)

    def _succeeded(self, subscription: Subscription) -> None:
        with self._lock:
            subscription.handled += 1

    def _failed(self, subscription: Subscription, letter: Letter, error: Exception) -> None:
        with self._lock:
            subscription.errors += 1
            self.errors += 1
        try:
            self._on_error(Failure(subscription, letter.event, error))
        except Exception:  # noqa: BLE001  a reporter that fails must not fail the publisher
            _log.exception("on_error itself failed")

    def _spawn(
        self, reading: Coroutine[object, object, None], subscription: Subscription, key: object
    ) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(reading)
        with self._lock:
            self._tasks.add(task)  # the loop itself keeps only a weak reference

        def done(task: asyncio.Task[None]) -> None:
            subscription.release(key)  # a task cancelled before its first step reads nothing
            with self._lock:
                self._tasks.discard(task)

        task.add_done_callback(done)
        return task


def _loop_is_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _within(waiting: Awaitable[object], context: Context) -> asyncio.Future[object]:
    """What waits, as a task in the given context; a task that runs already stays where it is."""
    if isinstance(waiting, asyncio.Future):
        return waiting
    loop = asyncio.get_running_loop()
    if asyncio.iscoroutine(waiting):
        return loop.create_task(waiting, context=context)

    async def wait() -> object:
        return await waiting

    return loop.create_task(wait(), context=context)
