"""Measure how long after an event is stored the first step of its workflow begins, when idle.

The whole chain in one process, as inline mode runs it: the event is committed, a trigger judges it,
a run and its job are written, a worker claims the job and starts the handler. Both instants are the
database's own: `received_at` of the event, and when the step began.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from penstock.base.settings import Settings
from penstock.envelope.codec import encode
from penstock.envelope.envelope import DEFAULT_TENANT, JsonObject
from penstock.house import House, open_house
from penstock.ingress.door import Item
from penstock.ingress.verdict import Via
from penstock.triggers.check import check_spec
from penstock.workflows.book.views import StepView

_COUNT = 200


def measure(folder: Path) -> dict[str, float]:
    """Milliseconds from stored to started, one event at a time."""
    house = open_house(Settings(data_dir=folder / "data", events_mode="inline"))
    try:
        house.act_here()
        _define(house)
        waits = [_once(house, number) for number in range(_COUNT + 10)][10:]
    finally:
        house.close()
    return {
        "stored_to_step_p50_ms": round(statistics.median(waits), 1),
        "stored_to_step_p99_ms": round(statistics.quantiles(waits, n=100)[98], 1),
    }


def _define(house: House) -> None:
    step: JsonObject = {"id": "a", "type": "function", "handler": "penstock.echo"}
    house.workflow_book.definitions.create(
        DEFAULT_TENANT, {"slug": "bench", "name": "Bench", "steps": [step]}, by="bench"
    )
    spec = check_spec({"name": "bench", "eventType": "metastore.record.updated"})
    house.trigger_book.create(spec, workflow_slug="bench", by="bench")


def _once(house: House, number: int) -> float:
    event: JsonObject = {
        "type": "metastore.record.updated",
        "source": "metastore.api",
        "payload": {"namespace": "flags", "key": f"k{number}"},
    }
    (outcome,) = house.door.publish([Item(encode(event))], tenant_id=DEFAULT_TENANT, via=Via.HTTP)
    stored = house.reader.by_id(DEFAULT_TENANT, str(outcome.id))
    assert stored is not None
    step = _step_of(house, number)
    assert step.started_at is not None
    return (step.started_at - stored.received_at).total_seconds() * 1000


def _step_of(house: House, number: int) -> StepView:
    runs = house.workflow_book.runs
    until = time.monotonic() + 20
    while time.monotonic() < until:
        found = runs.runs(DEFAULT_TENANT, limit=1)
        if found and found[0].status == "succeeded" and _count(house) == number + 1:
            return runs.steps(DEFAULT_TENANT, found[0].id)[0]
        time.sleep(0.005)
    raise AssertionError("the run did not end")


def _count(house: House) -> int:
    with house.owner.connection() as connection:
        row = connection.execute("SELECT count(*) FROM workflow_runs").fetchone()
        return 0 if row is None else int(row[0])
