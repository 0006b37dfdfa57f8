"""Measure how fast triggers judge: online, pass by pass, and in a back-test on two cores.

A hundred active triggers want the same busy type. Nearly every verdict is `filtered`, as in real
life: one event in two hundred launches something somewhere. Online is one process, which looks
ahead as the host does (`wanted`) and then decides; a back-test shares the triggers out over two.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from penstock.envelope.envelope import Envelope, JsonObject, Severity, Stored
from penstock.triggers.compiled import compile_trigger
from penstock.triggers.in_memory import launch_all
from penstock.triggers.inputs import PassInputs
from penstock.triggers.passes import run_pass, wanted
from penstock.triggers.past import LogInMemory, PastInMemory
from penstock.triggers.roster import Roster
from penstock.triggers.simulate import simulate_in_processes
from penstock.triggers.state import State
from penstock.triggers.trigger import Trigger, TriggerSpec

TRIGGERS = 100
_BATCH = 500
_TYPE = "metastore.record.updated"
_NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
_SOURCES = ("metastore.api", "metastore.worker", "timestore.ingest", "filestore.service")


def measure(folder: Path) -> dict[str, float]:
    """Verdicts per second and core online, and per minute in a back-test on two cores."""
    return {**measure_online(20_000), **measure_backtest(100_000)}


def measure_online(count: int) -> dict[str, float]:
    """Verdicts and launches per second of one process."""
    stored = list(events(count))
    roster = Roster([compile_trigger(each) for each in triggers()])
    past, state, verdicts, launches = PastInMemory(LogInMemory()), State(), 0, 0
    began = time.perf_counter()
    for number, start in enumerate(range(0, count, _BATCH), start=1):
        lot = stored[start : start + _BATCH]
        inputs = PassInputs(number, lot[-1].received_at, roster, events=lot)
        wanted(state, inputs, past)
        result = run_pass(state, inputs, past, launch_all)
        past.remember(result.deliveries)
        verdicts += result.verdicts
        launches += len(result.launches)
    elapsed = time.perf_counter() - began
    assert verdicts == count * TRIGGERS
    assert launches
    return {
        "triggers": TRIGGERS,
        "online_events_per_s": round(count / elapsed),
        "online_verdicts_per_s_per_core": round(verdicts / elapsed),
        "online_launches_per_s": round(launches / elapsed),
    }


def measure_backtest(count: int) -> dict[str, float]:
    """Verdicts per minute of two processes, their start included."""
    began = time.perf_counter()
    found = simulate_in_processes(triggers(), partial(events, count), processes=2)
    elapsed = time.perf_counter() - began
    verdicts = sum(each.verdicts for each in found)
    assert verdicts == count * TRIGGERS
    return {
        "backtest_events": count,
        "backtest_launches": sum(each.launches for each in found),
        "backtest_s": round(elapsed, 2),
        "backtest_verdicts_per_minute": round(verdicts / elapsed * 60),
    }


def triggers() -> list[Trigger]:
    """A hundred triggers with two comparisons each, a key, a throttle and parameters."""
    return [_trigger(number) for number in range(TRIGGERS)]


def events(count: int) -> Iterator[Stored]:
    """Record updates, 50 in a second."""
    for number in range(count):
        at = _NOON + timedelta(milliseconds=20 * number)
        payload: JsonObject = {
            "namespace": f"ns-{number % 50}",
            "key": f"record-{number}",
            "version": number % 97,
            "record": {"owner": "data-team", "note": "x" * 60, "score": number % 400},
        }
        envelope = Envelope(
            f"e{number}", _TYPE, _SOURCES[number % 4], at, payload, {"recordId": f"r{number}"},
            f"c{number}",
        )  # fmt: skip
        yield Stored(number + 1, envelope, at, Severity.INFO, "default", None, b"")


def _trigger(number: int) -> Trigger:
    spec: JsonObject = {
        "name": f"trigger {number}",
        "eventType": _TYPE if number % 10 else "metastore.record.*",
        "predicates": [
            {"type": "jsonPath", "path": "$.payload.namespace", "operator": "equals",
             "value": f"ns-{number % 50}"},
            {"type": "jsonPath", "path": "$.payload.record.score", "operator": "gte", "value": 398},
        ],
        "parameterTemplate": {"key": "{{ event.payload.key }}", "fixed": 1},
        "idempotencyKeyExpression": "{{ event.payload.key }}",
        "throttleWindowMs": 60_000,
        "throttleCount": 1_000,
    }  # fmt: skip
    return Trigger(
        f"t{number}", "default", "sync", 1, TriggerSpec.model_validate(spec), _NOON, "ada", _NOON,
        "ada",
    )  # fmt: skip
