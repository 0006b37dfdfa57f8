"""Lend tests an ingress: the spool of a folder, a database, and the Spark host on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr
from pyspark.sql import SparkSession
from tests.ingress.support import Ingress, running

from penstock.base.settings import Settings


@pytest.fixture
def queue(tmp_path: Path, database: str) -> Ingress:
    """A spool and a database with nobody reading yet."""
    settings = Settings(data_dir=tmp_path, database_url=SecretStr(database), segment_age_ms=20)
    settings.spool_dir.mkdir(parents=True)
    return Ingress(settings, database)


@pytest.fixture
def ingress(spark: SparkSession, queue: Ingress) -> Iterator[Ingress]:
    """A running Spark ingress."""
    with running(spark, queue) as started:
        yield started
