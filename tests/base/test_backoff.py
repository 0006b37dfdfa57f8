"""Hold waiting times to their bounds."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from penstock.base.backoff import Backoff


def test_without_jitter_the_wait_doubles_up_to_its_limit() -> None:
    backoff = Backoff(base_s=0.1, factor=2, max_s=1, jitter=0)

    waits = [round(backoff.delay_s(attempt, random.Random(1)), 3) for attempt in range(1, 7)]

    assert waits == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(st.integers(1, 10_000), st.integers())
def test_every_wait_is_within_its_bounds(attempt: int, seed: int) -> None:
    backoff = Backoff()

    assert 0.08 <= backoff.delay_s(attempt, random.Random(seed)) <= 10.0


@given(st.integers(1, 6))
def test_jitter_moves_a_wait_by_no_more_than_its_share(attempt: int) -> None:
    plain = Backoff(jitter=0).delay_s(attempt, random.Random(1))

    waits = {Backoff().delay_s(attempt, random.Random(seed)) for seed in range(50)}

    assert len(waits) > 1
    assert all(0.8 * plain - 1e-9 <= wait <= 1.2 * plain + 1e-9 for wait in waits)
