"""Make messages for the queue: good ones, and every kind of bad one we know, without line ends."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

Make = Callable[[random.Random, int], bytes]


def event(number: int, **changes: object) -> dict[str, object]:
    """A good event as a dict."""
    return {
        "id": f"m-{number}",
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "payload": {"namespace": "flags", "key": f"k{number}", "version": number},
        **changes,
    }


def domain(number: int, **changes: object) -> dict[str, object]:
    """A good DomainEvent as a dict."""
    return {
        "id": f"0197a3c2-5a00-7000-8000-{number:012d}",
        "type": "WORKFLOW.STARTED",
        "timestamp": "2026-01-31T10:30:00.123Z",
        "tags": {"prId": str(number % 5)},
        "metadata": {"workflowVersion": "1.0.0", "causationId": "c:1"},
        "data": {"issueId": number, "workflowName": "w"},
        **changes,
    }


def governed(number: int, **changes: object) -> dict[str, object]:
    """A good governed event as a dict."""
    return {
        "id": f"g-{number}",
        "type": "metadata.deprecated",
        "version": "1.0.0",
        "source": "metadata-studio.api",
        "createdAt": "2025-12-01T08:00:00.000Z",
        "traceContext": {"traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}"},
        "payload": {
            "entityId": f"e{number}",
            "canonicalKey": "k",
            "deprecatedBy": {"actorId": "a", "actorType": "HUMAN"},
        },
        **changes,
    }


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


GOOD: tuple[Make, ...] = (
    lambda r, n: _json(event(n)),
    lambda r, n: _json({k: v for k, v in event(n).items() if k != "id"}),
    lambda r, n: _json(event(n, tags={"recordId": str(n % 7), "team": "ü-☃"}, ttl=5000)),
    lambda r, n: _json(event(n, occurredAt="2026-01-31T12:30:00.123456+02:00")),
    lambda r, n: _json(
        event(n, type="asset.produced", payload={"assetId": "a", "workflowRunId": "r"})
    ),
    lambda r, n: json.dumps(event(n, payload={"namespace": "n", "key": "ключ", "x": 0.1})).encode(),
    lambda r, n: (
        b'{"id":"m-%d","type":"metastore.record.updated","source":"a.b","payload":{"namespace":"n","key":"k","pi":3.14159265358979323846264338327950288}}'
        % n
    ),
    lambda r, n: _json(
        event(n, correlationId="back\\slash\tno".replace("\t", " "), causationId="c:1")
    ),
    lambda r, n: _json(
        {
            "specversion": "1.0",
            "id": f"m-{n}",
            "type": "metastore.record.updated",
            "source": "metastore.api",
            "data": {"namespace": "n", "key": "k"},
        }
    ),
    lambda r, n: _json(event(r.randrange(max(1, n)))),  # often a repeat, often a conflict
    lambda r, n: _json(event(n, payload={"namespace": "n", "key": "\\N \\. \\t \\\\ \" ' ; --"})),
    lambda r, n: _json(event(n, metadata={"level": r.choice(["warn", "ERROR", 50, "x"])})),
    lambda r, n: _json(domain(n)),
    lambda r, n: _json(governed(n)),
)
BAD: tuple[Make, ...] = (
    lambda r, n: b"",
    lambda r, n: b"not json %d" % n,
    lambda r, n: b"[]",
    lambda r, n: b"null",
    lambda r, n: b'"text"',
    lambda r, n: _json(event(n))[: r.randrange(1, 60)],
    lambda r, n: b"\xff\xfe" + _json(event(n)),
    lambda r, n: b"\xef\xbb\xbf" + _json(event(n)),
    lambda r, n: _json(event(n)) + b"}",
    lambda r, n: _json(event(n)).replace(b'"source"', b'"type"'),
    lambda r, n: b'{"a":1,"\\u0061":2}',
    lambda r, n: _json(event(n)).replace(b'"version": %d' % n, b'"version": 1e400'),
    lambda r, n: _json(event(n)).replace(b'"version": %d' % n, b'"version": NaN'),
    lambda r, n: _json(event(n)).replace(b'"version": %d' % n, b'"version": 9223372036854775808'),
    lambda r, n: b"[" * 5_000,
    lambda r, n: _json(
        event(n, payload={"namespace": "n", "key": "k", "d": json.loads("[" * 33 + "]" * 33)})
    ),
    lambda r, n: _json(event(n, payload={"namespace": "n", "key": "nul\x00"})),
    lambda r, n: _json(event(n)).replace(b"flags", b"\\ud800"),
    lambda r, n: _json(event(n, payload={"namespace": "n", "key": "x" * 300_000})),
    lambda r, n: _json(event(n, payload="x" * 400_000)),
    lambda r, n: _json(event(n, type="no.such.type")),
    lambda r, n: _json(event(n, type="Not A Type")),
    lambda r, n: _json(event(n, payload={"namespace": 1})),
    lambda r, n: _json(event(n, payload=None)),
    lambda r, n: _json(event(n, schemaVersion=99)),
    lambda r, n: _json(event(n, schemaVersion="1")),
    lambda r, n: _json(event(n, occurredAt="yesterday")),
    lambda r, n: _json(event(n, occurredAt="2026-01-31T12:30:00")),
    lambda r, n: _json(event(n, tags={"a": 1})),
    lambda r, n: _json(event(n, tags=[1])),
    lambda r, n: _json(event(n, ttl=-1)),
    lambda r, n: _json(event(n, ttl=True)),
    lambda r, n: _json(event(n, id="../../etc/passwd")),
    lambda r, n: _json(event(n, source="a\x1b[31m")),
    lambda r, n: _json(event(n, corelationId="typo")),
    lambda r, n: _json(event(n, schemaHash="0" * 64)),
    lambda r, n: _json(domain(n, id=f"m-{n}")),
    lambda r, n: _json(domain(n, metadata={"eventSource": "robot"})),
    lambda r, n: _json(governed(n, version="7.0.0")),
    lambda r, n: _json(event(n, metadata={"__apphubWorkflow": {"jobSlug": 1}})),
    lambda r, n: bytes(b for b in r.randbytes(r.randrange(1, 300)) if b not in b"\n"),
)


def message(rng: random.Random, number: int) -> bytes:
    """One message; about every third is bad, and some good ones are damaged by a byte."""
    made = rng.choice(GOOD if rng.random() < 0.65 else BAD)(rng, number)
    if made and rng.random() < 0.05:
        at = rng.randrange(len(made))
        made = made[:at] + bytes([rng.randrange(256)]) + made[at + 1 :]
    return made.replace(b"\n", b" ")
