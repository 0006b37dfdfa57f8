"""A thousand random conditions get the answer that looking at every event gives."""

from __future__ import annotations

import random

from tests.store.append.support import NOW, TYPES, event, on_postgres

from penstock.base.errors import AppendConflict
from penstock.envelope.envelope import Envelope
from penstock.store.append.condition import Condition, Criteria, Criterion, match_any

KEYS, VALUES = ("show", "seat", "user", "mode"), ("1", "2", "3")
EVENTS, CONDITIONS = 400, 1_500
Model = list[tuple[int, Envelope]]


def random_tags(rng: random.Random, least: int) -> dict[str, str]:
    # One value is everywhere and one nearly nowhere, so that rare and hot tags meet.
    keys = rng.sample(KEYS, rng.randint(least, 3))
    return {key: rng.choices(VALUES, (80, 15, 5))[0] for key in keys}


def random_criterion(rng: random.Random) -> Criterion:
    types = tuple(rng.sample(TYPES, rng.randint(0, 2)))
    return Criterion(types, tuple(random_tags(rng, 0 if types else 1).items()))


def random_condition(rng: random.Random, head: int) -> Condition:
    criteria = tuple(random_criterion(rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    after = rng.choice([None, 0, rng.randint(0, head), max(0, head - rng.randint(0, 9)), head])
    exists = tuple(random_criterion(rng) for _ in range(rng.choice([0, 0, 0, 0, 1])))
    return Condition(criteria, after, exists)


def matching(log: Model, criteria: Criteria, after: int) -> list[int]:
    return [position for position, e in log if position > after and match_any(criteria, e)]


def test_random_conditions_are_judged_as_by_brute_force(database: str) -> None:
    rng = random.Random(20260301)
    log: Model = []
    head = refused = 0
    with on_postgres(database) as appends:
        for n in range(EVENTS + CONDITIONS):
            if n % 20 == 0:  # another tenant's events are in between, and never in the way
                appends.of("other").append([event(f"o{n}", tags=random_tags(rng, 1))])
                head += 1
            condition = random_condition(rng, head) if n >= EVENTS else Condition()
            late = matching(log, condition.criteria, condition.after or 0)
            there = matching(log, condition.fail_if_exists, 0)
            event_type, tags = rng.choice(TYPES), random_tags(rng, 0)
            new = event(f"e{n}", event_type, tags=tags)
            try:
                (position,) = appends.of("acme").append([new], condition).positions
            except AppendConflict as conflict:
                assert conflict.positions == tuple((late or there)[:10]), condition
                assert conflict.exists is not bool(late)
                refused += 1
                continue
            head += 1
            assert (late, there, position) == ([], [], head), condition
            log.append((position, Envelope(f"e{n}", event_type, "s", NOW, {}, tags)))

    assert 200 < refused < CONDITIONS - 200
