"""A subscriber sees every event once and in order, however reading and committing interleave."""

from __future__ import annotations

import random

import pytest

from penstock.stream.feed import (
    Feed,
    Hole,
    Mode,
    Read,
    begin,
    fall_back,
    holes,
    next_limit,
    plan,
    turn,
)


def test_a_subscriber_without_a_position_is_live_from_now_on() -> None:
    assert begin(None, live=7) == Feed(7, Mode.LIVE)


def test_a_subscriber_with_a_position_reads_history_first() -> None:
    assert begin(3, live=7) == Feed(3, Mode.HISTORY)


def test_nothing_is_read_when_the_live_position_is_reached() -> None:
    assert plan(Feed(7, Mode.HISTORY), live=7, limit=10) == (Feed(7, Mode.LIVE), None)


def test_a_subscriber_ahead_of_the_hub_keeps_its_own_position() -> None:
    assert plan(Feed(9, Mode.HISTORY), live=7, limit=10) == (Feed(9, Mode.LIVE), None)


def test_a_far_subscriber_reads_without_joining() -> None:
    feed, read = plan(Feed(0, Mode.HISTORY), live=100, limit=10)

    assert feed.mode is Mode.HISTORY
    assert read == Read(after=0, limit=10, until=100)


@pytest.mark.parametrize("distance", [1, 9, 10])
def test_a_subscriber_joins_when_one_page_surely_reaches_the_live_position(distance: int) -> None:
    feed, read = plan(Feed(100 - distance, Mode.HISTORY), live=100, limit=10)

    assert feed.mode is Mode.JOINING
    assert read is not None
    assert read.until == 100


def test_a_page_that_stops_short_moves_to_where_it_stopped() -> None:
    feed = turn(Feed(0, Mode.HISTORY), Read(0, 3, 100), through=11)

    assert feed == Feed(11, Mode.HISTORY)


@pytest.mark.parametrize("through", [100, 107])
def test_a_page_moves_no_further_than_the_live_position_it_was_read_under(through: int) -> None:
    feed = turn(Feed(0, Mode.JOINING), Read(0, 3, 100), through)

    assert feed == Feed(100, Mode.JOINING)


def test_a_last_page_that_stops_short_leaves_the_hub() -> None:
    feed = turn(Feed(0, Mode.JOINING), Read(0, 3, 3), through=1)

    assert feed == Feed(1, Mode.HISTORY)


def test_the_page_limit_shrinks_to_what_fitted_and_grows_back() -> None:
    assert next_limit(64, 5, cut=True, limit_max=256) == 5
    assert next_limit(64, 64, cut=False, limit_max=256) == 128
    assert next_limit(200, 200, cut=False, limit_max=256) == 256
    assert next_limit(64, 0, cut=True, limit_max=256) == 1


def test_a_run_without_missing_positions_has_no_hole() -> None:
    assert holes(4, [5, 6, 7]) == []
    assert holes(4, []) == []


def test_a_missing_position_is_a_hole() -> None:
    assert holes(4, [6, 7, 10]) == [Hole(5, 5), Hole(8, 9)]


class Walk:
    """One subscriber on a growing log, every step chosen at random; what it is sent is kept."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log = [self.rng.random() < 0.6 for _ in range(self.rng.randrange(60))]  # ours or not
        self.hub = self.rng.randrange(len(self.log) + 1)
        self.start = self.rng.choice([None, *range(len(self.log) + 1)])
        self.feed = begin(self.start, self.hub)
        self.first = self.feed.position
        self.attached = self.feed.mode is Mode.LIVE
        self.handed = self.first
        self.buffer: list[int] = []
        self.sent: list[int] = []

    def commit(self) -> None:
        self.log.extend(self.rng.random() < 0.6 for _ in range(self.rng.randrange(1, 9)))

    def hub_step(self) -> None:
        for position in range(self.hub + 1, min(len(self.log), self.hub + 5) + 1):
            if self.attached and self.log[position - 1] and position > self.feed.position:
                self._push(position)
            self.hub = position

    def _push(self, position: int) -> None:
        if self.feed.mode is Mode.LIVE and not self.buffer:
            self.handed = position - 1
        if len(self.buffer) < 3:
            self.buffer.append(position)
            return
        self.buffer.clear()
        self.attached = False
        joining = self.feed.mode is Mode.JOINING
        self.feed = fall_back(self.feed.position if joining else self.handed)

    def client_step(self) -> None:
        if self.feed.mode is Mode.LIVE:
            if self.buffer:
                self.handed = self.buffer.pop(0)
                self.sent.append(self.handed)
            return
        self.feed, read = plan(self.feed, self.hub, self.rng.randrange(1, 7))
        if read is None:
            self.attached = True
            return
        self.attached = self.feed.mode is Mode.JOINING
        self._interfere()  # the log grows and the hub moves while the page is read
        rows = [p for p in range(read.after + 1, read.until + 1) if self.log[p - 1]]
        # A page may be full, find no room, or look at a part of the log only.
        kept = rows[: self.rng.choice([read.limit, read.limit, self.rng.randrange(1, 4)])]
        ends = rows[len(kept)] - 1 if len(kept) < len(rows) else read.until
        least = kept[-1] if kept else read.after
        through = self.rng.choice([ends, ends, self.rng.randint(least, ends)])
        self._interfere()
        self.feed = turn(self.feed, read, through)
        if self.feed.mode is not Mode.JOINING:
            self.attached = False
            self.buffer.clear()
        self.sent.extend(kept)
        if self.feed.mode is Mode.JOINING:
            self.handed = self.feed.position
            self.feed = Feed(self.feed.position, Mode.LIVE)

    def _interfere(self) -> None:
        for step in self.rng.sample([self.commit, self.hub_step, self.hub_step], 2):
            step()

    def finish(self) -> None:
        for _ in range(10_000):
            if self.hub == len(self.log) and self.feed.mode is Mode.LIVE and not self.buffer:
                return
            self.hub_step()
            for _ in range(8):
                self.settle()
        raise AssertionError("the subscriber never caught up")

    def settle(self) -> None:
        commit, self.commit = self.commit, lambda: None  # type: ignore[method-assign]
        self.client_step()
        self.commit = commit  # type: ignore[method-assign]


@pytest.mark.parametrize("block", range(20))
def test_random_walks_end_with_every_event_sent_once_in_order(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        walk = Walk(seed)
        for _ in range(walk.rng.randrange(10, 80)):
            walk.rng.choice([walk.commit, walk.hub_step, walk.client_step, walk.client_step])()
        walk.finish()

        expected = [p for p in range(walk.first + 1, len(walk.log) + 1) if walk.log[p - 1]]
        assert walk.sent == expected, seed
