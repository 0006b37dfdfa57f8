"""Say how long a failed step waits before it is tried again.

    none         at once
    fixed        initialDelayMs
    exponential  initialDelayMs · 2^(attempt - 1), at most maxDelayMs

Jitter spreads steps that failed together: `full` waits anything up to the delay, `equal` at least
half of it. It is drawn from a hash of the step and its attempt, so the same failure always waits
the same time, in a test, in a replay, and in two workers that race.
"""

from __future__ import annotations

from hashlib import blake2b

from penstock.workflows.steps import RetryPolicy


def delay_ms(policy: RetryPolicy, attempt: int, seed: str) -> int:
    """How long to wait after the failed attempt number `attempt` (from 1)."""
    if policy.strategy == "none":
        return 0
    delay = policy.initial_delay_ms
    if policy.strategy == "exponential":
        delay <<= min(attempt - 1, 40)
    delay = min(delay, policy.max_delay_ms)
    if policy.jitter == "none":
        return delay
    share = _share(f"{seed}#{attempt}")
    return round(delay * share if policy.jitter == "full" else delay * (1 + share) / 2)


def may_retry(policy: RetryPolicy, attempt: int) -> bool:
    """Whether another attempt follows the failed attempt number `attempt`."""
    return attempt < policy.max_attempts


def _share(seed: str) -> float:
    """A number from 0 to 1 that the seed decides."""
    return int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "big") / (2**64 - 1)
