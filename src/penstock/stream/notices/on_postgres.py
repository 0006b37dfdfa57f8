"""Hear of retries that operators touched: LISTEN, on a connection of its own.

A notice that comes while the connection is away is missed: what it told of is in the log too, as
`penstock.retry.*`, so nobody who reads the log misses anything.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import psycopg
import structlog

from penstock.base.backoff import Backoff
from penstock.sql import query
from penstock.stream.notices.notice import Notice, read_notices

log = structlog.get_logger(__name__)


class Notices:
    """Listens to `penstock_triggers` and `penstock_retries`, and connects again when it must."""

    def __init__(self, dsn: str, *, backoff: Backoff | None = None) -> None:
        self._dsn = dsn
        self._backoff = backoff or Backoff(base_s=0.2, max_s=5.0)

    async def listen(self, tell: Callable[[Notice], None]) -> None:
        """Call `tell` for every notice, until cancelled."""
        rng, failures = random.SystemRandom(), 0
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(
                    self._dsn, autocommit=True, connect_timeout=5
                ) as connection:
                    await connection.execute(query("stream", "become_reader"))
                    for channel in ("listen_triggers", "listen_retries"):
                        await connection.execute(query("stream", channel))
                    failures = 0
                    async for heard in connection.notifies():
                        for notice in read_notices(heard.payload):
                            tell(notice)
            except psycopg.Error as error:
                failures += 1
                log.warning("the live stream does not hear of retries", error=str(error))
            await asyncio.sleep(self._backoff.delay_s(max(1, failures), rng))
