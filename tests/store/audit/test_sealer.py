"""The sealer seals each event once, in any steps, and signs nothing that does not follow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from tests.store.audit.support import NOON, event, seal_all, store

from penstock.base.clock import FixedClock
from penstock.base.errors import AuditDamaged, NotSealed
from penstock.base.on_postgres import Pool, open_pool
from penstock.store.audit.check import on_postgres as check
from penstock.store.audit.checkpoint import SignerKey, read_note
from penstock.store.audit.merkle import is_consistent
from penstock.store.audit.on_disk import CheckpointFolder
from penstock.store.audit.on_postgres import AuditReader, Sealer
from penstock.store.audit.proof import check_proof, proof_wire

KEY = SignerKey(b"k" * 32)


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "owner", size_max=2) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> CheckpointFolder:
    return CheckpointFolder(tmp_path / "checkpoints")


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def sealer(pool: Pool, folder: CheckpointFolder, clock: FixedClock) -> Sealer:
    return Sealer(pool, KEY, folder, clock=clock)


def sizes(folder: CheckpointFolder) -> list[int]:
    return [read_note(note, KEY.verifier).size for _, note in folder.notes()]


def tamper(database: str, statement: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(statement.encode())


def test_what_was_stored_is_sealed_once(database: str, sealer: Sealer) -> None:
    store(database, [event(n) for n in range(10)])

    assert sealer.seal() == 10
    assert sealer.seal() == 0


def test_an_empty_log_has_nothing_to_seal(sealer: Sealer, folder: CheckpointFolder) -> None:
    assert sealer.seal() == 0
    assert folder.notes() == []


def test_a_new_sealer_goes_on_where_the_last_one_stopped(
    database: str, pool: Pool, folder: CheckpointFolder, clock: FixedClock
) -> None:
    for end in (3, 260, 300, 600):
        store(database, [event(n) for n in range(end)])
        seal_all(Sealer(pool, KEY, folder, clock=clock))
        clock.move(timedelta(minutes=2))

    assert sizes(folder) == [3, 260, 300, 600]
    assert check.verify(database, folder.notes(), KEY.verifier).damages == ()


def test_long_logs_are_sealed_in_steps(
    database: str, sealer: Sealer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.store.audit.on_postgres.SEAL_EVENTS_MAX", 100)
    store(database, [event(n) for n in range(250)])

    assert [sealer.seal(), sealer.seal(), sealer.seal(), sealer.seal()] == [100, 100, 50, 0]


def test_only_one_checkpoint_a_minute_stays_and_the_newest(
    database: str, sealer: Sealer, folder: CheckpointFolder, clock: FixedClock
) -> None:
    for n in range(1, 10):
        store(database, [event(n)])
        sealer.seal()
        clock.move(timedelta(seconds=25))

    # Signed at 0, 25, 50, 75 … seconds: each that is kept is a minute or more after the one before.
    assert sizes(folder) == [1, 4, 7, 9]


def test_another_sealer_seals_nothing_while_one_is_at_it(
    database: str, pool: Pool, sealer: Sealer
) -> None:
    store(database, [event(1)])
    with psycopg.connect(database) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (0x7365616C,))

        assert sealer.seal() == 0

    assert sealer.seal() == 1


class FullDisk(CheckpointFolder):
    """A folder that cannot be written to."""

    def keep(self, _size: int, _note: str) -> None:
        raise OSError(28, "No space left on device")


def test_a_checkpoint_that_a_crash_kept_from_its_file_is_written_later(
    database: str, pool: Pool, folder: CheckpointFolder, tmp_path: Path
) -> None:
    store(database, [event(n) for n in range(5)])
    with pytest.raises(OSError, match="No space"):
        Sealer(pool, KEY, FullDisk(tmp_path / "checkpoints")).seal()
    assert folder.notes() == []

    assert Sealer(pool, KEY, folder).seal() == 0
    assert sizes(folder) == [5]


DAMAGES = (
    (
        "UPDATE audit_seals SET leaves = substr(leaves, 33) || sha256('x')",
        "do not lead to the root",
    ),
    ("DELETE FROM audit_seals", "expected"),
    ("DELETE FROM audit_checkpoint", "which was signed|as signed"),
    ("UPDATE audit_checkpoint SET note = replace(note, '5', '6')", "not what was signed"),
    ("UPDATE head SET position = 3", "found less"),
    ("UPDATE workflow_events SET position = 9 WHERE position = 6", "position 6, found 7"),
    ("DELETE FROM workflow_events WHERE position = 8", "found less"),
    ("UPDATE workflow_events SET hash = '' WHERE position = 7", "a hash of 32 bytes"),
    ("UPDATE workflow_events SET received_at = 'infinity' WHERE position = 7", "no event can"),
)


@pytest.mark.parametrize(("statement", "says"), DAMAGES, ids=[each[0][:40] for each in DAMAGES])
def test_nothing_is_signed_over_damage(
    database: str, pool: Pool, folder: CheckpointFolder, statement: str, says: str
) -> None:
    store(database, [event(n) for n in range(5)])
    seal_all(Sealer(pool, KEY, folder))
    store(database, [event(n) for n in range(5, 8)])
    tamper(database, statement)

    with pytest.raises(AuditDamaged, match=says):
        Sealer(pool, KEY, folder).seal()
    assert sizes(folder) == [5]


def test_a_log_that_was_rolled_back_is_not_sealed_again(
    database: str, pool: Pool, folder: CheckpointFolder, clock: FixedClock
) -> None:
    sealer = Sealer(pool, KEY, folder, clock=clock)
    store(database, [event(n) for n in range(3)])
    seal_all(sealer)
    clock.move(timedelta(minutes=2))
    store(database, [event(n) for n in range(3, 6)])
    seal_all(sealer)
    tamper(database, "DELETE FROM workflow_events WHERE position > 3")
    tamper(database, "DELETE FROM event_tags WHERE position > 3")
    tamper(database, "DELETE FROM audit_seals WHERE last_position > 3")
    tamper(database, "UPDATE head SET position = 3")
    with psycopg.connect(database) as connection:
        connection.execute("UPDATE audit_checkpoint SET note = %s", (folder.notes()[0][1],))
    store(database, [event(n) for n in range(10, 20)])

    with pytest.raises(AuditDamaged, match="expected seals up to 6, as signed, found 3"):
        Sealer(pool, KEY, folder, clock=clock).seal()


def test_the_key_of_another_log_signs_nothing_here(
    database: str, pool: Pool, folder: CheckpointFolder
) -> None:
    store(database, [event(1)])
    Sealer(pool, KEY, folder).seal()
    store(database, [event(2)])

    with pytest.raises(AuditDamaged, match="not what was signed"):
        Sealer(pool, SignerKey(b"o" * 32), folder).seal()


def test_several_processes_check_parts_of_one_state(
    database: str, sealer: Sealer, folder: CheckpointFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "UNIT", 256)
    store(database, [event(n) for n in range(700)])
    seal_all(sealer)
    counted: list[int] = []
    totals: list[int] = []

    report = check.verify(
        database, folder.notes(), KEY.verifier, processes=2, begin=totals.append,
        progress=counted.append,
    )  # fmt: skip
    tamper(database, "UPDATE workflow_events SET ttl_ms = 1 WHERE position IN (650, 300)")
    damaged = check.verify(database, folder.notes(), KEY.verifier, processes=2)

    assert report.damages == ()
    assert (report.events, sum(counted), totals) == (700, 700, [700])
    assert [damage.position for damage in damaged.damages] == [300, 650]


@pytest.fixture
def reader(pool: Pool) -> AuditReader:
    return AuditReader(pool, KEY.verifier)


def test_every_event_has_a_proof_that_holds(
    database: str, sealer: Sealer, reader: AuditReader
) -> None:
    store(database, [event(n) for n in range(300)])
    seal_all(sealer)

    for n in (0, 1, 99, 255, 256, 299):
        proof = reader.proof("default", f"evt-{n}")
        assert proof is not None
        wire = proof_wire(proof)

        assert check_proof(wire, KEY.verifier).size == 300
        assert f"\tevt-{n}\t" in str(wire["body"])
        with pytest.raises(ValueError, match="another root"):
            check_proof(wire | {"body": str(wire["body"]).replace("evt", "evx")}, KEY.verifier)
        with pytest.raises(ValueError, match="another root"):
            check_proof(wire | {"receivedAtMicros": 1}, KEY.verifier)
        with pytest.raises(ValueError, match="expected a proof"):
            check_proof({"position": "1"}, KEY.verifier)


def test_an_event_has_no_proof_before_it_is_sealed(
    database: str, sealer: Sealer, reader: AuditReader
) -> None:
    store(database, [event(1)])
    with pytest.raises(NotSealed, match="found none yet"):
        reader.proof("default", "evt-1")
    seal_all(sealer)
    store(database, [event(2)])

    with pytest.raises(NotSealed, match="expected a position up to 1, found 2"):
        reader.proof("default", "evt-2")


def test_an_event_of_another_tenant_does_not_exist(
    database: str, sealer: Sealer, reader: AuditReader
) -> None:
    store(database, [event(1)])
    seal_all(sealer)

    assert reader.proof("other", "evt-1") is None


def test_a_damaged_event_has_no_proof(database: str, sealer: Sealer, reader: AuditReader) -> None:
    store(database, [event(1), event(2)])
    seal_all(sealer)
    tamper(database, "UPDATE workflow_events SET ttl_ms = 5 WHERE position = 1")
    tamper(database, "UPDATE workflow_events SET occurred_at = 'infinity' WHERE position = 2")

    with pytest.raises(AuditDamaged, match="not what was sealed"):
        reader.proof("default", "evt-1")
    with pytest.raises(AuditDamaged, match="none of ours"):
        reader.proof("default", "evt-2")


def test_each_checkpoint_is_shown_to_follow_from_the_one_before(
    database: str, sealer: Sealer, folder: CheckpointFolder, reader: AuditReader, clock: FixedClock
) -> None:
    for end in (1, 2, 250, 256, 300, 513):
        store(database, [event(n) for n in range(end)])
        seal_all(sealer)
        clock.move(timedelta(minutes=2))
    signed = [read_note(note, KEY.verifier) for _, note in folder.notes()]

    for before in signed:
        found = reader.consistency(before.size)
        newest = read_note(found.checkpoint, KEY.verifier)
        assert is_consistent(before.size, before.root, newest.size, newest.root, found.path)
    with pytest.raises(NotSealed, match="expected a size from 1 to 513"):
        reader.consistency(514)
    assert reader.checkpoint().checkpoint == signed[-1]
