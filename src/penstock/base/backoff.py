"""Say how long to wait before the next try: exponential, capped, with jitter."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """delay(n) = base · factor^(n-1), at most `max_s`, moved by up to `jitter` of itself."""

    base_s: float = 0.1
    factor: float = 2.0
    max_s: float = 10.0
    jitter: float = 0.2

    def delay_s(self, attempt: int, rng: random.Random) -> float:
        """How long to wait after failed attempt number `attempt` (from 1)."""
        plain = min(self.max_s, self.base_s * self.factor ** min(attempt - 1, 64))
        moved = plain * (1 + self.jitter * (2 * rng.random() - 1))
        return max(self.base_s * (1 - self.jitter), min(self.max_s, moved))
