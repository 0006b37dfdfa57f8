"""Hold the decision after an attempt to its promises, without sending anything."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.backoff import Backoff
from penstock.base.errors import EventRefused, QueueUnavailable
from penstock.envelope.envelope import JsonObject
from penstock.publish.delivery import Delivery, Patience, advance, begin
from penstock.publish.port import Outcome, Result, Undelivered

RNG = random.Random(1)
PATIENCE = Patience(attempts=3, backoff=Backoff(base_s=1, factor=2, max_s=8, jitter=0))


def event(n: int) -> JsonObject:
    return {"id": f"evt-{n}"}


def taken(n: int) -> Outcome:
    return Outcome(f"evt-{n}", "accepted", "", event(n))


def away(retry_after_s: int = 0) -> QueueUnavailable:
    return QueueUnavailable("away", retry_after_s=retry_after_s)


def step(delivery: Delivery, answer: list[Result] | QueueUnavailable) -> Delivery:
    return advance(delivery, answer, PATIENCE, RNG)


def test_a_delivery_of_nothing_is_done_at_once() -> None:
    delivery = begin([])

    assert delivery.unsent == ()
    assert delivery.answers() == []


def test_a_refused_event_is_never_sent_and_keeps_its_place() -> None:
    refused = EventRefused("no", reason="envelope_invalid")
    delivery = begin([event(1), refused, event(2)])

    delivery = step(delivery, [taken(1), taken(2)])

    assert delivery.answers() == [taken(1), refused, taken(2)]


def test_the_rest_is_sent_at_once_when_some_were_taken() -> None:
    delivery = step(begin([event(1), event(2), event(3)]), [taken(1)])

    assert delivery.unsent == (event(2), event(3))
    assert delivery.pause_s == 0


def test_each_failure_waits_longer() -> None:
    first = step(begin([event(1)]), away())
    second = step(first, away())

    assert (first.pause_s, second.pause_s) == (1, 2)
    assert first.unsent == second.unsent == (event(1),)


def test_retry_after_is_never_undercut() -> None:
    assert step(begin([event(1)]), away(retry_after_s=5)).pause_s == 6


def test_those_who_are_asked_the_same_come_back_at_different_times() -> None:
    patience = Patience(backoff=Backoff(jitter=0.5))
    pauses = {
        advance(begin([event(1)]), away(5), patience, random.Random(seed)).pause_s
        for seed in range(20)
    }

    assert len(pauses) == 20


def test_the_last_attempt_gives_up_and_hands_back_what_was_not_sent() -> None:
    refused = EventRefused("no", reason="envelope_invalid")
    delivery = step(begin([event(1), refused, event(2)]), [taken(1)])
    delivery = step(step(delivery, away()), away())

    with pytest.raises(Undelivered) as caught:
        step(delivery, QueueUnavailable("full", disk_full=True, retry_after_s=7))

    assert caught.value.unsent == (event(2),)
    assert caught.value.results == (taken(1), refused, None)
    assert caught.value.code == "queue_unavailable"
    assert caught.value.disk_full
    assert caught.value.retry_after_s == 7


def test_progress_makes_patience_new() -> None:
    delivery = step(step(begin([event(1), event(2)]), away()), away())

    delivery = step(delivery, [taken(1)])

    assert delivery.failures == 0
    assert step(delivery, away()).pause_s == 1


def test_a_server_that_asks_for_more_than_a_minute_is_not_waited_for() -> None:
    with pytest.raises(Undelivered) as caught:
        step(begin([event(1)]), away(retry_after_s=3600))

    assert caught.value.retry_after_s == 3600


@pytest.mark.parametrize("answers", [[], [taken(1), taken(2)]])
def test_a_number_of_answers_that_cannot_be_counts_as_none(answers: list[Result]) -> None:
    delivery = step(begin([event(1)]), answers)

    assert delivery.unsent == (event(1),)
    assert delivery.failures == 1


def test_at_least_one_attempt_is_made() -> None:
    with pytest.raises(ValueError, match="expected at least 1 attempt"):
        Patience(attempts=0)


@given(
    st.lists(st.booleans(), max_size=30),
    st.lists(st.integers(min_value=0, max_value=5), min_size=1, max_size=60),
)
def test_whatever_happens_answers_come_in_order_or_the_unsent_come_back(
    good: list[bool], script: list[int]
) -> None:
    """Each number takes that many events; 0 is a failure. Sent and unsent always add up."""
    prepared = [
        event(n) if ok else EventRefused(str(n), reason="envelope_invalid")
        for n, ok in enumerate(good)
    ]
    expected = [taken(n) if ok else prepared[n] for n, ok in enumerate(good)]
    by_id = {f"evt-{n}": taken(n) for n in range(len(good))}
    delivery, gave_up = begin(prepared), None

    for most in [*script, *[5] * 30]:
        if not delivery.unsent or gave_up:
            break
        sent = delivery.unsent[:most]
        try:
            delivery = step(delivery, [by_id[str(e["id"])] for e in sent] if most else away())
        except Undelivered as error:
            gave_up = error

    if gave_up is None:
        assert delivery.answers() == expected
    else:
        missing = [n for n, result in enumerate(gave_up.results) if result is None]
        assert [e["id"] for e in gave_up.unsent] == [f"evt-{n}" for n in missing]
