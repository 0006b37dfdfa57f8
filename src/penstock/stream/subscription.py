"""Stand between the hub and one client: what to send next, and how much may wait.

    hub ── push ──▶ buffer ─┐
    log ── read ──▶ page ───┼── take ──▶ the client's own task ──▶ socket
    say ──────────▶ said ───┘

Everything held for a client together stays within the bytes of its buffer. When the buffer
overflows it is dropped, the client is told `lagged`, and it reads the log from the last event it
was handed; so a client that stops reading costs its buffer once and nobody's time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from penstock.base.errors import PenstockError
from penstock.store.query import EventQuery
from penstock.stream import feed as feeds
from penstock.stream import frames
from penstock.stream.buffer import Buffer
from penstock.stream.feed import Feed, Mode, Read
from penstock.stream.frames import Entry, Form, Frame, Parcel

PAGE_EVENTS_MAX = 256
_SAID_MAX = 64  # answers a client may leave unread before it is cut off
_MENTIONED_MAX = 32  # notices that may wait; the room above them is for answers
_RETRY_S = 0.5


class End(StrEnum):
    """Why a subscription is over."""

    GONE = "gone"  # the client left
    REVOKED = "revoked"  # its token no longer counts
    STOPPING = "stopping"  # the server stops
    FLOODING = "flooding"  # the client talks too much
    TOO_BIG = "too_big"  # it sent a frame over the limit
    NOT_TEXT = "not_text"  # it sent a binary frame


@dataclass(frozen=True, slots=True)
class Page:
    """What one read brought: the entries that match, all of them up to `through`."""

    entries: Sequence[Entry]
    looked_at: int
    through: int
    cut: bool  # there was no room for the next event


class Source(Protocol):
    """What a subscription needs from the hub."""

    @property
    def position(self) -> int: ...
    def now(self) -> datetime: ...
    def attach(self, subscription: Subscription) -> None: ...
    def detach(self, subscription: Subscription, *, dropped: int | None = None) -> None: ...
    async def read(self, query: EventQuery, form: Form, read: Read) -> Page: ...


class Subscription:
    """One client's place in the log."""

    def __init__(
        self, source: Source, query: EventQuery, feed: Feed, *, form: Form, token_id: str,
        path: str, buffer: Buffer,
    ) -> None:  # fmt: skip
        self.query = query
        self.form = form
        self.token_id = token_id
        self._source = source
        self._feed = feed
        self._path = path
        self._buffer = buffer
        self._page: deque[Entry] = deque()
        self._page_bytes = 0
        self._said: deque[Frame] = deque()
        self._handed = feed.position
        self._limit = 32
        self._troubled = False
        self._wake = asyncio.Event()
        self._over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self.say(frames.ack(form, source.now(), feed.position))
        if feed.mode is Mode.LIVE:
            source.attach(self)

    @property
    def position(self) -> int:
        """Everything up to here was handed to the client, or was not for it."""
        if self._feed.mode is Mode.LIVE and not self._buffer:
            return max(self._source.position, self._feed.position)
        return self._handed

    @property
    def bytes_held(self) -> int:
        """What waits for this client, in bytes."""
        return self._buffer.bytes + self._page_bytes

    def push(self, parcel: Parcel) -> None:
        """Keep a matching live event, or fall back to reading the log when there is no room."""
        position = parcel.stored.position
        if position <= self._feed.position:
            return  # a page was ahead of the hub
        entry = parcel.entry(self.form)
        if self._feed.mode is Mode.LIVE and not self._buffer:
            self._handed = position - 1
        if self._buffer.push(entry, reserved=self._page_bytes):
            self._wake.set()
        else:
            self._overflow()

    def take(self) -> Sequence[Frame] | None:
        """What to send now; None when `advance` has to be awaited first."""
        if self._said:
            return (self._said.popleft(),)
        if self._page:
            entry = self._page.popleft()
            self._page_bytes -= entry.size
            self._handed = entry.position if self._page else self._feed.position
            return entry.frames
        if self._feed.mode is Mode.JOINING:
            return (self._go_live(),)
        if self._feed.mode is Mode.LIVE and self._buffer:
            entry = self._buffer.pop()
            self._handed = entry.position
            return entry.frames
        return None

    async def advance(self) -> None:
        """Wait until there may be something to take: read a page, or sleep until woken."""
        if self._said or self._page:
            return
        if self._feed.mode is Mode.LIVE:
            if not self._buffer:
                self._wake.clear()
                await self._wake.wait()
            return
        self._feed, read = feeds.plan(self._feed, self._source.position, self._limit)
        if read is None:
            self._source.attach(self)
            self.say(self._go_live())
            return
        # No await since the live position was looked at: what the hub sends from here on is kept.
        if self._feed.mode is Mode.JOINING:
            self._source.attach(self)
        await self._read(read)

    async def _read(self, read: Read) -> None:
        query = self.query
        try:
            page = await self._source.read(query, self.form, read)
        except PenstockError as error:
            await self._wait_out(error)
            return
        self._troubled = False
        if query is not self.query:
            return  # the filter changed meanwhile; the page was chosen by the old one
        before = self._feed.mode
        self._feed = feeds.turn(self._feed, read, page.through)
        if before is Mode.JOINING and self._feed.mode is not Mode.JOINING:
            self._forget_buffer()
        self._limit = feeds.next_limit(
            self._limit, page.looked_at, cut=page.cut, limit_max=PAGE_EVENTS_MAX
        )
        self._page.extend(page.entries)
        self._page_bytes = sum(entry.size for entry in page.entries)
        self._handed = read.after if self._page else self._feed.position

    async def _wait_out(self, error: PenstockError) -> None:
        """Say once that the log cannot be read, and try again a little later."""
        self._forget_buffer()
        self._feed = feeds.fall_back(self._feed.position)
        if not self._troubled:
            self._troubled = True
            self.say(frames.error(self.form, self._source.now(), error))
            return
        await asyncio.sleep(_RETRY_S)

    def refilter(self, query: EventQuery) -> None:
        """Choose by another filter from the last event handed over, without gap or repetition."""
        position = self.position
        self._forget_buffer()
        self._page.clear()
        self._page_bytes = 0
        self.query = query
        self._feed = feeds.fall_back(position)
        self._handed = position
        self.say(frames.filter_applied(self.form, self._source.now(), position))

    def say(self, frame: Frame) -> None:
        """Send a frame that is no event, ahead of the events that wait."""
        if len(self._said) >= _SAID_MAX:
            self.end(End.FLOODING)
            return
        self._said.append(frame)
        self._wake.set()

    def mention(self, frame: Frame) -> bool:
        """Send a frame that the client can do without; not to one that reads too slowly."""
        if len(self._said) >= _MENTIONED_MAX:
            return False
        self.say(frame)
        return True

    def end(self, why: End) -> None:
        """Close the subscription; the first reason counts."""
        if not self._over.done():
            self._over.set_result(why)
        self._forget_buffer()
        self._wake.set()

    async def over(self) -> End:
        """Wait until the subscription ends, and say why it did."""
        return await asyncio.shield(self._over)

    def _go_live(self) -> Frame:
        self._feed = Feed(self._feed.position, Mode.LIVE)
        self._handed = self._feed.position
        return frames.caught_up(self.form, self._source.now(), self._feed.position)

    def _overflow(self) -> None:
        dropped = self._buffer.drop() + 1
        if self._feed.mode is Mode.JOINING:
            # The client was not told that it had caught up; it goes on reading, that is all.
            self._source.detach(self)
            self._feed = feeds.fall_back(self._feed.position)
            return
        self._source.detach(self, dropped=dropped)
        self._feed = feeds.fall_back(self._handed)
        self.say(
            frames.lagged(
                self.form, self._source.now(), after=self._handed, dropped=dropped, path=self._path
            )
        )

    def _forget_buffer(self) -> None:
        self._buffer.drop()
        self._source.detach(self)
