"""Lend a running server to tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.api.support import Server, database_of, opened, running, settings_for

from penstock.base.on_postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
def api(
    server: EmbeddedPostgres, template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """One server for all tests of a module, which share its database."""
    folder = tmp_path_factory.mktemp("api")
    with (
        database_of(server, template) as database,
        opened(settings_for(database, folder)) as house,
        running(house, database) as found,
    ):
        yield found
