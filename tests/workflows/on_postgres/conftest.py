"""Lend a database with workflows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.workflows.on_postgres.support import Shop
from tests.workflows.on_postgres.support import shop as open_shop


@pytest.fixture
def shop(database: str) -> Iterator[Shop]:
    with open_shop(database) as found:
        yield found
