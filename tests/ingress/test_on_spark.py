"""The Spark ingress settles every segment once, and heals whatever happens to its checkpoint."""

from __future__ import annotations

import json
import random
import threading

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.ingress.messages import event
from tests.ingress.support import Ingress, running, wait_for

from penstock.house import prepare_database

pytestmark = pytest.mark.spark


def lines(start: int, count: int) -> list[bytes]:
    return [json.dumps(event(n)).encode() for n in range(start, start + count)]


def test_valid_events_are_stored_and_invalid_ones_become_dead_letters(ingress: Ingress) -> None:
    ingress.write([*lines(0, 5), b"not json", json.dumps(event(6, type="no.such.type")).encode()])
    ingress.wait_until_empty()

    assert ingress.rows("SELECT position, id FROM workflow_events ORDER BY position") == [
        (n + 1, f"m-{n}") for n in range(5)
    ]
    assert ingress.rows("SELECT reason, raw FROM dead_letters ORDER BY reason")[0] == (
        "malformed_json",
        b"not json",
    )


def test_a_segment_that_comes_again_after_a_restart_is_settled_once(
    spark: SparkSession, queue: Ingress
) -> None:
    queue.write([*lines(0, 20), b"bad"])
    (segment,) = queue.waiting()
    content = segment.read_bytes()
    with running(spark, queue):
        queue.wait_until_empty()

    segment.write_bytes(content)  # as if the machine had stopped before it was deleted
    with running(spark, queue):
        queue.wait_until_empty()

    assert queue.rows("SELECT count(*) FROM workflow_events") == [(20,)]
    assert queue.rows("SELECT count FROM dead_letters") == [(1,)]
    assert queue.rows("SELECT stored, duplicates, dead FROM ledger_totals") == [(20, 0, 1)]


@pytest.mark.parametrize("how", ["delete", "empty", "scribble"])
def test_damaging_the_checkpoint_heals_without_a_human(ingress: Ingress, how: str) -> None:
    ingress.write(lines(0, 10))
    ingress.wait_until_empty()
    assert ingress.host is not None
    rng = random.Random(how)
    files = [f for f in ingress.host.checkpoint_dir.rglob("*") if f.is_file()]
    assert files, "there is a checkpoint to damage"

    for file in files:
        if how == "delete":
            file.unlink(missing_ok=True)
        elif how == "empty":
            file.write_bytes(b"")
        else:
            file.write_bytes(rng.randbytes(64))
    for round_number in range(1, 4):
        ingress.write(lines(round_number * 10, 10))
        ingress.wait_until_empty()

    assert ingress.rows(
        "SELECT count(*), count(DISTINCT id), max(position) FROM workflow_events"
    ) == [(40, 40, 40)]


def test_a_type_registered_while_it_runs_can_be_published_at_once(ingress: Ingress) -> None:
    ingress.write([json.dumps(event(1, type="weather.report.made", payload={"c": 3})).encode()])
    ingress.wait_until_empty()
    with psycopg.connect(ingress.dsn) as connection:
        connection.execute(
            "INSERT INTO event_schema_registry"
            " (event_type, version, status, schema, schema_hash, created_by, updated_by)"
            " VALUES ('weather.report.made', 1, 'active', '{}', 'h', 'test', 'test')"
        )
    ingress.write([json.dumps(event(2, type="weather.report.made", payload={"c": 3})).encode()])
    ingress.wait_until_empty()

    assert ingress.rows("SELECT reason FROM dead_letters") == [("type_unknown",)]
    assert ingress.rows("SELECT id FROM workflow_events") == [("m-2",)]


def test_a_corrupt_line_is_a_dead_letter_and_delays_nobody(
    spark: SparkSession, queue: Ingress
) -> None:
    queue.write(lines(0, 30))
    (segment,) = queue.waiting()
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0x40
    segment.write_bytes(content)

    with running(spark, queue):
        queue.wait_until_empty()

    assert queue.rows("SELECT count(*) FROM workflow_events") == [(29,)]
    assert queue.rows("SELECT reason FROM dead_letters") == [("corrupt_frame",)]


def test_a_second_ingress_waits_and_then_takes_over(spark: SparkSession, queue: Ingress) -> None:
    with running(spark, queue):
        queue.write(lines(0, 5))
        queue.wait_until_empty()
        other = Ingress(queue.settings, queue.dsn)
        from penstock.store.lease.on_postgres import IngressLease

        lease, stop = IngressLease(queue.dsn), threading.Event()
        got: list[int] = []
        waiter = threading.Thread(target=lambda: got.append(lease.hold(stop)), daemon=True)
        waiter.start()
        assert not got
    waiter.join(20)
    assert got == [2]
    lease.close()

    with running(spark, other):
        other.write(lines(5, 5))
        other.wait_until_empty()
    assert queue.rows("SELECT count(*) FROM workflow_events") == [(10,)]


def test_the_store_going_away_for_a_while_loses_nothing(
    spark: SparkSession, queue: Ingress
) -> None:
    with running(spark, queue):
        queue.write(lines(0, 10))
        queue.wait_until_empty()
        with psycopg.connect(queue.dsn, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        queue.write(lines(10, 10))
        queue.wait_until_empty()

    assert queue.rows("SELECT count(*), max(position) FROM workflow_events") == [(20, 20)]


def test_progress_is_reported_for_health_and_metrics(ingress: Ingress) -> None:
    ingress.write(lines(0, 10))
    ingress.wait_until_empty()

    def reported() -> bool:
        ((stored, batches, timed),) = ingress.rows(
            "SELECT report->>'stored', (report->>'batches')::int,"
            " (SELECT sum(n::int) FROM jsonb_array_elements_text("
            " report #> '{batchSeconds,counts}') AS n)"
            " FROM process_reports WHERE part = 'ingress'"
        ) or [(None, 0, 0)]
        return stored == "10" and batches == timed > 0

    wait_for(reported, "the report says 10 stored, and how long each batch took", within_s=10)


def test_python_is_used_while_nothing_comes_so_that_spark_does_not_end_it(
    spark: SparkSession, queue: Ingress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.ingress.on_spark._USE_EVERY_S", 0.1)
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup
    before = set(jobs(None))

    with running(spark, queue):
        wait_for(lambda: len(set(jobs(None)) - before) > 2, "Python is used again and again")
        queue.write(lines(0, 5))
        queue.wait_until_empty()

    assert queue.rows("SELECT count(*) FROM workflow_events") == [(5,)]


def test_preparing_a_database_twice_is_harmless(queue: Ingress) -> None:
    assert prepare_database(queue.settings).dsn == prepare_database(queue.settings).dsn
