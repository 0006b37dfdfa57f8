"""Parts leave word in PostgreSQL, and readiness is told from it, quickly and without hammering."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from penstock.base.errors import StoreUnavailable
from penstock.base.on_postgres import Pool, open_pool
from penstock.health.on_disk import is_writable
from penstock.health.on_postgres import HealthReader, ReportBook
from penstock.store.ledger.account import LedgerReport

LEDGER = LedgerReport(0, 0, 0, 0, 0, 0, 0, [])


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "penstock_ingest", size_max=2) as opened:
        yield opened


def test_only_the_latest_word_of_a_part_counts(pool: Pool) -> None:
    book = ReportBook(pool)
    book.write("ingress", {"pid": 1, "batches": 1})
    book.write("ingress", {"pid": 2})
    book.write("worker", {"pid": 3})

    parts = HealthReader(pool).parts()

    assert {name: part.report for name, part in parts.items()} == {
        "ingress": {"pid": 2},
        "worker": {"pid": 3},
    }
    assert parts["ingress"].age_s < 60


def test_a_word_that_cannot_be_left_is_an_error_of_ours(pool: Pool) -> None:
    pool.close()

    with pytest.raises(StoreUnavailable):
        ReportBook(pool).write("ingress", {})


def test_dead_letters_that_were_let_in_again_are_not_counted(pool: Pool, database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO dead_letters (id, tenant_id, reason, detail, raw, via, first_seen_at,"
            " last_seen_at, redriven_at) SELECT n::text, 'default', 'type_unknown', '', '', 'http',"
            " now(), now(), CASE WHEN n > 2 THEN now() END FROM generate_series(1, 5) n"
        )

    facts = HealthReader(pool).facts(LEDGER, mode="inline", at=datetime.now(UTC))

    assert facts.dead_letters == {"type_unknown": 2}


def test_ready_once_the_ingress_has_spoken(pool: Pool) -> None:
    assert HealthReader(pool).readiness("spool").parts["ingress"] == "not started"

    ReportBook(pool).write("ingress", {})

    assert HealthReader(pool).readiness("spool").ready


def test_an_ingress_silent_for_longer_than_15_seconds_is_not_ready(
    pool: Pool, database: str
) -> None:
    ReportBook(pool).write("ingress", {})
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE process_reports SET reported_at = now() - interval '16 s'")

    assert HealthReader(pool).readiness("spool").parts["ingress"] == "silent"


def test_not_ready_while_the_spool_cannot_be_written(pool: Pool) -> None:
    ReportBook(pool).write("ingress", {})

    found = HealthReader(pool, writable=lambda: False).readiness("spool")

    assert (found.ready, found.parts["spool"]) == (False, "not writable")


def test_many_who_ask_at_once_cost_one_look(pool: Pool) -> None:
    looks: list[int] = []
    reader = HealthReader(pool, writable=lambda: looks.append(1) is None)

    for _ in range(50):
        reader.readiness("inline")

    assert len(looks) < 5


def test_while_one_looks_the_others_hear_what_was_seen_before(pool: Pool) -> None:
    looking, go_on = threading.Event(), threading.Event()
    slow = [False]

    def writable() -> bool:
        if slow[0]:
            looking.set()
            assert go_on.wait(10)
        return True

    reader = HealthReader(pool, writable=writable)
    first = reader.readiness("inline")
    reader._looked = (0.0, first)
    slow[0] = True
    one = threading.Thread(target=reader.readiness, args=("inline",))
    one.start()
    assert looking.wait(10)

    assert reader.readiness("inline") is first

    go_on.set()
    one.join(10)


def test_no_answer_from_postgresql_is_not_ready_and_no_error(pool: Pool) -> None:
    pool.close()

    found = HealthReader(pool).readiness("spool")

    assert not found.ready
    assert found.parts == {"postgres": "no answer", "spool": "ok", "ingress": "unknown"}


def test_a_folder_is_tried_by_writing_and_left_as_it_was(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "spool"

    assert is_writable(folder)
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_a_file_is_not_writable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert not is_writable(tmp_path / "file")
