"""Decide what comes after one attempt to send: done, send the rest, wait and try again, or give up.

    begin ──▶ Delivery ── advance(answer) ──▶ Delivery ── … ──▶ nothing unsent: results
                              └──▶ Undelivered, with what was not sent

Pure: the answer of the sink and the randomness are arguments. The blocking and the awaiting loop of
the publisher are shells around `advance`, so they cannot differ in what they decide.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.base.backoff import Backoff
from penstock.base.errors import EventRefused, QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.publish.port import Result, Undelivered


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try, and how long to wait in between."""

    attempts: int = 6
    backoff: Backoff = field(default_factory=Backoff)
    wait_s_max: float = 60.0

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise ValueError(f"expected at least 1 attempt, found {self.attempts}")


@dataclass(frozen=True, slots=True)
class Delivery:
    """How far one publish call has come."""

    results: tuple[Result | None, ...]  # one place per event; None: no answer yet
    unsent: tuple[JsonObject, ...]  # the events of those places, in order
    failures: int = 0  # in a row
    pause_s: float = 0.0

    def answers(self) -> list[Result]:
        """What became of each event, in the order given, once nothing is unsent."""
        return [result for result in self.results if result is not None]


def begin(prepared: Sequence[JsonObject | EventRefused]) -> Delivery:
    """A delivery of what is good; what is refused already has its answer."""
    return Delivery(
        results=tuple(item if isinstance(item, EventRefused) else None for item in prepared),
        unsent=tuple(item for item in prepared if not isinstance(item, EventRefused)),
    )


def advance(
    delivery: Delivery,
    answer: Sequence[Result] | QueueUnavailable,
    patience: Patience,
    rng: random.Random,
) -> Delivery:
    """The delivery after one attempt; Undelivered when the attempts are used up."""
    if isinstance(answer, QueueUnavailable):
        return _wait(delivery, answer, patience, rng)
    if not 0 < len(answer) <= len(delivery.unsent):
        detail = f"expected up to {len(delivery.unsent)} answers, found {len(answer)}"
        return _wait(delivery, QueueUnavailable(detail, retry_after_s=0), patience, rng)
    coming = iter(answer)
    return Delivery(
        results=tuple(next(coming, None) if kept is None else kept for kept in delivery.results),
        unsent=delivery.unsent[len(answer) :],
    )


def _wait(
    delivery: Delivery, error: QueueUnavailable, patience: Patience, rng: random.Random
) -> Delivery:
    failures = delivery.failures + 1
    # Never earlier than asked; the backoff on top spreads those who were all asked the same.
    pause_s = error.retry_after_s + patience.backoff.delay_s(failures, rng)
    if failures >= patience.attempts or pause_s > patience.wait_s_max:
        raise Undelivered(error, unsent=delivery.unsent, results=delivery.results) from error
    return Delivery(delivery.results, delivery.unsent, failures, pause_s)
