"""The statements of every turn find rows by their keys, however many steps and jobs there are."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from tests.workflows.on_postgres.support import Shop, step, workflow

from penstock.envelope.codec import encode
from penstock.envelope.envelope import JsonValue
from penstock.sql import query

WIDE = workflow("wide", *(step(f"s{n}") for n in range(100)))


def explained(connection: psycopg.Connection[Any], room: str, name: str, **given: object) -> str:
    text = f"EXPLAIN (ANALYZE, COSTS OFF) {query(room, name)}".encode()
    return "\n".join(str(row[0]) for row in connection.execute(text, given))


@pytest.fixture
def wide(shop: Shop) -> Shop:
    shop.define(WIDE)
    for _ in range(3):
        shop.start("wide")
    return shop


def test_no_statement_of_a_turn_reads_rows_to_throw_them_away(wide: Shop) -> None:
    with psycopg.connect(wide.dsn) as connection:
        connection.execute(query("workflows_queue", "settle_in"))
        plans = {}
        places: list[JsonValue] = [
            {"run_id": run_id, "address": address}
            for run_id, address in connection.execute("SELECT run_id, address FROM jobs")
        ]
        with connection.transaction(force_rollback=True):  # while all of them wait
            text = encode(places).decode()
            plans["drop_jobs"] = explained(connection, "workflows_engine", "drop_jobs", rows=text)
        given = {"queue": "workflow", "worker": 1, "limit": 300}
        plans["claim"] = explained(connection, "workflows_queue", "claim", **given)
        jobs = connection.execute("SELECT id, fence FROM jobs").fetchall()
        fences: list[JsonValue] = [{"id": key, "fence": fence} for key, fence in jobs]
        text = encode(fences).decode()
        plans["lock"] = explained(connection, "workflows_engine", "lock_finished", rows=text)
        plans["called_off"] = explained(connection, "workflows_queue", "called_off", worker=1)
        connection.rollback()

    assert len(jobs) == 300
    for name, plan in plans.items():
        thrown = [line for line in plan.splitlines() if "Removed by Join Filter" in line]
        assert "Seq Scan" not in plan, name
        # Asking whether a run is over passes over those that are not: one look for each.
        assert thrown == [] or name == "called_off", (name, thrown)
