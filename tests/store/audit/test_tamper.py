"""Whatever a superuser does to a sealed log with the triggers off, the check finds it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeAlias

import psycopg
import pytest
from psycopg import sql
from tests.store.audit.support import NOON, event, seal_all, store, verify_in

from penstock.base.clock import FixedClock
from penstock.base.on_postgres import open_pool
from penstock.store.audit.check.report import AuditReport
from penstock.store.audit.checkpoint import SignerKey
from penstock.store.audit.entry import COLUMNS, entry_hash, read_row
from penstock.store.audit.on_disk import CheckpointFolder
from penstock.store.audit.on_postgres import Sealer, begin_checking, copy_rows

TAMPERINGS = 500
SEALS = (40, 100, 150, 256, 300)  # sizes of the log at each seal
TAIL = 320  # events 301 to 320 are not sealed yet
SEALED = SEALS[-1]

Session: TypeAlias = psycopg.Connection[Any]
# What was done, and the position that the check must name first; None when it may be vague.
Done: TypeAlias = tuple[str, int | None]


@dataclass(frozen=True)
class Log:
    """A log in five seals with a tail, and what was signed outside."""

    dsn: str
    notes: list[tuple[str, str]]
    key: SignerKey


@pytest.fixture(scope="module")
def log(shared_database: str, tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = CheckpointFolder(tmp_path_factory.mktemp("checkpoints"))
    key, clock = SignerKey(b"k" * 32), FixedClock(NOON)
    with open_pool(shared_database, "owner", size_max=1) as pool:
        sealer, at = Sealer(pool, key, folder, clock=clock), 0
        for size in SEALS:
            store(shared_database, [event(n) for n in range(at, size)], lot=30)
            seal_all(sealer)
            clock.move(timedelta(minutes=2))
            at = size
    store(shared_database, [event(n) for n in range(at, TAIL)])
    return Log(shared_database, folder.notes(), key)


@pytest.fixture
def session(log: Log) -> Iterator[Session]:
    """A superuser with the triggers off; what they do is undone afterwards."""
    with psycopg.connect(log.dsn) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.commit()
        yield connection
        connection.rollback()


def check(session: Session, log: Log) -> AuditReport:
    return verify_in(session, log.notes, log.key.verifier)


def run(session: Session, statement: str, **bound: object) -> list[tuple[Any, ...]]:
    found = session.execute(statement.encode(), bound)
    return found.fetchall() if found.description is not None else []


def one(session: Session, statement: str, **bound: object) -> Any:
    return run(session, statement, **bound)[0][0]


# Changes of one value, by the kind of its column.

TEXTS = ("tenant_id", "id", "type", "source", "correlation_id", "causation_id", "traceparent",
         "schema_hash", "severity", "severity_rule")  # fmt: skip
JSONS = ("payload", "tags", "metadata")
NUMBERS = ("ttl_ms", "schema_version")
BYTES = ("content_hash", "hash")


def other_byte(rng: random.Random, text: str) -> str:
    """The text with one of its letters or digits another one."""
    place = rng.choice([n for n, c in enumerate(text) if c.isalnum() and c.isascii()])
    kind = "0123456789" if text[place].isdigit() else "abcdefghijklmnopqrstuvwxyz"
    other = rng.choice([c for c in kind if c != text[place]])
    return text[:place] + other + text[place + 1 :]


def update(session: Session, column: str, cast: str, position: int, value: object) -> None:
    statement = sql.SQL("UPDATE workflow_events SET {} = %s::{} WHERE position = %s").format(
        sql.Identifier(column), sql.SQL(cast)
    )
    session.execute(statement, (value, position))


def value_of(session: Session, column: str, position: int) -> Any:
    statement = sql.SQL("SELECT {}::text FROM workflow_events WHERE position = %s")
    row = session.execute(statement.format(sql.Identifier(column)), (position,)).fetchone()
    assert row is not None
    return row[0]


def change_text(rng: random.Random, session: Session) -> Done:
    column, position = rng.choice(TEXTS), rng.randint(1, TAIL)
    before = value_of(session, column, position)
    after = rng.choice([other_byte(rng, before), before + "x", None]) if before else "x"
    if after is None and column not in ("correlation_id", "causation_id", "traceparent"):
        after = ""
    try:
        with session.transaction():
            update(session, column, "text", position, after)
    except psycopg.errors.UniqueViolation:  # another event has that id
        update(session, column, "text", position, f"{before}x")
    return f"{column} at {position}: {before!r} to {after!r}", position


def change_json(rng: random.Random, session: Session) -> Done:
    column, position = rng.choice(JSONS), rng.randint(1, TAIL)
    before = value_of(session, column, position)
    while True:
        after = rng.choice([other_byte(rng, before), "{}", before[:-1] + ', "zz": 1}'])
        try:
            with session.transaction():
                update(session, column, "jsonb", position, after)
        except psycopg.DataError:
            continue
        return f"{column} at {position}: {after}", position


def change_number(rng: random.Random, session: Session) -> Done:
    column, position = rng.choice(NUMBERS), rng.randint(1, TAIL)
    update(session, column, "bigint", position, rng.choice([None, 0, 7, 2**31 - 1]))
    return f"{column} at {position}", position


def change_bytes(rng: random.Random, session: Session) -> Done:
    column, position = rng.choice(BYTES), rng.randint(1, TAIL)
    value = bytearray.fromhex(value_of(session, column, position)[2:])
    value[rng.randrange(len(value))] ^= 1 << rng.randrange(8)
    update(session, column, "bytea", position, rng.choice([bytes(value), b"", bytes(value[:-1])]))
    return f"{column} at {position}", position


def change_occurred(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, TAIL)
    by = rng.choice(["1 microsecond", "-1 microsecond", "1 day", "1 hour"])
    run(session, "UPDATE workflow_events SET occurred_at = occurred_at + %(by)s::interval"
        " WHERE position = %(p)s", by=by, p=position)  # fmt: skip
    return f"occurred_at at {position} by {by}", position


def change_received(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, SEALED)
    by = rng.choice(["1 microsecond", "-1 microsecond", "1 day", "-1 year"])
    run(session, "UPDATE workflow_events SET received_at = received_at + %(by)s::interval"
        " WHERE position = %(p)s", by=by, p=position)  # fmt: skip
    return f"received_at at {position} by {by}", position


# A cunning superuser, who also works out every hash anew; only the signature is out of reach.


def rehash(session: Session, position: int) -> None:
    begin_checking(session)
    (line,) = copy_rows(session, position, position)
    update(session, "hash", "bytea", position, read_row(line).leaf)


def reseal(session: Session, position: int) -> None:
    begin_checking(session)
    (line,) = copy_rows(session, position, position)
    row = read_row(line)
    first, leaves = run(
        session, "SELECT first_position, leaves FROM audit_seals"
        " WHERE %(p)s BETWEEN first_position AND last_position", p=position,
    )[0]  # fmt: skip
    start = (position - first) * 32
    sealed = leaves[:start] + entry_hash(position, row.received_us, row.leaf) + leaves[start + 32 :]
    run(session, "UPDATE audit_seals SET leaves = %(l)s WHERE first_position = %(f)s",
        l=sealed, f=first)  # fmt: skip


def change_with_its_hash(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, SEALED)
    update(session, "payload", "jsonb", position, '{"amount": 1000000}')
    rehash(session, position)
    return f"payload and hash at {position}", position


def change_with_its_seal(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, SEALED)
    update(session, "payload", "jsonb", position, '{"amount": 1000000}')
    rehash(session, position)
    reseal(session, position)
    after = next(size for size in SEALS if position <= size)
    before = max([0, *(size for size in SEALS if size < position)])
    return f"payload, hash and seal at {position} of {before + 1} to {after}", before + 1


# Rows that go, come, or change places.


def forget(session: Session, position: int) -> None:
    run(session, "DELETE FROM workflow_events WHERE position = %(p)s", p=position)
    run(session, "DELETE FROM event_tags WHERE position = %(p)s", p=position)


def delete_row(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, TAIL)
    forget(session, position)
    return f"deleted {position}", position


def delete_and_close_up(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, SEALED)
    forget(session, position)
    for table in ("workflow_events", "event_tags"):
        run(session, f"UPDATE {table} SET position = -position WHERE position > %(p)s", p=position)  # noqa: S608
        run(session, f"UPDATE {table} SET position = -position - 1 WHERE position < 0")  # noqa: S608
    run(session, "UPDATE head SET position = position - 1")
    return f"deleted {position} and closed up", position


def swap_rows(rng: random.Random, session: Session) -> Done:
    low, high = sorted(rng.sample(range(1, SEALED + 1), 2))
    for table in ("workflow_events", "event_tags"):
        for old, new in ((low, -1), (high, low), (-1, high)):
            moved = f"UPDATE {table} SET position = %(n)s WHERE position = %(o)s"  # noqa: S608
            run(session, moved, n=new, o=old)
    return f"swapped {low} and {high}", low


def copied(session: Session, source: int, position: int) -> None:
    rest = ", ".join(column for column in COLUMNS if column not in ("position", "id"))
    statement = (
        f"INSERT INTO workflow_events (position, id, {rest})"  # noqa: S608
        f" SELECT %(p)s, 'forged', {rest} FROM workflow_events WHERE position = %(s)s"
    )
    run(session, statement, p=position, s=source)


def insert_row(rng: random.Random, session: Session) -> Done:
    position = rng.choice([0, -5, TAIL + 1, TAIL + 2, 10**15])
    copied(session, 1, position)
    return f"inserted {position}", None


def replace_row(rng: random.Random, session: Session) -> Done:
    position, source = rng.sample(range(1, SEALED + 1), 2)
    forget(session, position)
    copied(session, source, position)
    return f"put a copy of {source} at {position}", position


# Tag rows, the head, the seals themselves.


def change_tags(rng: random.Random, session: Session) -> Done:
    position = rng.randint(1, TAIL)
    tag = one(session, "SELECT tag FROM event_tags WHERE position = %(p)s LIMIT 1", p=position)
    statement = rng.choice([
        "DELETE FROM event_tags WHERE position = %(p)s AND tag = %(t)s",
        "UPDATE event_tags SET tag = %(o)s WHERE position = %(p)s AND tag = %(t)s",
        "UPDATE event_tags SET tenant_id = 'other' WHERE position = %(p)s AND tag = %(t)s",
        "INSERT INTO event_tags (tenant_id, tag, position) VALUES ('default', 'a:b', %(p)s)",
    ])  # fmt: skip
    run(session, statement, p=position, t=tag, o=other_byte(rng, tag))
    return f"{statement} at {position}", position


def stray_tag(rng: random.Random, session: Session) -> Done:
    position = rng.choice([0, -1, TAIL + 1, 10**12])
    run(session, "INSERT INTO event_tags (tenant_id, tag, position)"
        " VALUES ('default', 'a:b', %(p)s)", p=position)  # fmt: skip
    return f"a tag row at {position}", None


def change_head(rng: random.Random, session: Session) -> Done:
    change = rng.choice([
        "position = position + 1", "position = position - 1", "position = 0",
        "position = 10000000000", "position = -1", "received_at = 'epoch'",
        "received_at = '-infinity'", "received_at = 'infinity'",
        "received_at = received_at - interval '1 hour'",
    ])  # fmt: skip
    run(session, f"UPDATE head SET {change}")  # noqa: S608
    return f"head: {change}", None


def change_leaves(rng: random.Random, session: Session) -> Done:
    last = rng.choice(SEALS)
    first, leaves = run(
        session,
        "SELECT first_position, leaves FROM audit_seals WHERE last_position = %(l)s",
        l=last,
    )[0]
    place = rng.randrange(len(leaves))
    changed = bytearray(leaves)
    changed[place] ^= 1 << rng.randrange(8)
    run(session, "UPDATE audit_seals SET leaves = %(c)s WHERE last_position = %(l)s",
        c=bytes(changed), l=last)  # fmt: skip
    return f"a leaf of the seal to {last}", first + place // 32


def change_seal(rng: random.Random, session: Session) -> Done:
    statement = rng.choice([
        "DELETE FROM audit_seals WHERE last_position = %(l)s",
        "UPDATE audit_seals SET first_position = first_position + 1 WHERE last_position = %(l)s",
        "UPDATE audit_seals SET first_position = first_position - 1 WHERE last_position = %(l)s",
        "UPDATE audit_seals SET last_position = last_position + 1 WHERE last_position = %(l)s",
        "UPDATE audit_seals SET leaves = '' WHERE last_position = %(l)s",
        "UPDATE audit_seals SET leaves = substr(leaves, 33) WHERE last_position = %(l)s",
        "INSERT INTO audit_seals VALUES (1000, 999, '')",
        "INSERT INTO audit_seals VALUES (301, 301, sha256('x'))",
        "DELETE FROM audit_seals",
    ])  # fmt: skip
    run(session, statement, l=rng.choice(SEALS))
    return statement, None


def change_node(rng: random.Random, session: Session) -> Done:
    statement = rng.choice([
        "DELETE FROM audit_nodes",
        "UPDATE audit_nodes SET hash = sha256('x')",
        "UPDATE audit_nodes SET level = 2",
        "UPDATE audit_nodes SET index = 1",
        "INSERT INTO audit_nodes VALUES (1, 1, sha256('x'))",
        "INSERT INTO audit_nodes VALUES (30000, 9223372036854775807, sha256('x'))",
        "INSERT INTO audit_nodes VALUES (-1, -1, '')",
    ])  # fmt: skip
    run(session, statement)
    return statement, None


def change_note(rng: random.Random, session: Session) -> Done:
    note = one(session, "SELECT note FROM audit_checkpoint")
    kind = rng.choice(["byte", "gone", "longer"])
    if kind == "gone":
        run(session, "DELETE FROM audit_checkpoint")
    else:
        changed = other_byte(rng, note) if kind == "byte" else note + "x"
        run(session, "UPDATE audit_checkpoint SET note = %(n)s", n=changed)
    return f"note: {kind}", None


# Going back in time.


def cut(session: Session, size: int, *, seals: bool) -> None:
    run(session, "DELETE FROM workflow_events WHERE position > %(s)s", s=size)
    run(session, "DELETE FROM event_tags WHERE position > %(s)s", s=size)
    run(session, "UPDATE head SET position = %(s)s", s=size)
    if seals:
        run(session, "DELETE FROM audit_seals WHERE last_position > %(s)s", s=size)
        run(session, "DELETE FROM audit_nodes WHERE (index + 1) * 256 > %(s)s", s=size)


def truncate(rng: random.Random, session: Session) -> Done:
    size = rng.randint(0, SEALED - 1)
    seals = rng.random() < 0.5
    cut(session, size, seals=seals)
    # A seal that held the cut is gone as a whole, and so is what it said of the rest.
    last = max([0, *(end for end in SEALS if end <= size)]) if seals else size
    return f"cut after {size}, seals too: {seals}", last + 1


def roll_back(rng: random.Random, session: Session, notes: dict[int, str]) -> Done:
    size = rng.choice(SEALS[:-1])
    cut(session, size, seals=True)
    run(session, "UPDATE audit_checkpoint SET note = %(n)s", n=notes[size])
    return f"rolled back to the signed {size}", size + 1


KINDS: tuple[Callable[[random.Random, Session], Done], ...] = (
    change_text, change_text, change_json, change_json, change_number, change_bytes,
    change_occurred, change_received, change_with_its_hash, change_with_its_seal, delete_row,
    delete_and_close_up, swap_rows, insert_row, replace_row, change_tags, stray_tag, change_head,
    change_leaves, change_seal, change_node, change_note, truncate,
)  # fmt: skip


def test_a_log_that_nobody_touched_is_in_order(session: Session, log: Log) -> None:
    report = check(session, log)

    assert report.damages == ()
    assert (report.events, report.sealed, report.unsealed) == (TAIL, SEALED, TAIL - SEALED)
    assert (report.tag_rows, report.seals, report.checkpoints) == (2 * TAIL, len(SEALS), len(SEALS))


def test_five_hundred_random_tamperings_are_all_found_where_they_are(
    session: Session, log: Log
) -> None:
    rng = random.Random(20260301)
    notes = {size: note for size, (_, note) in zip(SEALS, log.notes, strict=True)}
    kinds = [*KINDS, lambda rng, session: roll_back(rng, session, notes)]
    for number in range(TAMPERINGS):
        what, where = kinds[number % len(kinds)](rng, session)

        report = check(session, log)
        session.rollback()

        assert report.damages, f"{number}: {what} was not found"
        if where is not None:
            assert report.damages[0].position == where, f"{number}: {what}: {report.damages[:3]}"


def test_what_is_in_no_seal_yet_can_be_cut_off_unseen(session: Session, log: Log) -> None:
    """The tail is a second old at most; the ledger accounts for it, the seal does not."""
    cut(session, SEALED + 5, seals=False)

    assert check(session, log).damages == ()


def test_without_the_notes_outside_a_roll_back_cannot_be_seen(session: Session, log: Log) -> None:
    """That is why they are outside."""
    cut(session, SEALS[1], seals=True)
    run(session, "UPDATE audit_checkpoint SET note = %(n)s", n=log.notes[1][1])

    assert verify_in(session, [], log.key.verifier).damages == ()
    assert check(session, log).damages[0].position == SEALS[1] + 1


def test_a_checkpoint_of_another_log_is_named(session: Session, log: Log) -> None:
    forged = SignerKey(b"x" * 32).sign(300, bytes(32), NOON)

    report = verify_in(session, [*log.notes, ("forged.note", forged)], log.key.verifier)

    (damage,) = report.damages
    assert "the checkpoint forged.note is none of ours" in str(damage)


def test_two_signed_roots_for_one_size_are_a_fork(session: Session, log: Log) -> None:
    fork = log.key.sign(150, bytes(32), NOON)

    report = verify_in(session, [*log.notes, ("fork.note", fork)], log.key.verifier)

    assert "differ" in report.damages[0].detail
