"""Put lines on the queue past the door: a few batches under way, each durable before it counts.

When the queue is full the writing waits for the ingress to make room. If it has to give up, what
counts as written is surely there; a batch after it may be there too, so that going on from the last
counted line can repeat a message, never skip one.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

from penstock.base.backoff import Backoff
from penstock.base.errors import NotInProfile, QueueUnavailable
from penstock.cli.lines import Batch
from penstock.transport.port import Message, Transport

_WINDOW = 4
_PAUSE = Backoff(base_s=0.2, max_s=2.0)
_ATTEMPTS = 60


@dataclass(frozen=True, slots=True)
class Written:
    """What is durable so far."""

    messages: int = 0
    size: int = 0
    last_line: int = 0

    def plus(self, batch: Batch) -> Written:
        """The same after one more batch."""
        return Written(self.messages + len(batch.lines), self.size + batch.size, batch.last_line)


class LineWriter:
    """Writes lines of one tenant to one queue."""

    def __init__(
        self,
        queue: Transport,
        *,
        tenant_id: str,
        via: str,
        say: Callable[[str], None],
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._queue = queue
        self._tenant_id = tenant_id
        self._via = via
        self._say = say
        self._sleep = sleep

    def write(self, batches: Iterable[Batch]) -> Iterator[Written]:
        """Write every batch, in order, and say what is durable after each."""
        written, source = Written(), iter(batches)
        under_way: deque[tuple[Batch, Future[None]]] = deque()
        unreadable: NotInProfile | None = None
        more = True
        while more or under_way:
            try:
                batch = next(source, None) if more else None
            except NotInProfile as error:  # what was read before it is written all the same
                batch, unreadable = None, error
            more = batch is not None
            if batch is not None:
                under_way.append((batch, self._send(batch)))
            if under_way and (not more or len(under_way) >= _WINDOW):
                written = self._settle(written, *under_way.popleft())
                yield written
        if unreadable is not None:
            raise unreadable

    def _send(self, batch: Batch) -> Future[None]:
        now_ms = time.time_ns() // 1_000_000
        return self._queue.send(
            [Message(line, now_ms, self._tenant_id, self._via) for line in batch.lines]
        )

    def _settle(self, written: Written, batch: Batch, durable: Future[None]) -> Written:
        attempt = 0
        while True:
            try:
                durable.result()
                return written.plus(batch)
            except QueueUnavailable as error:
                attempt += 1
                if not error.disk_full or attempt >= _ATTEMPTS:
                    raise
                if attempt == 1:
                    self._say("the queue is full; waiting for the ingress to make room")
                self._sleep(_PAUSE.delay_s(attempt, random.SystemRandom()))
                durable = self._send(batch)
