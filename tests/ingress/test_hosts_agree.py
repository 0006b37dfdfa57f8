"""The inline host and the Spark host reach the same verdict on every message."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime

import psycopg
import pytest
from tests.ingress.messages import message
from tests.ingress.support import ACCEPTED_MS, Ingress

from penstock.house import load_registry
from penstock.ingress.inline import InlineHost
from penstock.ingress.pipeline import judge
from penstock.ingress.verdict import Accepted, Arrival, Via
from penstock.store.intake.on_postgres import PostgresIntake
from penstock.transport.port import Message

COUNT = 2_400
STORED = """
    SELECT type, source, tenant_id, occurred_at, payload::text, tags::text, metadata::text,
           severity, severity_rule, schema_version, correlation_id, ttl_ms,
           encode(content_hash, 'hex'),
           CASE WHEN id LIKE 'm-%' THEN id END
      FROM workflow_events"""
DEAD = """
    SELECT id, reason, detail, pointer, type, source, event_id, encode(raw, 'hex'), via, count
      FROM dead_letters"""


def everything(dsn: str) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
    with psycopg.connect(dsn) as connection:
        return (
            Counter(connection.execute(STORED.encode()).fetchall()),
            Counter(connection.execute(DEAD.encode()).fetchall()),
        )


@pytest.mark.spark
def test_the_two_hosts_agree_on_every_verdict_over_generated_good_and_hostile_messages(
    ingress: Ingress, other_database: str
) -> None:
    rng = random.Random(20260301)
    lines = [message(rng, number) for number in range(COUNT)]
    inline = InlineHost(
        PostgresIntake(other_database), lambda: load_registry(ingress.dsn, "strict")
    )

    ingress.write(lines)
    ingress.wait_until_empty()
    inline.send([Message(line, ACCEPTED_MS, "-", "queue") for line in lines]).result(60)
    inline.close()

    on_spark, in_line = everything(ingress.dsn), everything(other_database)
    assert on_spark == in_line
    assert sum(on_spark[0].values()) > COUNT / 3
    assert len({row[1] for row in on_spark[1]}) >= 12, "the corpus reaches most reasons"


def test_the_same_message_always_gets_the_same_verdict(database: str) -> None:
    from penstock.catalog.vocabularies import ALL
    from penstock.registry.book import RegistryBook
    from penstock.registry.in_memory import InMemoryRegistryStore

    book = RegistryBook(InMemoryRegistryStore(), mode="strict")
    book.declare(ALL)
    rng = random.Random(7)
    arrival = Arrival(datetime(2026, 3, 1, tzinfo=UTC), "fallback", Via.QUEUE)
    lines = [message(rng, number) for number in range(3_000)]

    first = [judge(line, arrival, book.current()) for line in lines]
    again = [judge(line, arrival, book.current()) for line in lines]

    assert first == again
    assert 0.3 < sum(isinstance(v, Accepted) for v in first) / len(first) < 0.8
