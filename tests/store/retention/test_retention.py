"""Events leave the log only when they are old, sealed and archived; until then it is said why."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from tests.store.audit.support import event, seal_all, store

from penstock.base.clock import FixedClock
from penstock.base.errors import RetentionRefused
from penstock.base.on_postgres import Pool, open_pool
from penstock.store.audit.checkpoint import SignerKey
from penstock.store.audit.on_disk import CheckpointFolder
from penstock.store.audit.on_postgres import Sealer
from penstock.store.retention.archive import NoArchive
from penstock.store.retention.on_postgres import Retention
from penstock.store.retention.policy import Move, Policy, Stay, decide

NOW = datetime(2026, 3, 31, tzinfo=UTC)
MONTH = Policy(30)


def test_a_policy_without_days_keeps_everything() -> None:
    assert Policy().cutoff(NOW) is None
    assert decide(Policy(), old_up_to=9, sealed_up_to=9, archived=True) == Stay(
        "no PENSTOCK_RETENTION_DAYS is set: events stay for ever"
    )


def test_the_cutoff_is_so_many_days_ago() -> None:
    assert MONTH.cutoff(NOW) == datetime(2026, 3, 1, tzinfo=UTC)


def test_nothing_old_means_nothing_to_do() -> None:
    assert decide(MONTH, old_up_to=0, sealed_up_to=0, archived=False) == Stay(
        "no event is older than 30 days"
    )


@pytest.mark.parametrize(
    ("sealed", "archived", "says"),
    [(9, True, "expected seals up to position 10, found them up to 9"),
     (10, False, "expected an archive that has every event up to position 10, found none")],
)  # fmt: skip
def test_what_is_not_safe_elsewhere_is_refused(sealed: int, archived: bool, says: str) -> None:
    plan = decide(MONTH, old_up_to=10, sealed_up_to=sealed, archived=archived)

    assert plan == Stay(says, is_refused=True)


def test_what_is_old_sealed_and_archived_may_leave() -> None:
    assert decide(MONTH, old_up_to=10, sealed_up_to=12, archived=True) == Move(10)


def test_no_archive_has_nothing() -> None:
    assert NoArchive().has(0) is False


class Everything:
    """An archive that has everything, until it is told to lose it."""

    def __init__(self, times: int = 99) -> None:
        self.times = times

    def has(self, _up_to_position: int, /) -> bool:
        self.times -= 1
        return self.times >= 0


class Door:
    """A way out that only counts."""

    def release(self, up_to_position: int) -> int:
        return up_to_position


@pytest.fixture
def pool(database: str) -> Iterator[Pool]:
    with open_pool(database, "owner", size_max=1) as opened:
        yield opened


@pytest.fixture
def log(database: str, pool: Pool, tmp_path: Path) -> str:
    """Ten events: six received forty days before `NOW`, four received yesterday."""
    store(database, [event(n) for n in range(10)])
    with psycopg.connect(database) as connection:
        connection.execute("SET session_replication_role = replica")
        for low, high, days in ((1, 6, 40), (7, 10, 1)):
            connection.execute(
                "UPDATE workflow_events SET received_at = %s WHERE position BETWEEN %s AND %s",
                (NOW - timedelta(days=days), low, high),
            )
    seal_all(Sealer(pool, SignerKey(bytes(32)), CheckpointFolder(tmp_path)))
    return database


def count(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM workflow_events").fetchone()
    assert row is not None
    return int(row[0])


def test_the_last_old_position_is_found(log: str, pool: Pool) -> None:
    retention = Retention(pool, MONTH, archive=Everything(), clock=FixedClock(NOW))

    assert retention.plan() == Move(6)


def test_without_an_archive_nothing_leaves_and_it_is_said_why(log: str, pool: Pool) -> None:
    retention = Retention(pool, MONTH, clock=FixedClock(NOW))

    with pytest.raises(RetentionRefused, match="expected an archive that has every event up to"):
        retention.move()
    assert count(log) == 10


def test_without_a_way_out_nothing_leaves_either(log: str, pool: Pool) -> None:
    retention = Retention(pool, MONTH, archive=Everything(), clock=FixedClock(NOW))

    with pytest.raises(RetentionRefused, match="rows are never deleted"):
        retention.move()
    assert count(log) == 10


def test_the_archive_is_asked_again_right_before(log: str, pool: Pool) -> None:
    retention = Retention(
        pool, MONTH, archive=Everything(times=1), way_out=Door(), clock=FixedClock(NOW)
    )

    with pytest.raises(RetentionRefused, match="the archive no longer has"):
        retention.move()


def test_with_both_exactly_the_old_ones_are_let_out(log: str, pool: Pool) -> None:
    retention = Retention(pool, MONTH, archive=Everything(), way_out=Door(), clock=FixedClock(NOW))

    assert retention.move() == 6


def test_a_log_that_is_young_or_has_no_policy_is_left_alone(log: str, pool: Pool) -> None:
    young = Retention(pool, Policy(365), archive=Everything(), clock=FixedClock(NOW))

    assert young.move() == 0
    assert Retention(pool, Policy()).move() == 0
