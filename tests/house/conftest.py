"""Lend tests the whole product, started once as a user starts it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.prove.product import Product


@pytest.fixture(scope="session")
def product() -> Iterator[Product]:
    """`penstock up` on an embedded PostgreSQL and a real Spark ingress."""
    # Not below pytest's own folder: root's PostgreSQL runs as another user, who may not enter it.
    with tempfile.TemporaryDirectory(prefix="penstock-house-") as folder:
        started = Product(Path(folder))
        try:
            started.start()
            yield started
            assert started.stop() == 0, started.talk()
        finally:
            started.end()
