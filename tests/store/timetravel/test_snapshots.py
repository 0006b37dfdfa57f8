"""Snapshots change how fast an answer comes and never what it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.support import load, stored
from tests.store.timetravel.support import ISSUE, build, told, travel_in, travel_over, value

from penstock.base.on_postgres import Pool, open_pool
from penstock.envelope.codec import canonical
from penstock.envelope.envelope import JsonObject, Stored
from penstock.store.timetravel.boundary import boundary
from penstock.store.timetravel.diff import apply, same
from penstock.store.timetravel.in_memory import HistoryInMemory, SnapshotsInMemory
from penstock.store.timetravel.on_postgres import PostgresSnapshots
from penstock.store.timetravel.reducer import Reducer, reducer
from penstock.store.timetravel.snapshot import SnapshotKey, Snapshots
from penstock.store.timetravel.state import State

KEYS = ("a", "b", "ü", "a/b", "")
payloads = st.dictionaries(
    st.sampled_from(KEYS),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.text("aß\n'\"\\", max_size=4)
        | st.floats(-1e6, 1e6, width=32).filter(lambda f: f != 0),
        lambda inner: st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)  # fmt: skip
_tenants = itertools.count(1)
_positions = itertools.count(1)


@pytest.fixture(scope="module")
def shared_writer(shared_database: str) -> Iterator[Pool]:
    with open_pool(shared_database, "penstock_ingest", size_max=2) as pool:
        yield pool


@pytest.fixture
def in_postgres(reader_pool: Pool, all_pool: Pool) -> PostgresSnapshots:
    return PostgresSnapshots(reader_pool, all_pool)


@pytest.fixture(params=["memory", "postgres"])
def snapshots(request: pytest.FixtureRequest) -> Snapshots:
    """The twin and the real one, held to the same tests."""
    if request.param == "memory":
        return SnapshotsInMemory()
    found: Snapshots = request.getfixturevalue("in_postgres")
    return found


@settings(max_examples=40, deadline=None)
@given(said=st.lists(payloads, min_size=1, max_size=25), data=st.data())
def test_a_state_by_snapshots_is_the_state_folded_from_zero_is_that_of_the_twin(
    shared_database: str, shared_pool: Pool, shared_writer: Pool, said: list[Any], data: Any
) -> None:
    tenant = f"tenant-{next(_tenants)}"
    events = [
        stored(next(_positions), payload=payload, tenant_id=tenant, tags={"issueId": "42"})
        for payload in said
    ]
    load(shared_database, events)
    where = boundary(tenant, [("issueId", "42")])
    # Snapshots after every other event, taken by questions about moments in any order.
    kept = travel_in(shared_pool, shared_writer, every=2)
    kept._history.walk = _in_twos(kept._history.walk)  # type: ignore[method-assign]
    zero = travel_in(shared_pool, None)
    twin = travel_over(events)
    moments = [event.position for event in events] + [events[0].position - 1]

    for position in data.draw(st.permutations(moments)):
        by_snapshots = value(kept, where, as_of=position)
        assert canonical(by_snapshots) == canonical(value(zero, where, as_of=position))
        assert canonical(by_snapshots) == canonical(value(twin, where, as_of=position))
    first, last = sorted(data.draw(st.tuples(*[st.sampled_from(moments)] * 2)))
    for travel in (kept, zero):
        found = travel.diff(where, begins=first, ends=last)
        changed = apply(value(kept, where, as_of=first), [c.change for c in found.changes])
        assert same(changed, value(zero, where, as_of=last))
        expected = twin.diff(where, begins=first, ends=last)
        assert [c.to_json() for c in found.changes] == [c.to_json() for c in expected.changes]


def _in_twos(walk: Any) -> Any:
    return lambda *args, **named: walk(*args, **(named | {"size": 2}))


def test_a_long_history_leaves_a_snapshot_every_so_many_events(snapshots: Snapshots) -> None:
    travel = travel_over(
        told(*({"n": n} for n in range(1, 2_601))), snapshots=snapshots, every=1_000
    )

    travel.state(ISSUE)

    key = SnapshotKey(ISSUE, "last-write-wins@1")
    assert snapshots.nearest(key, upto=2_600) == State({"n": 2_000}, 2_000, 2_000)
    assert snapshots.nearest(key, upto=1_999) == State({"n": 1_000}, 1_000, 1_000)
    assert snapshots.nearest(key, upto=999) is None


def test_a_snapshot_is_what_later_moments_start_from(snapshots: Snapshots) -> None:
    snapshots.keep(SnapshotKey(ISSUE, "last-write-wins@1"), State({"marked": True}, 2, 2))
    travel = travel_over(told({"a": 1}, {"a": 2}, {"a": 3}), snapshots=snapshots)

    assert value(travel) == {"marked": True, "a": 3}
    assert value(travel, as_of=2) == {"marked": True}
    assert value(travel, as_of=1) == {"a": 1}
    assert travel.state(ISSUE).state.events == 3


@pytest.mark.parametrize(
    "other",
    [
        SnapshotKey(ISSUE, "last-write-wins@2"),
        SnapshotKey(ISSUE, "last-write-wins-per-type@1"),
        SnapshotKey(ISSUE, "last-write-wins@1 upcast"),
        SnapshotKey(boundary("default", [("issueId", "42")], ["a.*"]), "last-write-wins@1"),
        SnapshotKey(boundary("other", [("issueId", "42")]), "last-write-wins@1"),
    ],
)
def test_a_snapshot_of_another_version_boundary_or_tenant_is_ignored(
    snapshots: Snapshots, other: SnapshotKey
) -> None:
    snapshots.keep(other, State({"wrong": True}, 2, 2))

    assert value(travel_over(told({"a": 1}, {"a": 2}), snapshots=snapshots)) == {"a": 2}


def test_deleting_all_snapshots_changes_no_answer(
    database: str, reader_pool: Pool, all_pool: Pool
) -> None:
    load(database, told(*({f"k{n % 7}": n} for n in range(1, 1_201))))
    travel = travel_in(reader_pool, all_pool, every=100)
    asked = [0, 1, 99, 555, 1_000, 1_200]
    cold = [travel.state(ISSUE, as_of=position) for position in asked]
    warm = [travel.state(ISSUE, as_of=position) for position in asked]
    assert _count(database) > 1

    with psycopg.connect(database) as connection:
        connection.execute("DELETE FROM state_snapshots")

    assert [travel.state(ISSUE, as_of=position) for position in asked] == warm == cold


def test_raising_the_version_of_a_reducer_starts_its_snapshots_anew(
    database: str, reader_pool: Pool, all_pool: Pool
) -> None:
    def counting(step: int, version: int) -> Reducer:
        @reducer("count", version=version)
        def count(state: JsonObject, event: Stored) -> JsonObject:
            return {"n": int(str(state.get("n", 0))) + step}

        return count

    load(database, told(*({} for _ in range(600))))
    old = travel_in(reader_pool, all_pool, every=500, reducers=[counting(1, 1)])
    new = travel_in(reader_pool, all_pool, every=500, reducers=[counting(2, 2)])

    assert value(old, reducer="count") == {"n": 600}
    assert value(new, reducer="count") == {"n": 1_200}
    assert value(old, reducer="count") == {"n": 600}


def test_forgetting_a_boundary_drops_its_snapshots_and_no_others(snapshots: Snapshots) -> None:
    other = boundary("default", [("issueId", "43")])
    foreign = boundary("acme", [("issueId", "42")])
    keys = [SnapshotKey(each, "r@1") for each in (ISSUE, other, foreign)]
    keys.append(SnapshotKey(ISSUE, "r@2"))
    for key in keys:
        snapshots.keep(key, State({}, 1, 1))
    travel = build(HistoryInMemory(), snapshots, ())

    assert travel.forget("default", ISSUE) == 2

    assert [snapshots.nearest(key, upto=9) is None for key in keys] == [True, False, False, True]
    assert travel.forget("default") == 1
    assert [snapshots.nearest(key, upto=9) is None for key in keys] == [True, True, False, True]


def test_the_worker_makes_the_snapshots_that_are_due_for_boundaries_in_use(
    snapshots: Snapshots,
) -> None:
    events = told(*({"n": n} for n in range(1, 3_001)))
    travel_over(events[:1_000], snapshots=snapshots).state(ISSUE)
    key = SnapshotKey(ISSUE, "last-write-wins@1")
    assert snapshots.nearest(key, upto=3_000) == State({"n": 1_000}, 1_000, 1_000)

    assert travel_over(events[:1_999], snapshots=snapshots).extend() == 0
    assert travel_over(events, snapshots=snapshots).extend() == 1

    assert snapshots.nearest(key, upto=3_000) == State({"n": 3_000}, 3_000, 3_000)


def test_the_worker_leaves_alone_what_another_version_or_lens_made(snapshots: Snapshots) -> None:
    for reference in ("last-write-wins@9", "gone@1", "last-write-wins@1 upcast"):
        snapshots.keep(SnapshotKey(ISSUE, reference), State({}, 1, 1))

    assert travel_over(told(*({} for _ in range(20))), snapshots=snapshots, every=5).extend() == 0


def test_boundaries_nobody_asks_about_are_forgotten(
    database: str, in_postgres: PostgresSnapshots
) -> None:
    old, new = (SnapshotKey(boundary("t", [("n", n)]), "r@1") for n in ("old", "new"))
    for key in (old, new):
        in_postgres.keep(key, State({}, 1, 1))
    _age(database, old, days=31)

    assert in_postgres.forget_unused(days=30) == 1

    assert in_postgres.nearest(old, upto=9) is None
    assert in_postgres.nearest(new, upto=9) is not None


def test_asking_again_keeps_a_boundary_in_use(
    database: str, in_postgres: PostgresSnapshots
) -> None:
    key = SnapshotKey(ISSUE, "r@1")
    in_postgres.keep(key, State({}, 1, 1))
    _age(database, key, days=29)

    in_postgres.nearest(key, upto=9)
    _age(database, key, days=2, later=True)

    assert in_postgres.forget_unused(days=30) == 0


@pytest.mark.parametrize("odd", [{"n": -0.0}, {"n": 1e16}], ids=["minus zero", "a whole float"])
def test_a_state_that_postgresql_would_say_otherwise_is_not_kept_and_still_answered(
    database: str, reader_pool: Pool, all_pool: Pool, odd: JsonObject
) -> None:
    load(database, told(*({} for _ in range(600))))
    strange = Reducer("strange", lambda state, event: dict(odd))
    travel = travel_in(reader_pool, all_pool, every=500, reducers=[strange])

    answers = [canonical(value(travel, reducer="strange")) for _ in range(2)]

    assert answers == [canonical(odd)] * 2
    assert _count(database) == 0


@given(st.dictionaries(st.text(max_size=3).filter(lambda t: "\0" not in t),
       st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: abs(f) > 1e-300)
       | st.integers(-(2**63) + 1, 2**63 - 1), max_size=4))  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_snapshot_reads_back_digit_by_digit(
    shared_pool: Pool, shared_writer: Pool, found: JsonObject
) -> None:
    snapshots = PostgresSnapshots(shared_pool, shared_writer)
    key = SnapshotKey(boundary(f"digits-{next(_tenants)}", [("a", "1")]), "r@1")

    snapshots.keep(key, State(found, 1, 1))

    read = snapshots.nearest(key, upto=1)
    # PostgreSQL writes 1e16 as an integer; a state with such a number is not kept at all.
    if read is None:
        assert any(isinstance(n, float) and abs(n) >= 2**53 for n in found.values())
    else:
        assert same(read.value, found)


def test_a_store_that_takes_no_snapshots_still_answers(
    database: str, reader_pool: Pool, all_pool: Pool
) -> None:
    load(database, told(*({"n": n} for n in range(600))))
    with psycopg.connect(database) as connection:
        connection.execute("REVOKE INSERT ON state_boundaries FROM penstock_ingest")

    assert value(travel_in(reader_pool, all_pool, every=500)) == {"n": 599}


def _count(database: str) -> int:
    with psycopg.connect(database) as connection:
        row = connection.execute("SELECT count(*) FROM state_snapshots").fetchone()
    assert row is not None
    return int(row[0])


def _age(database: str, key: SnapshotKey, *, days: int, later: bool = False) -> None:
    """Move a boundary's last use back by days; `later` counts from where it is now."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "UPDATE state_boundaries SET used_at = CASE WHEN %s THEN used_at ELSE now() END"
            " - make_interval(days => %s) WHERE boundary = %s",
            (later, days, key.boundary.digest),
        )
