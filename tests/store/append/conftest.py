"""Lend stores that append, one of each kind, and a coordinator that sends nobody in halves."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.store.append.support import in_memory, on_postgres

from penstock.store.append import coordinator as coordinator_module
from penstock.store.append.appends import Appends, EventStore


@pytest.fixture(params=["in memory", "on postgres"])
def appends(request: pytest.FixtureRequest) -> Iterator[Appends]:
    """Appends to either log; both must behave alike."""
    if request.param == "in memory":
        with in_memory() as found:
            yield found
    else:
        with on_postgres(request.getfixturevalue("database")) as found:
            yield found


@pytest.fixture
def store(appends: Appends) -> EventStore:
    return appends.of("acme")


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telling callers takes no time, so nobody goes in halves."""
    monkeypatch.setattr(coordinator_module, "_TELLING_S", 0.0)
