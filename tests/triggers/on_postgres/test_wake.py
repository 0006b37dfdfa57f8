"""Whoever sleeps is woken by news, by a nudge, or when the time is up; a lost line is no harm."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from tests.triggers.on_postgres.support import await_that

from penstock.triggers.wake.on_postgres import Wake


@pytest.fixture
def wake(database: str) -> Iterator[Wake]:
    opened = Wake(database)
    opened.wait(0)  # the first sleep only begins to listen
    yield opened
    opened.close()


def slept(wake: Wake, timeout_s: float) -> float:
    begun = time.monotonic()
    wake.wait(timeout_s)
    return time.monotonic() - begun


@pytest.mark.parametrize("channel", ["penstock_events", "penstock_triggers", "penstock_run_ends"])
def test_news_end_a_sleep(wake: Wake, database: str, channel: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        for _ in range(3):
            connection.execute("SELECT pg_notify(%s, '')", (channel,))

    assert slept(wake, 20) < 10
    await_that(lambda: slept(wake, 0.05) >= 0.04)  # then all of them are heard


def test_a_nudge_from_another_thread_ends_a_sleep(wake: Wake) -> None:
    threading.Timer(0.05, wake.nudge).start()

    assert slept(wake, 20) < 10


def test_a_sleep_ends_when_the_time_is_up(wake: Wake) -> None:
    assert 0.04 <= slept(wake, 0.05) < 10


def test_a_line_that_was_cut_is_opened_again(wake: Wake, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert slept(wake, 20) < 10  # it hears that the line is dead

        def is_heard() -> bool:
            connection.execute("SELECT pg_notify('penstock_events', '')")
            return slept(wake, 1) < 0.9

        await_that(is_heard)


def test_a_server_that_is_away_is_waited_for_without_haste() -> None:
    wake = Wake("postgresql://nobody@/nothing?host=/nowhere")

    assert slept(wake, 0.1) >= 0.09
    wake.close()
