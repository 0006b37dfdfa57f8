"""Make the events that benchmarks publish: about 450 bytes each, tagged and correlated."""

from __future__ import annotations

import random
from collections.abc import Iterator

from penstock.base.ids import uuid7
from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonObject

SOURCES = ("metastore.api", "metastore.worker", "timestore.ingest", "filestore.service")


def events(count: int, *, seed: int = 1) -> Iterator[JsonObject]:
    """`count` good events."""
    rng = random.Random(seed)
    for number in range(count):
        yield {
            "id": uuid7(),
            "type": "metastore.record.updated",
            "source": SOURCES[number % len(SOURCES)],
            "occurredAt": "2026-03-01T10:30:00.000Z",
            "payload": {
                "namespace": f"ns-{number % 50}",
                "key": f"record-{number}",
                "version": number % 97,
                "actor": f"user-{rng.randrange(5000)}",
                "record": {"owner": "data-team", "note": "x" * 60, "score": number / 8},
            },
            "tags": {"recordId": f"r{rng.randrange(20_000)}", "namespace": f"ns-{number % 50}"},
            "correlationId": f"req-{rng.randrange(100_000)}",
            "schemaVersion": 1,
        }


def lines(count: int, *, seed: int = 1) -> Iterator[bytes]:
    """The same as JSON."""
    for event in events(count, seed=seed):
        yield encode(event)
