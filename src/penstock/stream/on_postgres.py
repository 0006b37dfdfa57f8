"""Wake the live stream when something is committed: LISTEN on a connection of its own.

A notification is a hint. The hub reads by position and looks by itself every second, so a broken
connection makes the stream slower for a moment, never wrong.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg
import structlog

from penstock.base.backoff import Backoff
from penstock.sql import query

log = structlog.get_logger(__name__)


class Wake:
    """Listens to `penstock_events`, and connects again for as long as it takes."""

    def __init__(self, dsn: str, *, backoff: Backoff | None = None) -> None:
        self._dsn = dsn
        self._backoff = backoff or Backoff(base_s=0.2, max_s=5.0)

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` for every notification, and once after each connect; until cancelled."""
        rng, failures = random.SystemRandom(), 0
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._dsn, autocommit=True, connect_timeout=5
                ) as connection:
                    await connection.execute(query("stream", "become_reader"))
                    await connection.execute(query("stream", "listen"))
                    failures = 0
                    wake()  # whatever was committed while nobody listened
                    async for _ in connection.notifies():
                        wake()
            except psycopg.Error as error:
                failures += 1
                log.warning("the live stream lost its wake-up; polling", error=str(error))
            await asyncio.sleep(self._backoff.delay_s(max(1, failures), rng))
