"""`penstock audit` says what it checked, or exits 1 and names the first damaged position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.cli.conftest import Desk, Run
from tests.store.audit.support import event, seal_all, store

from penstock.base.on_postgres import Pool, open_pool
from penstock.store.audit.on_disk import CheckpointFolder, open_key
from penstock.store.audit.on_postgres import AuditReader, Sealer
from penstock.store.audit.proof import proof_wire

Answers = Callable[..., None]


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "owner", size_max=1) as opened:
        yield opened


@pytest.fixture
def data_dir(database: str, pool: Pool, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation with 30 sealed events and 5 that are not sealed yet."""
    folder = home / "data"
    monkeypatch.setenv("PENSTOCK_DATA_DIR", str(folder))
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    store(database, [event(n) for n in range(30)])
    seal_all(Sealer(pool, open_key(folder), CheckpointFolder(folder / "checkpoints")))
    store(database, [event(n) for n in range(30, 35)])
    return folder


def tamper(database: str, statement: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement.encode())


def test_a_log_in_order_is_verified_and_told_of(run: Run, data_dir: Path) -> None:
    ran = run("audit", "verify")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "verified"
    assert "35 rows, each with its hash and its tags" in ran.out
    assert "30 events in 1 seals" in ran.out
    assert "5 events since" in ran.out
    assert "1 signed, outside the database" in ran.out


def test_the_same_for_programs(run: Run, data_dir: Path) -> None:
    found = run("audit", "verify", "--json").json

    assert (found["ok"], found["events"], found["sealed"], found["unsealed"]) == (True, 35, 30, 5)
    assert (found["firstDamage"], found["damages"]) == (None, [])


def test_the_first_damaged_position_is_named(run: Run, data_dir: Path, database: str) -> None:
    tamper(database, "UPDATE workflow_events SET ttl_ms = 1 WHERE position IN (17, 23)")

    ran = run("audit", "verify")
    found = run("audit", "verify", "--json")

    assert ran.code == found.code == 1
    assert ran.out.splitlines()[0] == "damaged  position 17: the row does not match its own hash"
    assert ran.err == "first damage at position 17\n"
    assert (found.json["ok"], found.json["firstDamage"]) == (False, 17)


def test_a_log_that_was_rolled_back_is_found_by_the_checkpoint_outside(
    run: Run, data_dir: Path, database: str
) -> None:
    for table in ("workflow_events", "event_tags", "audit_seals", "audit_checkpoint"):
        tamper(database, f"DELETE FROM {table}")  # noqa: S608
    tamper(database, "UPDATE head SET position = 0")

    ran = run("audit", "verify")

    assert ran.code == 1
    assert ran.err == "first damage at position 1\n"


def test_without_a_checkpoint_outside_it_refuses_unless_told(run: Run, data_dir: Path) -> None:
    empty = data_dir.parent / "empty"

    refused = run("audit", "verify", "--checkpoints", str(empty))
    told = run("audit", "verify", "--checkpoints", str(empty), "--database-only")

    assert refused.code == 1
    assert "expected a signed checkpoint outside the database, found none" in refused.err
    assert told.code == 0


def test_an_auditor_elsewhere_needs_only_the_key_and_a_checkpoint(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = run("audit", "key").out.strip()
    (note,) = (data_dir / "checkpoints").glob("*.note")
    monkeypatch.setenv("PENSTOCK_DATA_DIR", str(data_dir.parent / "elsewhere"))

    assert run("audit", "verify", "--key", key, "--checkpoints", str(note)).code == 0
    assert run("audit", "verify", "--checkpoints", str(note)).code == 1, "no key here"
    assert run("audit", "verify", "--key", "nonsense").code == 2


def test_the_key_is_printed_for_tools_that_read_notes(run: Run, data_dir: Path) -> None:
    printed = run("audit", "key")

    assert printed.out == f"{open_key(data_dir).verifier}\n"
    assert run("audit", "key", "--json").json["origin"].startswith("penstock/")


def test_without_a_key_it_is_said_how_one_is_made(run: Run, home: Path) -> None:
    ran = run("audit", "key")

    assert ran.code == 1
    assert ran.err.startswith("error  setup_incomplete: expected the audit key")


def test_without_a_database_nothing_is_made(run: Run, home: Path, data_dir: Path) -> None:
    run_env = pytest.MonkeyPatch()
    run_env.delenv("PENSTOCK_DATABASE_URL")
    try:
        ran = run("audit", "verify")
    finally:
        run_env.undo()

    assert ran.code == 1
    assert "expected a database in" in ran.err
    assert not (data_dir / "postgres").exists()


def test_a_proof_is_fetched_and_checked_here(
    run: Run, desk: Desk, answers: Answers, data_dir: Path, pool: Pool
) -> None:
    found = AuditReader(pool, open_key(data_dir).verifier).proof("default", "evt-7")
    assert found is not None
    wire = proof_wire(found)
    answers("GET /v1/audit/proof/evt-7", {"data": wire})
    answers("GET /v1/audit/proof/evt-8", {"data": wire | {"receivedAtMicros": 5}})

    proven, forged = run("audit", "proof", "evt-7"), run("audit", "proof", "evt-8")

    assert proven.code == 0
    assert proven.out.splitlines()[0] == "proven  evt-7  position 8"
    assert forged.code == 1
    assert "audit_damaged: the proof does not hold" in forged.err
    assert run("audit", "proof", "evt-7", "--json").json["position"] == "8"


def test_erasing_a_subject_nobody_knows_says_so(run: Run, answers: Answers) -> None:
    done = {"subject": "5f0e", "keys": 0, "deadLetters": 0, "erasedAt": "2026-03-01T12:00:00.000Z"}
    answers("POST /admin/erasures", {"data": {"erasure": done}}, status=201)

    ran = run("erase", "alise@example.org")

    assert ran.code == 0
    assert "nothing of that subject was there" in ran.err
    assert "alise" not in ran.out + ran.err


def test_erasing_says_what_was_done_and_not_who(run: Run, desk: Desk, answers: Answers) -> None:
    done = {"subject": "5f0e", "keys": 1, "deadLetters": 2, "erasedAt": "2026-03-01T12:00:00.000Z"}
    answers("POST /admin/erasures", {"data": {"erasure": done}}, status=201)

    ran = run("erase", "alice@example.org", "--reason", "request 7")
    piped = run("erase", "-", "--json", stdin=b"bob@example.org\n")

    assert ran.out == "erased  5f0e  2026-03-01T12:00:00.000Z\n"
    assert "1 key destroyed, 2 dead letters blanked" in ran.err
    assert piped.json == done
    assert [asked.json for asked in desk.asked] == [
        {"subject": "alice@example.org", "reason": "request 7"},
        {"subject": "bob@example.org"},
    ]
