"""Put events into a log the way the product does, and seal it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson
import psycopg

from penstock.ingress.lot import Judged, Lot
from penstock.ingress.pipeline import judge
from penstock.ingress.rows import write
from penstock.ingress.verdict import Accepted, Arrival
from penstock.registry.registry import Registry
from penstock.store.audit.check.conclude import read_anchors
from penstock.store.audit.check.on_postgres import check_stretch, finish, read_facts, split
from penstock.store.audit.check.report import AuditReport
from penstock.store.audit.checkpoint import VerifierKey
from penstock.store.audit.on_postgres import Sealer, begin_checking
from penstock.store.intake.on_postgres import PostgresIntake

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
OPEN = Registry((), mode="open")


def event(number: int, **said: Any) -> dict[str, Any]:
    """An event with something in every column."""
    return {
        "id": f"evt-{number}",
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "occurredAt": f"2026-03-01T10:{number // 60 % 60:02}:{number % 60:02}.{number % 1000:03}Z",
        "payload": {"key": f"key-{number}", "version": number, "ratio": number / 7},
        "tags": {"record": f"r-{number}", "mode": "dev"},
        "correlationId": f"corr-{number % 5}",
        "causationId": f"evt-{number - 1}",
        "traceparent": f"00-{number + 1:032x}-{number + 1:016x}-01",
        "ttl": 1000 + number,
        "metadata": {"attempt": number, "note": "tab\tand \\ backslash"},
        "schemaVersion": 1,
        **said,
    }


def store(database: str, events: Iterable[dict[str, Any] | bytes], *, lot: int = 100) -> None:
    """Store events through the intake, in lots."""
    raws = [each if isinstance(each, bytes) else orjson.dumps(each) for each in events]
    intake = PostgresIntake(database)
    arrival = Arrival(NOON, "none")
    try:
        for start in range(0, len(raws), lot):
            judged = [Judged(raw, judge(raw, arrival, OPEN)) for raw in raws[start : start + lot]]
            refused = [item.verdict for item in judged if not isinstance(item.verdict, Accepted)]
            assert not refused, refused[0]
            intake.settle(Lot(writer="test", messages=write(judged)))
    finally:
        intake.close()


def seal_all(sealer: Sealer) -> int:
    """Seal until there is nothing left; how many events that were."""
    total = 0
    while sealed := sealer.seal():
        total += sealed
    return total


def verify_in(
    connection: psycopg.Connection[Any], notes: Sequence[tuple[str, str]], key: VerifierKey
) -> AuditReport:
    """Check the log as the transaction of this connection sees it."""
    begin_checking(connection)
    facts = read_facts(connection)
    anchors = read_anchors(notes, facts.note, key)
    stretches = split(facts, anchors, 1)
    findings = [check_stretch(connection, each, lambda _events: None) for each in stretches]
    return finish(connection, facts, anchors, findings)
