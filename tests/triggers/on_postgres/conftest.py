"""Lend a database with a table of runs, the books, and a host."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.triggers.on_postgres.support import TableLauncher, host_of, prepare_runs

from penstock.base.on_postgres import Pool, open_pool
from penstock.triggers.book.deliveries.on_postgres import DeliveryBook
from penstock.triggers.book.figures.on_postgres import FigureBook
from penstock.triggers.book.on_postgres import TriggerBook
from penstock.triggers.host.on_postgres import TriggerHost
from penstock.triggers.host.record.on_postgres import TriggerRecord


@pytest.fixture
def dsn(database: str) -> str:
    prepare_runs(database)
    return database


@pytest.fixture
def pool(dsn: str) -> Iterator[Pool]:
    with open_pool(dsn, "owner", size_max=4) as opened:
        yield opened


@pytest.fixture
def book(pool: Pool) -> TriggerBook:
    return TriggerBook(pool)


@pytest.fixture
def deliveries(pool: Pool) -> DeliveryBook:
    return DeliveryBook(pool)


@pytest.fixture
def figures(pool: Pool) -> FigureBook:
    return FigureBook(pool)


@pytest.fixture
def record(pool: Pool) -> TriggerRecord:
    return TriggerRecord(pool)


@pytest.fixture
def launcher() -> TableLauncher:
    return TableLauncher()


@pytest.fixture
def host(dsn: str, launcher: TableLauncher) -> Iterator[TriggerHost]:
    opened = host_of(dsn, launcher)
    yield opened
    opened.close()
