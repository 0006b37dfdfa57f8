"""The wake-up hears every commit, and comes back when its connection is cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import psycopg
from structlog.testing import capture_logs

from penstock.base.backoff import Backoff
from penstock.stream.on_postgres import Wake


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def notify(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("SELECT pg_notify('penstock_events', '1')")


def test_a_notification_wakes_and_so_does_every_new_connection(database: str) -> None:
    async def listen() -> None:
        woken: list[None] = []
        waker = Wake(database, backoff=Backoff(base_s=0.01, max_s=0.02))
        task = asyncio.create_task(waker.listen(lambda: woken.append(None)))
        await until(lambda: len(woken) == 1)

        notify(database)
        await until(lambda: len(woken) == 2)

        with capture_logs() as lines:
            cut(database)
            await until(lambda: len(woken) == 3)
        assert [line["log_level"] for line in lines] == ["warning"]

        notify(database)
        await until(lambda: len(woken) == 4)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(listen())


def cut(database: str) -> None:
    """End every other connection to this database from the server's side."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
