"""A decision is recorded on what it was made on, and made again when that has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.append.support import criterion, event, in_memory, on_postgres, unless

from penstock.base.errors import AppendConflict, ConditionInvalid
from penstock.envelope.envelope import JsonObject, JsonValue, Stored
from penstock.store.append import decision as steps
from penstock.store.append.appends import Appends, EventStore
from penstock.store.append.condition import Condition, Criteria, criteria_of
from penstock.store.append.decision import adecide, decide
from penstock.store.append.request import Appended, Found
from penstock.store.query import Query

SHOW = Query().type("seat.booked").tag("show", "42")


def seats(taken: frozenset[str], stored: Stored) -> frozenset[str]:
    payload = stored.envelope.payload
    assert isinstance(payload, dict)
    return taken | {str(payload["seat"])}


def booking(seat: str) -> JsonObject:
    return event(tags={"show": "42"}, payload={"seat": seat})


def book(seat: str) -> Any:
    return lambda taken: [] if seat in taken else [booking(seat)]


NOBODY: frozenset[str] = frozenset()


class Meddling:
    """A store into which somebody else books a seat after every read, for so many reads."""

    def __init__(self, store: EventStore, times: int) -> None:
        self.store, self.left = store, times
        self.reads = 0

    def read(self, criteria: Criteria, *, after: int = 0, limit: int = 5_000) -> Found:
        found = self.store.read(criteria, after=after, limit=limit)
        self.reads += 1
        if self.left:
            self.left -= 1
            self.store.append([booking(f"X{self.left}")])
        return found

    def append(self, events: Sequence[JsonValue], condition: Condition | None = None) -> Appended:
        return self.store.append(events, condition)


def test_a_decision_is_three_lines(store: EventStore) -> None:
    first = decide(store, SHOW, seats, book("A1"), initial=NOBODY)
    again = decide(store, SHOW, seats, book("A1"), initial=NOBODY)

    assert first.appended == Appended((1,))
    assert (again.appended, again.state) == (None, {"A1"})


def test_a_conflict_makes_it_read_and_decide_again(store: EventStore) -> None:
    pauses: list[float] = []
    meddling = Meddling(store, 3)

    decided = decide(meddling, SHOW, seats, book("A1"), initial=NOBODY, sleep=pauses.append)

    assert (decided.attempts, len(pauses), meddling.reads) == (4, 3, 4)
    assert decided.state == {"X0", "X1", "X2"}
    assert decided.appended == Appended((4,))


def test_after_the_last_attempt_the_conflict_is_told(store: EventStore) -> None:
    with pytest.raises(AppendConflict):
        decide(
            Meddling(store, 9), SHOW, seats, book("A1"), initial=NOBODY, attempts=3,
            sleep=lambda _: None,
        )  # fmt: skip

    assert len(store.read(criteria_of(SHOW)).events) == 3


def test_a_decision_that_raises_appends_nothing(store: EventStore) -> None:
    class SoldOut(Exception):
        pass

    def refuse(_: frozenset[str]) -> list[JsonObject]:
        raise SoldOut

    with pytest.raises(SoldOut):
        decide(store, SHOW, seats, refuse, initial=NOBODY)


def test_several_queries_are_alternatives(store: EventStore) -> None:
    store.append([event("a", "show.opened", tags={"show": "42"}), booking("A1")])
    opened = Query().type("show.opened").tag("show", "42")

    decided = decide(
        store, [SHOW, opened], lambda n, _: n + 1, lambda n: [booking("B1")] * (n < 5), initial=0
    )

    assert decided.state == 2
    with pytest.raises(AppendConflict):
        store.append([event("x")], Condition(criteria_of([SHOW, opened]), 2))


def test_more_events_than_one_read_gives_are_all_folded(
    store: EventStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_PAGE", 4)
    store.append([booking(f"S{n}") for n in range(10)])

    decided = decide(store, SHOW, seats, book("A1"), initial=NOBODY)

    assert len(decided.state) == 10
    assert decided.appended == Appended((11,))


def test_it_can_be_awaited(store: EventStore) -> None:
    async def main() -> list[Any]:
        tasks = [adecide(store, SHOW, seats, book(f"A{n % 3}"), initial=NOBODY) for n in range(9)]
        return [each.appended for each in await asyncio.gather(*tasks)]

    appended = asyncio.run(main())

    assert sum(each is not None for each in appended) == 3


def test_eight_deciders_book_every_seat_exactly_once(database: str) -> None:
    with on_postgres(database) as appends, ThreadPoolExecutor(8) as pool:
        store = appends.of("acme")
        wanted = [f"S{n % 10}" for n in range(80)]
        decided = list(
            pool.map(
                lambda seat: decide(store, SHOW, seats, book(seat), initial=NOBODY, attempts=200),
                wanted,
            )
        )
        booked = [seats(NOBODY, e) for e in store.read(criteria_of(SHOW)).events]

    assert sum(each.appended is not None for each in decided) == 10
    assert sorted(min(each) for each in booked) == [f"S{n}" for n in range(10)]


@pytest.mark.parametrize(
    "query",
    [
        Query(),
        Query().type("seat.*"),
        Query().type("seat.booked").source("box.office"),
        Query().tag("show", "42").between(None, "2026-01-01T00:00:00Z"),
        Query().tag("show", "42").jsonpath("$.seat"),
        Query().tag("show", "42").as_of(5),
    ],
)
def test_only_exact_types_and_tags_make_a_boundary(query: Query) -> None:
    with pytest.raises(ConditionInvalid):
        criteria_of(query)


@given(
    st.lists(st.sampled_from(["seat.booked", "show.opened"]), unique=True),
    st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), min_size=1),
)
def test_a_query_and_its_criterion_mean_the_same(types: list[str], tags: dict[str, str]) -> None:
    query = Query().type(*types)
    for key, value in tags.items():
        query = query.tag(key, value)

    assert criteria_of(query) == (criterion(*types, **tags),) or set(
        criteria_of(query)[0].tags
    ) == set(tags.items())


def test_an_append_between_two_stores_of_one_log_conflicts_as_within_one() -> None:
    with in_memory() as appends:
        mine, theirs = (
            appends.of("acme"),
            Appends(appends.log, registry=appends.registry, clock=appends._clock).of("acme"),
        )
        theirs.append([event("a", tags={"show": "42"})])

        with pytest.raises(AppendConflict):
            mine.append([event("b")], unless(show="42"))
