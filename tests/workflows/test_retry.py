"""A failed step waits as its policy says, and the same failure waits the same time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.workflows.retry import delay_ms, may_retry
from penstock.workflows.steps import RetryPolicy


def policy(**said: Any) -> RetryPolicy:
    return RetryPolicy.model_validate({"jitter": "none", **said})


def delays(said: RetryPolicy, attempts: int = 5) -> list[int]:
    return [delay_ms(said, attempt, "run/step") for attempt in range(1, attempts + 1)]


def test_no_strategy_tries_again_at_once() -> None:
    assert delays(policy(strategy="none")) == [0, 0, 0, 0, 0]


def test_a_fixed_delay_stays_the_same() -> None:
    assert delays(policy(strategy="fixed", initialDelayMs=700)) == [700] * 5


def test_an_exponential_delay_doubles_up_to_its_cap() -> None:
    said = policy(initialDelayMs=1_000, maxDelayMs=6_000)

    assert delays(said) == [1_000, 2_000, 4_000, 6_000, 6_000]


def test_a_delay_never_passes_the_cap_however_often_it_failed() -> None:
    assert delay_ms(policy(), 10**6, "x") == 1_800_000


@pytest.mark.parametrize(("attempt", "expected"), [(1, True), (2, True), (3, False), (4, False)])
def test_three_attempts_are_the_most_unless_the_policy_says_otherwise(
    attempt: int, expected: bool
) -> None:
    assert may_retry(RetryPolicy(), attempt) is expected


@given(st.text(max_size=20), st.integers(1, 10), st.integers(0, 100_000))
def test_jitter_stays_within_its_bounds_and_is_the_same_every_time(
    seed: str, attempt: int, initial: int
) -> None:
    plain = delay_ms(policy(initialDelayMs=initial), attempt, seed)
    full = policy(initialDelayMs=initial, jitter="full")
    equal = policy(initialDelayMs=initial, jitter="equal")

    assert 0 <= delay_ms(full, attempt, seed) <= plain
    assert plain // 2 <= delay_ms(equal, attempt, seed) <= plain
    assert delay_ms(full, attempt, seed) == delay_ms(full, attempt, seed)


def test_jitter_spreads_steps_that_failed_together() -> None:
    said = RetryPolicy(jitter="full", initial_delay_ms=100_000)

    assert len({delay_ms(said, 1, f"run-{n}/step") for n in range(100)}) > 90
