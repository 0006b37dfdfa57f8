"""PostgreSQL summarises the same events that a page would show."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.store.support import NOON, load, load_many, stored

from penstock.base.clock import FixedClock
from penstock.base.errors import QueryInvalid, QueryTooSlow, StoreUnavailable
from penstock.base.on_postgres import Pool, open_pool
from penstock.envelope.envelope import Severity, Stored
from penstock.explorer.facets import count_facets
from penstock.explorer.histogram import fill, rule
from penstock.explorer.on_postgres import ExplorerReader
from penstock.store.query import EventQuery, matches

KEYS = ("type", "source", "severity", "tag", "tag.user", "tag.mode", "tag.nothing")
NOW = NOON + timedelta(minutes=30)
_rng = random.Random(7)
EVENTS = [
    stored(
        n,
        tenant_id="other" if n % 5 == 0 else "acme",
        type=_rng.choice(["a.b", "a.c", "b.x.y"]),
        source=_rng.choice(["s1", "s2"]),
        occurred_at=NOON + timedelta(milliseconds=_rng.randrange(-7_200_000, 7_200_000)),
        tags={"user": f"u{_rng.randrange(9)}"} | ({"mode": "m"} if n % 2 else {}),
        correlation_id=f"req-{n % 11}",
        payload={"n": n},
        severity=_rng.choice(list(Severity)),
    )
    for n in range(1, 200)
]
FILTERS: list[dict[str, Any]] = [
    {},
    {"types": ("a.*",)},
    {"types": ("a.b", "b.**")},
    {"sources": ("s1",)},
    {"correlation_id": "req-3"},
    {"tags": (("user", "u1"),)},
    {"tags": (("user", "u1"), ("mode", "m"))},
    {"severities": (Severity.ERROR, Severity.CRITICAL)},
    {"occurred_from": NOON - timedelta(minutes=5), "occurred_to": NOON + timedelta(minutes=5)},
    {"types": ("nothing.*",)},
]


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "penstock_reader", size_max=2, timeout_ms=2_000) as opened:
        yield opened


@pytest.fixture
def explorer(database: str, pool: Pool) -> ExplorerReader:
    load(database, EVENTS)
    return ExplorerReader(pool, clock=FixedClock(NOW))


def found(query: EventQuery) -> list[Stored]:
    return [event for event in reversed(EVENTS) if matches(query, event)]


def test_facets_are_those_of_the_specification(explorer: ExplorerReader) -> None:
    for said, limit in itertools.product(FILTERS, (1, 4, 100)):
        query = EventQuery("acme", **said)

        facets = explorer.facets(query, keys=KEYS, limit=limit)

        assert facets == count_facets(found(query), KEYS, limit)


def test_a_sample_is_the_newest_matches(pool: Pool, explorer: ExplorerReader) -> None:
    small = ExplorerReader(pool, sample_max=10)

    for said in FILTERS:
        query = EventQuery("acme", **said)
        assert small.facets(query, keys=KEYS) == count_facets(found(query), KEYS, 20, sample_max=10)


def test_histograms_count_every_match_once(explorer: ExplorerReader) -> None:
    for said, buckets in itertools.product(FILTERS, (1, 7, 200)):
        query = EventQuery("acme", **said)
        first = query.occurred_from or NOW - timedelta(hours=1)
        last = query.occurred_to or NOW
        inside = replace(query, occurred_from=first, occurred_to=last)
        ruler = rule(first, last, buckets)
        counted = itertools.groupby(
            sorted(
                (
                    ruler.start + (e.envelope.occurred_at - first) // ruler.step * ruler.step,
                    e.severity,
                )
                for e in found(inside)
            )
        )

        histogram = explorer.histogram(query, buckets=buckets)

        assert histogram == fill(ruler, [(*key, len(list(same))) for key, same in counted])


def test_a_json_path_narrows_a_summary_too(explorer: ExplorerReader) -> None:
    query = EventQuery("acme", json_path="$.payload.n <= 4")

    assert explorer.facets(query).sampled == 4
    everywhen = replace(query, occurred_from=NOON - timedelta(days=1))
    everywhen = replace(everywhen, occurred_to=NOON + timedelta(days=1))
    assert sum(bucket.events for bucket in explorer.histogram(everywhen)) == 4
    with pytest.raises(QueryInvalid):
        explorer.facets(EventQuery("acme", json_path="$.("))
    with pytest.raises(QueryInvalid):
        explorer.histogram(EventQuery("acme", json_path="$.("))


def test_another_tenant_counts_for_nothing(explorer: ExplorerReader) -> None:
    nobody = EventQuery("nobody")

    assert explorer.facets(nobody, keys=KEYS) == count_facets([], KEYS, 20)
    assert sum(bucket.events for bucket in explorer.histogram(nobody)) == 0


def test_a_key_without_a_facet_is_refused(explorer: ExplorerReader) -> None:
    with pytest.raises(QueryInvalid):
        explorer.facets(EventQuery("acme"), keys=("payload",))


def test_a_summary_that_runs_long_is_stopped(database: str) -> None:
    load_many(database, MANY)
    with open_pool(database, "penstock_reader", size_max=1, timeout_ms=15) as pool:
        explorer = ExplorerReader(pool, clock=FixedClock(NOW))
        long_ago = EventQuery("acme", occurred_from=NOON - timedelta(days=9))

        with pytest.raises(QueryTooSlow):
            explorer.facets(EventQuery("acme"))
        with pytest.raises(QueryTooSlow):
            explorer.histogram(long_ago)
    with pytest.raises(StoreUnavailable):
        explorer.facets(EventQuery("acme"))


MANY = """
INSERT INTO workflow_events (position, tenant_id, id, type, source, occurred_at, severity,
                             severity_rule, content_hash, hash)
SELECT n, 'acme', 'e' || n, 'a.b', 's' || n % 7, timestamptz '2026-03-01Z' + n * interval '0.1 s',
       'info', 'default', '', ''
  FROM generate_series(1, 60000) AS n
"""
